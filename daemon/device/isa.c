/* What the processor and the kernel of the operating system offer, asked once. */
#include "daemon/device/isa.h"

#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

static const char *const names[ISA_N] = {
#define ISA(name, NAME, number, includes) [number] = #name,
#include "daemon/device/isa.def"
#undef ISA
};

static const enum isa included[ISA_N] = {
#define ISA(name, NAME, number, includes) [number] = ISA_##includes,
#include "daemon/device/isa.def"
#undef ISA
};

static bool tiles;	/* written before any thread */
static atomic_int best; /* 0: not looked for */

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
/* CPUID costs a virtual machine tens of microseconds, and there are some twenty of them in libgcc's look. The C
 * library has had one of its own. */
#if __has_include(<sys/platform/x86.h>)
#include <sys/platform/x86.h>
#define HAS(libgcc, libc) is_active(x86_cpu_##libc)
#define HAS_TILES() (is_active(x86_cpu_AMX_TILE) && is_active(x86_cpu_AMX_INT8))

/* As CPU_FEATURE_ACTIVE, which shifts an int's 1 by 31. */
static bool is_active(unsigned index)
{
	enum { REGISTER_BITS = 32, LEAF_BITS = 4 * REGISTER_BITS };
	const struct cpuid_feature *leaf = __x86_get_cpuid_feature_leaf(index / LEAF_BITS);
	unsigned bits = leaf->active_array[index % LEAF_BITS / REGISTER_BITS];
	return bits >> index % REGISTER_BITS & 1;
}
#else
#include <cpuid.h>
#define HAS(libgcc, libc) __builtin_cpu_supports(libgcc)
#define HAS_TILES() has_tiles()

static bool has_tiles(void)
{
	enum { TILE = 1 << 24, INT8 = 1 << 25 };
	unsigned a, b, c, d;
	return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (d & TILE) && (d & INT8);
}
#endif

static bool has_avx2(void)
{
	return HAS("avx2", AVX2) && HAS("bmi2", BMI2) && HAS("fma", FMA);
}

static bool has_avx512vnni(void)
{
	return has_avx2() && HAS("avx512f", AVX512F) && HAS("avx512bw", AVX512BW) && HAS("avx512dq", AVX512DQ) &&
	       HAS("avx512vl", AVX512VL) && HAS("avx512vbmi", AVX512_VBMI) && HAS("avx512vbmi2", AVX512_VBMI2) &&
	       HAS("avx512vnni", AVX512_VNNI);
}

static enum isa isa_of_processor(void)
{
	if (tiles && has_avx512vnni() && HAS_TILES())
		return ISA_AMX_INT8;
	if (has_avx512vnni())
		return ISA_AVX512VNNI;
	return has_avx2() ? ISA_AVX2 : ISA_SCALAR;
}
#elif defined(__aarch64__) && defined(__linux__)
#include <sys/auxv.h>

static enum isa isa_of_processor(void)
{
	return getauxval(AT_HWCAP) & HWCAP_ASIMDDP ? ISA_NEON_DOT : ISA_NEON;
}
#else
static enum isa isa_of_processor(void)
{
	return ISA_SCALAR;
}
#endif

enum isa isa_best(void)
{
	int known = atomic_load_explicit(&best, memory_order_relaxed);
	if (!known) {
		known = isa_of_processor();
		atomic_store_explicit(&best, known, memory_order_relaxed);
	}
	return (enum isa)known;
}

enum isa isa_included(enum isa isa)
{
	return included[isa];
}

void isa_permit_tiles(void)
{
	tiles = true;
	best = 0;
}
