/* Functions over rows in two versions of one source: for every x86-64 and for those with AVX2, chosen when they
 * are called. Integers give the same bits in both. Elsewhere there is one version.
 *
 * Not by the compiler's target_clones: these ask the processor once more when the program starts, which takes a
 * virtual machine a tenth of a millisecond. */
#ifndef DEVICE_MULTIVERSION_H
#define DEVICE_MULTIVERSION_H

#include "daemon/device/isa.h"

/* What such a function calls has to become part of it, and so has its body. */
#define MULTIVERSION_PART static inline __attribute__((always_inline))

/* The function `name`, which is `body`: MULTIVERSION(int, f, (int a, int b), f_body, (a, b)). */
#if defined(__x86_64__)
#define MULTIVERSION(type, name, parameters, body, arguments)                                                     \
	__attribute__((target("avx2"))) static type name##_avx2 parameters                                        \
	{                                                                                                         \
		return body arguments;                                                                            \
	}                                                                                                         \
	static type name##_any parameters                                                                         \
	{                                                                                                         \
		return body arguments;                                                                            \
	}                                                                                                         \
	type name parameters                                                                                      \
	{                                                                                                         \
		return isa_best() >= ISA_AVX2 ? name##_avx2 arguments : name##_any arguments;                     \
	}
#else
#define MULTIVERSION(type, name, parameters, body, arguments)                                                     \
	type name parameters                                                                                      \
	{                                                                                                         \
		return body arguments;                                                                            \
	}
#endif

#endif
