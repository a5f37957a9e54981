/* Which outputs may be made so, and in which order bytes become windows. */
#include "daemon/device/kernel_support/windows/depthwise.h"

#include <assert.h>

#include "daemon/device/implementations.h"

void depthwise_init(struct depthwise *depthwise, const struct window *window, const struct requantize *to)
{
	const struct window_axis *w = &window->w;
	assert(window->h.kernel <= DEPTHWISE_TAPS_MAX && w->kernel <= DEPTHWISE_TAPS_MAX && to->shift >= 0);
	depthwise->window = *window;
	depthwise->to = *to;
	for (int64_t q = 0; q < DEPTHWISE_QUADS_MAX; q++)
		for (int64_t i = 0; i < DEPTHWISE_VECTOR_BYTES; i++)
			depthwise->order[q][i] = (uint8_t)((i / 4 * w->stride + (4 * q + i % 4) * w->dilation) %
							   DEPTHWISE_VECTOR_BYTES);
}

bool depthwise_fits_fx8(enum isa isa, const struct window *window, const struct requantize *to, int64_t sum)
{
	const struct window_axis *h = &window->h, *w = &window->w;
	/* 16 windows side by side are seen in 64 bytes. */
	return implementations[isa].depthwise_fx8 && h->kernel <= DEPTHWISE_TAPS_MAX &&
	       w->kernel <= DEPTHWISE_TAPS_MAX &&
	       15 * w->stride + (w->kernel - 1) * w->dilation < DEPTHWISE_VECTOR_BYTES && to->shift >= 0 &&
	       requantize_fits32(sum, to->shift);
}

int64_t depthwise_run_fx8(enum isa isa, const struct depthwise *depthwise, const struct depthwise_channel *channel,
			  const struct depthwise_outputs *outputs)
{
	return implementations[isa].depthwise_fx8(depthwise, channel, outputs);
}
