# Moves inside the device beside memcpy: bench_bulk_inside [part of a shape's name [layout]].
add_executable(bench_bulk_inside ${CMAKE_SOURCE_DIR}/tests/bench/bulk_inside.c)
target_link_libraries(bench_bulk_inside PRIVATE npumem_device)
