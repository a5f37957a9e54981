/* What the processor and the kernel of the operating system offer, asked once. */
#include "daemon/device/isa.h"

#include <stddef.h>
#include <string.h>

static const char *const names[ISA_N] = {
#define ISA(name, NAME, number) [number] = #name,
#include "daemon/device/isa.def"
#undef ISA
};

static bool tiles; /* written before any thread */

const char *isa_name(int isa)
{
	return isa > 0 && isa < ISA_N ? names[isa] : NULL;
}

enum isa isa_parse(const char *name)
{
	for (int isa = 1; isa < ISA_N; isa++)
		if (!strcmp(name, names[isa]))
			return (enum isa)isa;
	return ISA_ANY;
}

#if defined(__x86_64__) && defined(__linux__)
#include <cpuid.h>

static bool has_avx2(void)
{
	return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("fma");
}

static bool has_avx512vnni(void)
{
	return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
	       __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
	       __builtin_cpu_supports("avx512vbmi") && __builtin_cpu_supports("avx512vbmi2") &&
	       __builtin_cpu_supports("avx512vnni");
}

static bool has_amx_int8(void)
{
	enum { TILE = 1 << 24, INT8 = 1 << 25 };
	unsigned a, b, c, d;
	return tiles && has_avx512vnni() && __get_cpuid_count(7, 0, &a, &b, &c, &d) && (d & TILE) && (d & INT8);
}

static enum isa look(void)
{
	__builtin_cpu_init();
	if (has_amx_int8())
		return ISA_AMX_INT8;
	if (has_avx512vnni())
		return ISA_AVX512VNNI;
	return has_avx2() ? ISA_AVX2 : ISA_SCALAR;
}
#else
static enum isa look(void)
{
	return ISA_SCALAR;
}
#endif

enum isa isa_best(void)
{
	return look();
}

void isa_permit_tiles(void)
{
	tiles = true;
}
