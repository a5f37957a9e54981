# find_package(npumem) gives npumem::npumem, the library with its headers.
include(${CMAKE_CURRENT_LIST_DIR}/npumem-targets.cmake)
