# The speed of a request beside a floor of libuv and protobuf-c: bench_rpc [options] [part of a row's name ...].
# The floor is a program of its own, and what counts calls of the heap a library.
add_custom_command(
  OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/floor.pb-c.c ${CMAKE_CURRENT_BINARY_DIR}/floor.pb-c.h
  COMMAND protoc-c --c_out=${CMAKE_CURRENT_BINARY_DIR} -I${CMAKE_CURRENT_SOURCE_DIR}/rpc floor.proto
  DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/rpc/floor.proto VERBATIM)
add_library(bench_floor_messages STATIC ${CMAKE_CURRENT_BINARY_DIR}/floor.pb-c.c
  ${CMAKE_CURRENT_BINARY_DIR}/floor.pb-c.h)
target_compile_options(bench_floor_messages PRIVATE -w)
target_include_directories(bench_floor_messages PUBLIC ${CMAKE_CURRENT_BINARY_DIR})
target_link_libraries(bench_floor_messages PUBLIC npumem_proto)

add_executable(bench_floor rpc/floor.c)
target_link_libraries(bench_floor PRIVATE bench_floor_messages PkgConfig::UV)
add_library(bench_count SHARED rpc/count.c)
target_compile_options(bench_count PRIVATE -fno-builtin)
# A sanitizer has a heap of its own.
if(NPUMEM_SANITIZE)
  set(bench_count "")
else()
  set(bench_count $<TARGET_FILE:bench_count>)
endif()

add_executable(bench_rpc rpc.c rpc/heap.c rpc/load.c rpc/requests.c rpc/rows.c support/measure.c
  support/neighbours.c support/options.c support/peer.c support/report.c support/scratch.c)
target_compile_definitions(bench_rpc PRIVATE _GNU_SOURCE NPUMEMD="$<TARGET_FILE:npumemd>"
  FLOOR="$<TARGET_FILE:bench_floor>" COUNT="${bench_count}")
target_link_libraries(bench_rpc PRIVATE bench_floor_messages npumem_client)
add_dependencies(bench_rpc npumemd bench_floor bench_count)
