# The device's tables, asked on a full device: bench_tables [--large].
add_executable(bench_tables ${CMAKE_SOURCE_DIR}/tests/bench/tables.c)
target_link_libraries(bench_tables PRIVATE npumem_device)
