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
	DEPTHWISE_VECTOR = 16, /* outputs */
	DEPTHWISE_VECTOR_BYTES = 64,
	DEPTHWISE_CHANNELS_MAX = 64, /* of one step */
};

/* What all channels of a call share. */
struct depthwise {
	struct window window;
	struct requantize to;
	int64_t rows; /* of outputs in a vector: where it is not 1, whole ones */
	/* Of the bytes that a vector of outputs sees of its input rows: which are whose taps, four by four. The
	 * last byte is padding, where a vector has several rows. */
	uint8_t order[DEPTHWISE_QUADS_MAX][DEPTHWISE_VECTOR_BYTES];
	/* Of an output channel's weights: which are whose quads, where these are a vector; 64: none. */
	uint8_t weights[DEPTHWISE_VECTOR_BYTES];
};

/* One output channel. */
struct depthwise_channel {
	const uint8_t *in; /* the feature, of in.h x in.w elements */
	const uint8_t *weights;
	int64_t bias; /* in the sums' format */
	uint8_t *out; /* the feature, of out.h x out.w elements */
};

/* Rows [y, end_y) of outputs [x, end_x) of up to DEPTHWISE_CHANNELS_MAX channels. */
struct depthwise_outputs {
	const struct depthwise_channel *channels;
	int64_t n, y, end_y, x, end_x;
};

/* Whether outputs of fx8 may be had by depthwise_run_fx8: `sum` is the largest magnitude of a sum with its bias.
 */
bool depthwise_fits_fx8(enum isa isa, const struct window *window, const struct requantize *to, int64_t sum);
/* Of what fits; both are copied. */
void depthwise_init(struct depthwise *depthwise, const struct window *window, const struct requantize *to);
/* Bytes of an input row from the first to the last that this many outputs side by side see. */
static inline int64_t depthwise_reach(const struct window_axis *w, int64_t outputs)
{
	return (outputs - 1) * w->stride + (w->kernel - 1) * w->dilation + 1;
}

/* Writes outputs and returns how many of them saturated. */
int64_t depthwise_run_fx8(enum isa isa, const struct depthwise *depthwise,
			  const struct depthwise_outputs *outputs);

#endif
