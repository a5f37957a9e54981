/* Depthwise convolution by a plane: a copy of the input feature with its padding, in which every tap is an offset.
 * For ordinary windows of any type, where depthwise.h has no faster way. */
#ifndef DEVICE_DEPTHWISE_PLANE_H
#define DEVICE_DEPTHWISE_PLANE_H

#include "daemon/device/fixed/rows/rows.h"
#include "daemon/device/fixed/rows/taps.h"
#include "daemon/device/kernel_support/windows/depthwise_lines.h"
#include "daemon/device/kernel_support/windows/weighted.h"
#include "daemon/device/kernel_support/windows/window.h"

enum { DEPTHWISE_PLANE_TAPS_MAX = 1024 };

/* How the sums of a channel are held. */
enum depthwise_sums {
	DEPTHWISE_PLAIN, /* 32 bits */
	DEPTHWISE_SPLIT, /* 32 bits in units of 2^TAPS_DROP, see taps.h */
	DEPTHWISE_WIDE,	 /* 64 bits, or what is left to `weighted` */
};

struct depthwise_plane {
	struct kernel_call *call;
	const struct window *window;
	const struct weighted *weighted;
	int64_t rows, width;	/* of the plane */
	int64_t block, columns; /* outputs that are made at once: rows, and of a row, where block is 1 */
	const uint8_t *feature; /* that the plane is a copy of; NULL: of none yet */
	int64_t n_taps, n_pairs, offsets[DEPTHWISE_PLANE_TAPS_MAX];
	bool narrow; /* sums without bias have 32 bits whatever the weights */
	int64_t (*lines)(const struct depthwise_lines *lines); /* NULL: none */
	bool is_flat;					       /* rows are one line, with what lies between them */
	uint64_t real[DEPTHWISE_LINES_PITCH_MAX];
	int64_t pitch;
	bool lone; /* taps that have no neighbour are pairs with nothing */
	/* Of the channel under way. */
	enum depthwise_sums sums_are;
	int64_t bias; /* in the sums' format, unless it is left to the end */
	bool split;
	struct row finish;						       /* unless sums are wide */
	int32_t low[DEPTHWISE_PLANE_TAPS_MAX], high[DEPTHWISE_PLANE_TAPS_MAX]; /* as in struct taps */
	int16_t *plane; /* this and what follows is in scratch */
	int32_t *part;
	int64_t *sums;
};

bool depthwise_plane_fits(const struct window *window);
/* The rest is for what fits. */
size_t depthwise_plane_scratch_bytes(const struct kernel_call *call, const struct window *window);
/* window and weighted are not copied. */
void depthwise_plane_init(struct depthwise_plane *plane, struct kernel_call *call, const struct window *window,
			  const struct weighted *weighted);
/* Makes output channel o from a feature; *pending as kernel_step_rarely. False where the rest is no longer wanted.
 */
bool depthwise_plane_run(struct depthwise_plane *plane, int64_t o, const uint8_t *in, const uint8_t *weights,
			 uint8_t *out, int64_t *pending);

#endif
