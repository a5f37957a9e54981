# The arena, and whole allocations, beside an allocator in the manner of TLSF: bench_alloc [options].
add_executable(bench_alloc ${CMAKE_SOURCE_DIR}/tests/bench/alloc.c)
target_link_libraries(bench_alloc PRIVATE bench_support m)
