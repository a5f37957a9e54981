/* What the machine itself does: contenders that are limits, not programs. */
#ifndef BENCH_PROBE_H
#define BENCH_PROBE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* memcpy of `bytes` between two buffers of its own that stay in the caches as far as they fit. */
struct probe_copy {
	uint8_t *from, *to;
	size_t bytes;
};
void probe_copy_init(struct probe_copy *copy, size_t bytes);
void probe_copy_run(void *copy);
void probe_copy_deinit(struct probe_copy *copy);

/* Loads one word of each line of several stretches of memory. */
struct probe_lines {
	uint8_t *memory;
	size_t n, pitch; /* lines, and bytes from one to the next */
	size_t dense;	 /* lines that lie side by side, behind the others */
};
/* `n` lines, 16 on each of 64 lanes and so on as an aligned tensor has them, and `dense` ones. */
void probe_lines_init(struct probe_lines *lines, size_t n, size_t dense);
void probe_lines_run(void *lines);
void probe_lines_deinit(struct probe_lines *lines);

enum { PROBE_MACS = 24 * 32 * 4096 };
/* PROBE_MACS of vpdpwssd in registers; false, and nothing, where the processor has none. */
bool probe_has_vnni(void);
void probe_peak_run(void *ignored);

#endif
