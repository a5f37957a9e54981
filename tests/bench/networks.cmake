# Whole networks of the importer, beside onnxruntime: bench_networks [options] [part of a network's name ...].
if(NOT TARGET npumem_python)
  return()
endif()
file(GENERATE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/bench_networks
  CONTENT "#!/bin/sh
NPUMEMD=$<TARGET_FILE:npumemd> PYTHONPATH=${CMAKE_BINARY_DIR}/python \\
exec ${PYTHON3} -B ${CMAKE_CURRENT_SOURCE_DIR}/model/networks.py \"$@\"
"
  FILE_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
add_custom_target(bench_networks DEPENDS npumemd npumem_python)
if(NOT NPUMEM_SANITIZE)
  add_test(NAME bench_networks COMMAND ${CMAKE_CURRENT_BINARY_DIR}/bench_networks --quick --dtypes fx8 mobilenet-v1 lstm)
  set_tests_properties(bench_networks PROPERTIES LABELS integration TIMEOUT 240 SKIP_RETURN_CODE 77)
endif()
