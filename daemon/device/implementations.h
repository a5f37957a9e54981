/* Which functions an instruction set has for what can be done faster: one table, implementations.def, of which
 * every entry is chosen when npumem is compiled. */
#ifndef DEVICE_IMPLEMENTATIONS_H
#define DEVICE_IMPLEMENTATIONS_H

#include <stdint.h>

#include "daemon/device/isa.h"

struct blocks_paths;
struct depthwise;
struct depthwise_lines;
struct depthwise_outputs;
struct folds;
struct gemv;
struct lookup;
struct lut_bytes;
struct lut_row;
struct rows;
struct sums_functions;
struct taps;
struct ukernel;

enum ukernel_type {
	UKERNEL_FX8,
	UKERNEL_FX8_CONV, /* whose weights may be arranged */
	UKERNEL_FX16,
	UKERNEL_FX16W8,
	UKERNEL_FX8_PIXELS,
	UKERNEL_FX16_PIXELS,
	UKERNEL_TYPES
};

/* Members that may be NULL say so; the header of each struct or function has the rest. */
struct implementations {
	const struct blocks_paths *blocks;
	const struct rows *rows;
	const struct folds *folds;
	const struct sums_functions *sums;
	/* As many of n columns as it can; returns how many. */
	int64_t (*gemv)(const struct gemv *gemv, int64_t n, int64_t *sums);
	void (*taps)(const struct taps *taps, int64_t n, int32_t *sums);
	void (*lut_bytes)(const struct lut_bytes *bytes, const uint8_t *in, int64_t n, uint8_t *out,
			  int64_t *saturated);
	int64_t (*dot)(const int16_t *a, const int16_t *b, int64_t n);
	/* As many of n elements as it can; returns how many. May be NULL: none. */
	int64_t (*lookup)(const struct lookup *lookup, const void *in, int64_t n, void *out);
	int64_t (*lut)(const struct lut_row *row, int64_t n, int64_t *saturated);
	/* What lut() does, of words between two entries each. May be NULL. */
	void (*lut_words)(const struct lut_row *row, int64_t n);
	/* A cache line of as many rows as 16 bytes have elements. May be NULL. */
	void (*transpose_line)(unsigned bytes, const uint8_t *from, int64_t from_step, uint8_t *to,
			       int64_t to_step);
	/* May be NULL: nothing fits. */
	int64_t (*depthwise_fx8)(const struct depthwise *depthwise, const struct depthwise_outputs *outputs);
	/* Writes them and returns how many saturated. May be NULL. */
	int64_t (*depthwise_lines)(const struct depthwise_lines *lines);
	/* Those of pixels may be NULL. */
	const struct ukernel *ukernels[UKERNEL_TYPES];
};

/* Of each instruction set of this architecture; ISA_ANY has those of ISA_SCALAR. */
extern const struct implementations implementations[ISA_N];

#define IMPLEMENTATION(ISA, member, name) extern __typeof__(*implementations[0].member) name;
#include "daemon/device/implementations.def"
#undef IMPLEMENTATION

#endif
