# The kernels without weights beside memcpy and their scalar rows: bench_rows [part of a case's name [type]].
add_executable(bench_rows ${CMAKE_SOURCE_DIR}/tests/bench/rows.c)
target_link_libraries(bench_rows PRIVATE npumem_device)
