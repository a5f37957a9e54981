# The arena, and whole allocations, beside an allocator in the manner of TLSF: bench_alloc [--quick] [--seed N].
add_executable(bench_alloc ${CMAKE_SOURCE_DIR}/tests/bench/alloc.c)
target_link_libraries(bench_alloc PRIVATE npumem_device m)
