/* Each instruction set's entries begin with those of the one that it includes, by the order in which these macros
 * come to stand for their rows; isa.def says the same of processors. */
#include "daemon/device/implementations.h"

/* A better row stands behind a worse one of the same member. */
#ifdef __clang__
#pragma clang diagnostic ignored "-Winitializer-overrides"
#else
#pragma GCC diagnostic ignored "-Woverride-init"
#endif

#define IMPLEMENTATION(ISA, member, name) ISA(.member = &name)
#define SCALAR(entry) entry,
#define AVX2(entry)
#define AVX512VNNI(entry)
#define AMX_INT8(entry)
#define NEON(entry)
#define NEON_DOT(entry)

const struct implementations implementations[ISA_N] = {
	[ISA_ANY] =
		{
#include "daemon/device/implementations.def"
		},
	[ISA_SCALAR] =
		{
#include "daemon/device/implementations.def"
		},
#ifdef __x86_64__
#undef AVX2
#define AVX2(entry) entry,
	[ISA_AVX2] =
		{
#include "daemon/device/implementations.def"
		},
#undef AVX512VNNI
#define AVX512VNNI(entry) entry,
	[ISA_AVX512VNNI] =
		{
#include "daemon/device/implementations.def"
		},
#undef AMX_INT8
#define AMX_INT8(entry) entry,
	[ISA_AMX_INT8] =
		{
#include "daemon/device/implementations.def"
		},
#endif
#ifdef __aarch64__
#undef NEON
#define NEON(entry) entry,
	[ISA_NEON] =
		{
#include "daemon/device/implementations.def"
		},
#undef NEON_DOT
#define NEON_DOT(entry) entry,
	[ISA_NEON_DOT] =
		{
#include "daemon/device/implementations.def"
		},
#endif
};
