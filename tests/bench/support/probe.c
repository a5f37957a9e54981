/* Lines lie as in local memory: 64 lanes, their pitch that of 512 KiB and a gap, elements 128 bytes apart. */
#include "tests/bench/support/probe.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "daemon/device/memory/local.h"
#include "tests/bench/support/peer.h"

enum { LANES = 64, LANE_BYTES = 512 * 1024, ELEMENT_PITCH = 128, LINE_BYTES = 64 };

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
	size_t pitch = LANE_BYTES + LOCAL_LANE_GAP_BYTES;
	*lines = (struct probe_lines){take(LANES * pitch + dense * LINE_BYTES), n, pitch, dense};
}

void probe_lines_run(void *context)
{
	const struct probe_lines *lines = context;
	uint64_t sum = 0;
	for (size_t lane = 0; lane < LANES; lane++) {
		const uint8_t *at = lines->memory + lane * lines->pitch;
		for (size_t i = 0; i < lines->n / LANES; i++)
			sum += at[i * ELEMENT_PITCH];
	}
	const uint8_t *at = lines->memory + LANES * lines->pitch;
	for (size_t i = 0; i < lines->dense; i++)
		sum += at[i * LINE_BYTES];
	__asm__ volatile("" : : "r"(sum));
}

void probe_lines_deinit(struct probe_lines *lines)
{
	free(lines->memory);
}

#ifdef __x86_64__

bool probe_has_vnni(void)
{
	return __builtin_cpu_supports("avx512vnni");
}

#define STEP(n) "vpdpwssd %%zmm30, %%zmm31, %%zmm" #n "\n\t"

/* 24 chains, more than its latency needs. */
void probe_peak_run(void *ignored)
{
	long n = PROBE_MACS / (24 * 32);
	(void)ignored;
	__asm__ volatile("1:\n\t" STEP(0) STEP(1) STEP(2) STEP(3) STEP(4) STEP(5) STEP(6) STEP(7) STEP(8) STEP(9)
				 STEP(10) STEP(11) STEP(12) STEP(13) STEP(14) STEP(15) STEP(16) STEP(17) STEP(18)
					 STEP(19) STEP(20) STEP(21) STEP(22) STEP(23) "dec %0\n\t"
										      "jnz 1b\n\t"
										      "vzeroupper\n\t"
			 : "+r"(n)
			 :
			 : "cc", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9",
			   "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15"
#ifdef __AVX512F__
			   ,
			   "xmm16", "xmm17", "xmm18", "xmm19", "xmm20", "xmm21", "xmm22", "xmm23"
#endif
	);
}

#else

bool probe_has_vnni(void)
{
	return false;
}

void probe_peak_run(void *ignored)
{
	(void)ignored;
}

#endif
