# What it costs that state outlives the process: bench_store [options].
add_executable(bench_store ${CMAKE_SOURCE_DIR}/tests/bench/store.c)
target_link_libraries(bench_store PRIVATE bench_support npumem_store)
