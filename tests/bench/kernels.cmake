# Kernels in this process and through the daemon, beside oneDNN:
# bench_kernels [options] [part of a case's name ...].
add_executable(bench_kernels kernels.c kernels/others.c kernels/threads.c kernels/weights.c)
target_link_libraries(bench_kernels PRIVATE bench_support)
