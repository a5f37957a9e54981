/* Buffers are on huge pages where there are any, as local memory is. */
#include "tests/bench/support/probe.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "tests/bench/support/peer.h"

enum { ELEMENT_PITCH = 128, LINE_BYTES = 64 };

static uint8_t *take(size_t bytes)
{
	size_t huge = 2 << 20;
	uint8_t *memory = aligned_alloc(huge, (bytes / huge + 1) * huge);
	if (!memory)
		peer_die("no memory");
	madvise(memory, (bytes / huge + 1) * huge, MADV_HUGEPAGE);
	memset(memory, 1, bytes);
	return memory;
}

void probe_copy_init(struct probe_copy *copy, size_t bytes)
{
	*copy = (struct probe_copy){take(bytes), take(bytes), bytes};
}

void probe_copy_run(void *context)
{
	const struct probe_copy *copy = context;
	memcpy(copy->to, copy->from, copy->bytes);
	__asm__ volatile("" : : "r"(copy->to) : "memory");
}

void probe_copy_deinit(struct probe_copy *copy)
{
	free(copy->from);
	free(copy->to);
}

void probe_lines_init(struct probe_lines *lines, size_t n, size_t dense)
{
	struct npumem_geometry geometry;
	npumem_geometry_default(&geometry);
	*lines = (struct probe_lines){.memory = take(local_bytes(&geometry)),
				      .side_by_side = take(dense * LINE_BYTES + 1),
				      .n = n,
				      .dense = dense};
	local_init(&lines->local, &geometry, isa_best(), lines->memory);
}

void probe_lines_run(void *context)
{
	const struct probe_lines *lines = context;
	size_t n_npus = (size_t)lines->local.geometry.n_npus;
	uint64_t sum = 0;
	for (size_t npu = 0; npu < n_npus; npu++) {
		const uint8_t *at = local_at(&lines->local, (int64_t)npu, 0);
		for (size_t i = 0; i < (lines->n + n_npus - 1 - npu) / n_npus; i++)
			sum += at[i * ELEMENT_PITCH];
	}
	for (size_t i = 0; i < lines->dense; i++)
		sum += lines->side_by_side[i * LINE_BYTES];
	__asm__ volatile("" : : "r"(sum));
}

void probe_lines_deinit(struct probe_lines *lines)
{
	free(lines->memory);
	free(lines->side_by_side);
}

#ifdef __x86_64__

#ifdef __AVX512F__
#define UPPER , "xmm16", "xmm17", "xmm18", "xmm19", "xmm20", "xmm21", "xmm22", "xmm23"
#else
#define UPPER /* the compiler does not use them */
#endif

#define STEP(name, n) name " %%zmm30, %%zmm31, %%zmm" #n "\n\t"
#define FOUR(name, a, b, c, d) STEP(name, a) STEP(name, b) STEP(name, c) STEP(name, d)

/* 24 chains, more than the latency needs. */
#define PEAK(name)                                                                                                \
	do {                                                                                                      \
		long turns = PROBE_STEPS / 24;                                                                    \
		__asm__ volatile("1:\n\t" FOUR(name, 0, 1, 2, 3) FOUR(name, 4, 5, 6, 7) FOUR(name, 8, 9, 10, 11)  \
					 FOUR(name, 12, 13, 14, 15) FOUR(name, 16, 17, 18, 19)                    \
						 FOUR(name, 20, 21, 22, 23) "dec %0\n\t"                          \
									    "jnz 1b\n\t"                          \
									    "vzeroupper\n\t"                      \
				 : "+r"(turns)                                                                    \
				 :                                                                                \
				 : "cc", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8",  \
				   "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15" UPPER);           \
	} while (0)

void probe_peak_8_run(void *ignored)
{
	(void)ignored;
	PEAK("vpdpbusd");
}

void probe_peak_16_run(void *ignored)
{
	(void)ignored;
	PEAK("vpdpwssd");
}

#else

void probe_peak_8_run(void *ignored)
{
	(void)ignored;
}

void probe_peak_16_run(void *ignored)
{
	(void)ignored;
}

#endif
