# The kernels with weights, densely, beside plain loops: bench_kernels [part of a case's name [type]].
add_executable(bench_kernels ${CMAKE_SOURCE_DIR}/tests/bench/kernels.c)
target_link_libraries(bench_kernels PRIVATE npumem_device)
