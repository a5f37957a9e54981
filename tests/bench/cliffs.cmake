# Shapes that cost many times what their neighbours do, in this process: bench_cliffs [options] [part of a family's name ...].
add_executable(bench_cliffs cliffs.c)
target_link_libraries(bench_cliffs PRIVATE bench_support)
