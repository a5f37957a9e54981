/* The vectors of the instruction set that a file is compiled for, and NAME__ISA for the names of what it defines. */
#ifndef DEVICE_VECTOR_H
#define DEVICE_VECTOR_H

#ifdef __AVX512VNNI__
#include "daemon/device/fixed/rows/vectors/vector__avx512vnni.h"
#else
#include "daemon/device/fixed/rows/vectors/vector__avx2.h"
#endif

#include "daemon/device/implementations.h"

#define VECTOR_JOIN(name, isa) name##__##isa
#define VECTOR_JOIN_ISA(name, isa) VECTOR_JOIN(name, isa)
#define VECTOR_NAME(name) VECTOR_JOIN_ISA(name, VECTOR_ISA)

#endif
