/* Depthwise convolution by a plane: a copy of the input feature with its padding, in which every tap is an offset.
 * For ordinary windows of any type, where depthwise.h has no faster way. */
#ifndef DEVICE_DEPTHWISE_PLANE_H
#define DEVICE_DEPTHWISE_PLANE_H

#include "daemon/device/fixed/rows/taps.h"
#include "daemon/device/kernel_support/windows/weighted.h"
#include "daemon/device/kernel_support/windows/window.h"

struct depthwise_plane {
	struct kernel_call *call;
	const struct window *window;
	const struct weighted *weighted;
	int64_t rows, width;	/* of the plane */
	int64_t block;		/* rows of outputs that are made at once */
	const uint8_t *feature; /* that the plane is a copy of */
	struct taps taps;	/* weights are those of the channel under way */
	int32_t high[TAPS_MAX]; /* the weights' high bytes, where `split` */
	bool split;
	uint8_t *plane; /* this and what follows is in scratch */
	int32_t *part;
	int64_t *sums;
};

bool depthwise_plane_fits(const struct window *window);
/* The rest is for what fits. */
size_t depthwise_plane_scratch_bytes(const struct kernel_call *call, const struct window *window, unsigned bytes);
/* window and weighted are not copied. */
void depthwise_plane_init(struct depthwise_plane *plane, struct kernel_call *call, const struct window *window,
			  const struct weighted *weighted);
/* Makes output channel o from a feature; *pending as kernel_step_rarely. False where the rest is no longer wanted.
 */
bool depthwise_plane_run(struct depthwise_plane *plane, int64_t o, const uint8_t *in, const uint8_t *weights,
			 uint8_t *out, int64_t *pending);

#endif
