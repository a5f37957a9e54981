/* Windows that slide over H and W: stride, padding, dilation, and which taps of them meet the input.
 * The two axes are independent, so everything is said for one of them. Padded taps do not exist here: a tap is
 * either on the input or left out. */
#ifndef DEVICE_WINDOW_H
#define DEVICE_WINDOW_H

#include "daemon/device/operations/kernel.h"

/* Parameters and kernels stay below this, so that no sum or product of two of them leaves 64 bits. */
#define WINDOW_LIMIT INT64_C(0x7fffffff)

struct window_axis {
	int64_t in, out; /* extents */
	int64_t kernel, stride, dilation;
	int64_t before, after;		       /* padding */
	int64_t counted_before, counted_after; /* of it, that the mean of a pool counts */
};

struct window {
	struct window_axis h, w;
};

/* Reads stride, padding and dilation and works out the extents of the output:
 * floor((in + before + after - ((kernel - 1) * dilation + 1)) / stride) + 1. 0 or INVALID; a call that passed once
 * passes again. */
int window_read(const struct kernel_call *call, const struct npumem_dims *in, int64_t kernel_h, int64_t kernel_w,
		struct window *window, struct npumem_error *error);

/* The same for a transposed convolution, whose inputs are scattered: tap `tap` of input i goes to output
 * i * stride + tap - before; padding crops, output_padding adds to the end. Extents of the output:
 * (in - 1) * stride + kernel - before - after + output_padding.
 * The functions below are not about such windows. */
int window_read_transposed(const struct kernel_call *call, const struct npumem_dims *in, int64_t kernel_h,
			   int64_t kernel_w, struct window *window, struct npumem_error *error);

/* The input coordinate under tap `tap` of output `out`; outside [0, in) for a padded tap. */
static inline int64_t window_at(const struct window_axis *axis, int64_t out, int64_t tap)
{
	return out * axis->stride + tap * axis->dilation - axis->before;
}

/* The taps of output `out` that meet the input: [*first, *end), maybe none. */
void window_taps(const struct window_axis *axis, int64_t out, int64_t *first, int64_t *end);
/* The outputs for which tap `tap` meets the input: [*first, *end), maybe none. */
void window_outputs(const struct window_axis *axis, int64_t tap, int64_t *first, int64_t *end);
/* Pairs of an output and a tap that meet the input. */
int64_t window_pairs(const struct window_axis *axis);

#endif
