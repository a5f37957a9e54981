/* The sums of a depthwise convolution over one input feature, for rows of outputs: where the window and the
 * formats allow, straight from the feature in one pass. */
#ifndef DEVICE_DEPTHWISE_H
#define DEVICE_DEPTHWISE_H

#include "daemon/device/fixed/requantize.h"
#include "daemon/device/isa.h"
#include "daemon/device/kernel_support/windows/window.h"

enum {
	DEPTHWISE_TAPS_MAX = 16, /* of either axis, on the fast way */
	DEPTHWISE_QUADS_MAX = DEPTHWISE_TAPS_MAX / 4,
	DEPTHWISE_VECTOR_BYTES = 64,
};

/* What all channels of a call share. */
struct depthwise {
	struct window window;
	struct requantize to;
	/* Of the bytes that 16 outputs side by side see of an input row: which are whose taps, four by four. */
	uint8_t order[DEPTHWISE_QUADS_MAX][DEPTHWISE_VECTOR_BYTES];
};

/* One output channel. */
struct depthwise_channel {
	const uint8_t *in; /* the feature, of in.h x in.w elements */
	const uint8_t *weights;
	int64_t bias; /* in the sums' format */
	uint8_t *out; /* the feature, of out.h x out.w elements */
};

/* Rows [y, end_y) of outputs [x, end_x). */
struct depthwise_outputs {
	int64_t y, end_y, x, end_x;
};

/* Whether outputs of fx8 may be had by depthwise_run_fx8: `sum` is the largest magnitude of a sum with its bias.
 */
bool depthwise_fits_fx8(enum isa isa, const struct window *window, const struct requantize *to, int64_t sum);
/* Of what fits; both are copied. */
void depthwise_init(struct depthwise *depthwise, const struct window *window, const struct requantize *to);
/* Writes outputs and returns how many of them saturated. */
int64_t depthwise_run_fx8(enum isa isa, const struct depthwise *depthwise, const struct depthwise_channel *channel,
			  const struct depthwise_outputs *outputs);

#endif
