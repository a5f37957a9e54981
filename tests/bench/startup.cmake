# A daemon's start and its idle memory, beside the least of libuv and protobuf-c: bench_startup [options].
add_executable(bench_minimal startup/minimal.c)
target_link_libraries(bench_minimal PRIVATE bench_floor_messages PkgConfig::UV)
add_executable(bench_startup startup.c)
target_compile_definitions(bench_startup PRIVATE MINIMAL="$<TARGET_FILE:bench_minimal>")
target_link_libraries(bench_startup PRIVATE bench_support)
add_dependencies(bench_startup bench_minimal)
