# What a request costs more where state outlives the process, and how long a restart takes: bench_state [options].
add_executable(bench_state state.c)
target_link_libraries(bench_state PRIVATE bench_support bench_floor_messages)
