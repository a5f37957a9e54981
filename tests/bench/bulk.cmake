# Bulk data through a shared segment, beside memcpy: bench_bulk [options] [part of a case's name ...].
add_executable(bench_bulk bulk.c)
target_link_libraries(bench_bulk PRIVATE bench_support)
