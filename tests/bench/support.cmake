# What benches share. The library is linked as its users link it, so that nothing of it meets what the device has.
add_library(bench_support STATIC support/call.c support/inside.c support/measure.c support/neighbours.c
  support/options.c support/peer.c support/probe.c support/remote.c support/report.c support/scratch.c)
target_compile_definitions(bench_support PUBLIC _GNU_SOURCE NPUMEMD="$<TARGET_FILE:npumemd>")
target_link_libraries(bench_support PUBLIC npumem_device npumem)
add_dependencies(bench_support npumemd)

# oneDNN of the interface that the peer is written for.
find_path(DNNL_INCLUDE_DIR dnnl.h)
find_library(DNNL_LIBRARY dnnl)
set(dnnl_version "")
if(DNNL_INCLUDE_DIR AND DNNL_LIBRARY)
  file(STRINGS ${DNNL_INCLUDE_DIR}/oneapi/dnnl/dnnl_version.h dnnl_version REGEX "DNNL_VERSION_MAJOR +2$")
endif()
if(dnnl_version)
  target_sources(bench_support PRIVATE support/onednn.c)
  target_include_directories(bench_support SYSTEM PRIVATE ${DNNL_INCLUDE_DIR})
  target_link_libraries(bench_support PUBLIC ${DNNL_LIBRARY})
else()
  message(STATUS "no oneDNN 2 (libdnnl-dev): benches have no rows beside it")
  target_sources(bench_support PRIVATE support/onednn_absent.c)
endif()
