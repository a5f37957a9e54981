# Small kernels and a network in one submit: bench_small [options] [part of a case's name ...].
add_executable(bench_small small.c small/lists.c small/network.c small/small.c)
target_link_libraries(bench_small PRIVATE bench_support)
