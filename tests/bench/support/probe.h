/* What the machine itself does: contenders that are limits, not programs. */
#ifndef BENCH_PROBE_H
#define BENCH_PROBE_H

#include <stddef.h>
#include <stdint.h>

#include "daemon/device/memory/local.h"

/* memcpy of `bytes` between two buffers of its own that stay in the caches as far as they fit. */
struct probe_copy {
	uint8_t *from, *to;
	size_t bytes;
};
void probe_copy_init(struct probe_copy *copy, size_t bytes);
void probe_copy_run(void *copy);
void probe_copy_deinit(struct probe_copy *copy);

/* Loads a byte of each of many lines: `n` of local memory, where they lie as the elements of an aligned tensor of
 * 1x1 features, and `dense` ones side by side. */
struct probe_lines {
	struct local local;
	uint8_t *memory, *side_by_side;
	size_t n, dense;
};
void probe_lines_init(struct probe_lines *lines, size_t n, size_t dense);
void probe_lines_run(void *lines);
void probe_lines_deinit(struct probe_lines *lines);

/* Products in registers, as fast as they go: of bytes (vpdpbusd) and of 16 bits (vpdpwssd). Only where the
 * processor has AVX-512 VNNI. */
enum { PROBE_STEPS = 24 * 4096, PROBE_MACS_8 = PROBE_STEPS * 64, PROBE_MACS_16 = PROBE_STEPS * 32 };
void probe_peak_8_run(void *ignored);
void probe_peak_16_run(void *ignored);

#endif
