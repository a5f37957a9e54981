/* Depthwise convolution by a plane: a copy of the input feature with its padding, in which every tap is an offset.
 * For ordinary windows of any type, where depthwise.h has no faster way. */
#ifndef DEVICE_DEPTHWISE_PLANE_H
#define DEVICE_DEPTHWISE_PLANE_H

#include "daemon/device/fixed/rows/taps.h"
#include "daemon/device/kernel_support/windows/weighted.h"
#include "daemon/device/kernel_support/windows/window.h"

enum { DEPTHWISE_PLANE_TAPS_MAX = 1024 };

struct depthwise_plane {
	struct kernel_call *call;
	const struct window *window;
	const struct weighted *weighted;
	int64_t rows, width;	/* of the plane */
	int64_t block;		/* rows of outputs that are made at once */
	const uint8_t *feature; /* that the plane is a copy of */
	int64_t n_taps, offsets[DEPTHWISE_PLANE_TAPS_MAX];
	/* Of the channel under way; where `split` their low bytes without and their high ones with a sign. */
	int32_t weights[DEPTHWISE_PLANE_TAPS_MAX], high[DEPTHWISE_PLANE_TAPS_MAX];
	bool split;
	uint8_t *plane; /* this and what follows is in scratch */
	int32_t *part;
	int64_t *sums;
};

bool depthwise_plane_fits(const struct window *window);
/* The rest is for what fits. */
size_t depthwise_plane_scratch_bytes(const struct kernel_call *call, const struct window *window, unsigned bytes);
/* window and weighted are not copied; where all taps do not fit in one pass the sums have 64 bits, which
 * `weighted` then says. */
void depthwise_plane_init(struct depthwise_plane *plane, struct kernel_call *call, const struct window *window,
			  struct weighted *weighted);
/* Makes output channel o from a feature; *pending as kernel_step_rarely. False where the rest is no longer wanted.
 */
bool depthwise_plane_run(struct depthwise_plane *plane, int64_t o, const uint8_t *in, const uint8_t *weights,
			 uint8_t *out, int64_t *pending);

#endif
