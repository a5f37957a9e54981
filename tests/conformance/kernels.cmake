# The vectors of the kernels, run densely against each kernel function.
add_executable(conformance_kernels ${CMAKE_SOURCE_DIR}/tests/conformance/kernels.c)
target_link_libraries(conformance_kernels PRIVATE npumem_device PkgConfig::JANSSON)
add_test(NAME conformance_kernels COMMAND conformance_kernels WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
set_tests_properties(conformance_kernels PROPERTIES LABELS conformance)
