# The scene: its files, and what they put in the place of the device's own (turns.c, tests/random/costs.c).
set(scene play.c scene.c digest.c turns.c)
list(TRANSFORM scene PREPEND ${CMAKE_CURRENT_LIST_DIR}/)
list(APPEND scene ${CMAKE_SOURCE_DIR}/tests/random/daemon.c ${CMAKE_SOURCE_DIR}/tests/random/costs.c)
set(scene_wraps op_cost op_reach_cost device_scan_cost device_stat_count device_alloc_step)
list(TRANSFORM scene_wraps PREPEND -Wl,--wrap=)
