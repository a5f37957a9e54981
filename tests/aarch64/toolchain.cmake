# Builds for aarch64 with Debian's cross compiler; what is built runs under qemu:
#   cmake -S . -B build-aarch64 --toolchain tests/aarch64/toolchain.cmake
# The packages of arm64 are those of NPUMEM_SYSROOT, by default what tests/aarch64/sysroot.sh makes.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
if(NOT NPUMEM_SYSROOT)
  execute_process(COMMAND ${CMAKE_CURRENT_LIST_DIR}/sysroot.sh OUTPUT_VARIABLE NPUMEM_SYSROOT
                  OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
endif()
# Each check of the compiler is a project of its own, which reads this file again.
set(CMAKE_TRY_COMPILE_PLATFORM_VARIABLES NPUMEM_SYSROOT)
set(CMAKE_SYSROOT ${NPUMEM_SYSROOT})
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
set(ENV{PKG_CONFIG_SYSROOT_DIR} ${NPUMEM_SYSROOT})
set(ENV{PKG_CONFIG_LIBDIR} ${NPUMEM_SYSROOT}/usr/lib/aarch64-linux-gnu/pkgconfig:${NPUMEM_SYSROOT}/usr/share/pkgconfig)
# Debian's linker looks for libraries of libraries in the machine's own folders.
string(APPEND CMAKE_EXE_LINKER_FLAGS_INIT " -Wl,-rpath-link,${NPUMEM_SYSROOT}/usr/lib/aarch64-linux-gnu:${NPUMEM_SYSROOT}/lib/aarch64-linux-gnu")
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64-static -L ${NPUMEM_SYSROOT})
