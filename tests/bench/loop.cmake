# How long heavy requests keep the daemon's loop: bench_loop [--rounds N] [--npu-bytes S] [--free-blocks]
# [--check] [part of a scenario's name ...]; exits 1 with --check where a turn is too long.
file(GENERATE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/bench_loop
  CONTENT "#!/bin/sh
NPUMEMD=$<TARGET_FILE:npumemd> PYTHONPATH=${CMAKE_BINARY_DIR}/tests/integration/python \\
exec ${PYTHON3} -B ${CMAKE_CURRENT_SOURCE_DIR}/loop.py \"$@\"
"
  FILE_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
