# What ssh costs beside a path: bench_remote.
add_executable(bench_remote_client remote.c)
target_link_libraries(bench_remote_client PRIVATE npumem)
file(GENERATE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/bench_remote
  CONTENT "#!/bin/sh
NPUMEMD=$<TARGET_FILE:npumemd> NPUMEM_BUILD=${CMAKE_BINARY_DIR} BENCH=$<TARGET_FILE:bench_remote_client> \\
PYTHONPATH=${CMAKE_BINARY_DIR}/tests/integration/python exec ${PYTHON3} -B ${CMAKE_CURRENT_SOURCE_DIR}/remote.py \"$@\"
"
  FILE_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
