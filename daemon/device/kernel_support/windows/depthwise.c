/* Which outputs may be made so, and in which order bytes become windows. */
#include "daemon/device/kernel_support/windows/depthwise.h"

#include <assert.h>
#include <string.h>

#include "daemon/device/implementations.h"

/* As many rows of a vector as see its bytes but one. */
static int64_t rows_of(const struct window *window)
{
	int64_t rows = DEPTHWISE_VECTOR / window->w.out, row = window->h.stride * window->w.in;
	while (rows > 1 && (rows - 1) * row + depthwise_reach(&window->w, window->w.out) >= DEPTHWISE_VECTOR_BYTES)
		rows--;
	return rows > 1 ? rows : 1;
}

/* The byte under tap `tap` of output i of a vector. */
static int64_t byte_at(const struct depthwise *depthwise, int64_t i, int64_t tap)
{
	const struct window_axis *h = &depthwise->window.h, *w = &depthwise->window.w;
	if (depthwise->rows == 1)
		return (i * w->stride + tap * w->dilation) % DEPTHWISE_VECTOR_BYTES;
	int64_t y = i / w->out, x = window_at(w, i % w->out, tap);
	if (tap >= w->kernel || y >= depthwise->rows || x < 0 || x >= w->in)
		return DEPTHWISE_VECTOR_BYTES - 1;
	return y * h->stride * w->in + x + w->before;
}

void depthwise_init(struct depthwise *depthwise, const struct window *window, const struct requantize *to)
{
	const struct window_axis *w = &window->w;
	assert(window->h.kernel <= DEPTHWISE_TAPS_MAX && w->kernel <= DEPTHWISE_TAPS_MAX && to->shift >= 0);
	depthwise->window = *window;
	depthwise->to = *to;
	depthwise->rows = rows_of(window);
	for (int64_t q = 0; 4 * q < w->kernel; q++)
		for (int64_t i = 0; i < DEPTHWISE_VECTOR_BYTES; i++)
			depthwise->order[q][i] = (uint8_t)byte_at(depthwise, i / 4, 4 * q + i % 4);
	uint8_t *weight = depthwise->weights, *end = weight + DEPTHWISE_VECTOR_BYTES;
	memset(weight, DEPTHWISE_VECTOR_BYTES, DEPTHWISE_VECTOR_BYTES);
	for (int64_t y = 0; y < window->h.kernel; y++)
		for (int64_t x = 0; x < (w->kernel + 3) / 4 * 4 && weight < end; x++, weight++)
			if (x < w->kernel)
				*weight = (uint8_t)(y * w->kernel + x);
}

bool depthwise_fits_fx8(enum isa isa, const struct window *window, const struct requantize *to, int64_t sum)
{
	const struct window_axis *h = &window->h, *w = &window->w;
	return implementations[isa].depthwise_fx8 && h->kernel <= DEPTHWISE_TAPS_MAX &&
	       w->kernel <= DEPTHWISE_TAPS_MAX && depthwise_reach(w, DEPTHWISE_VECTOR) <= DEPTHWISE_VECTOR_BYTES &&
	       to->shift >= 0 && requantize_fits32(sum, to->shift);
}

int64_t depthwise_run_fx8(enum isa isa, const struct depthwise *depthwise, const struct depthwise_outputs *outputs)
{
	return implementations[isa].depthwise_fx8(depthwise, outputs);
}
