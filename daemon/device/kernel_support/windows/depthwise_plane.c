/* With a stride of 1 the rows of a block are one long row of sums, of which those between two rows are dropped.
 * Weights of 16 bits are taken by their bytes, whose products stay in 32. */
#include "daemon/device/kernel_support/windows/depthwise_plane.h"

#include <assert.h>
#include <string.h>

enum { ALIGN = 64 };

static int64_t aligned(int64_t bytes)
{
	return (bytes + ALIGN - 1) / ALIGN * ALIGN;
}

static bool axis_fits(const struct window_axis *axis)
{
	return axis->before + axis->after <= axis->in + 8;
}

bool depthwise_plane_fits(const struct window *window)
{
	return axis_fits(&window->h) && axis_fits(&window->w) && window->h.kernel <= DEPTHWISE_PLANE_TAPS_MAX &&
	       window->w.kernel <= DEPTHWISE_PLANE_TAPS_MAX &&
	       window->h.kernel * window->w.kernel <= DEPTHWISE_PLANE_TAPS_MAX;
}

/* Lays out the scratch memory and returns its size. */
static size_t lay_out(struct depthwise_plane *p, const struct kernel_call *call, const struct window *window,
		      unsigned bytes)
{
	const struct window_axis *h = &window->h, *w = &window->w;
	assert(depthwise_plane_fits(window));
	p->rows = h->before + h->in + h->after;
	p->width = w->before + w->in + w->after;
	p->block = kernel_piece(call) / p->width;
	if (h->kernel * w->kernel > TAPS_MAX)
		p->block = p->block * TAPS_MAX / (h->kernel * w->kernel);
	p->block = p->block < 1 ? 1 : p->block < h->out ? p->block : h->out;
	int64_t plane = aligned(p->rows * p->width * bytes), part = aligned(p->block * p->width * 4);
	uint8_t *scratch = call->scratch;
	if (scratch) {
		p->plane = scratch;
		p->part = (int32_t *)(scratch + plane);
		p->sums = (int64_t *)(scratch + plane + part);
	}
	return (size_t)(plane + part + p->block * w->out * 8);
}

size_t depthwise_plane_scratch_bytes(const struct kernel_call *call, const struct window *window, unsigned bytes)
{
	struct depthwise_plane plane;
	return lay_out(&plane, call, window, bytes);
}

void depthwise_plane_init(struct depthwise_plane *plane, struct kernel_call *call, const struct window *window,
			  struct weighted *weighted)
{
	const struct window_axis *h = &window->h, *w = &window->w;
	*plane = (struct depthwise_plane){.call = call, .window = window, .weighted = weighted};
	lay_out(plane, call, window, weighted->data_bytes);
	for (int64_t y = 0; y < h->kernel; y++)
		for (int64_t x = 0; x < w->kernel; x++)
			plane->offsets[plane->n_taps++] = y * h->dilation * plane->width + x * w->dilation;
	if (plane->n_taps > TAPS_MAX)
		weighted->accumulator.sum_bytes = sizeof(int64_t);
}

/* False where it is no longer wanted. */
static bool fill(struct depthwise_plane *p, const uint8_t *in)
{
	const struct window_axis *h = &p->window->h, *w = &p->window->w;
	unsigned bytes = p->weighted->data_bytes;
	int64_t pending = 0;
	size_t row = (size_t)(w->in * bytes), width = (size_t)(p->width * bytes);
	memset(p->plane, 0, (size_t)h->before * width);
	memset(p->plane + (size_t)(h->before + h->in) * width, 0, (size_t)h->after * width);
	for (int64_t y = 0; y < h->in; y++) {
		uint8_t *to = p->plane + (size_t)(h->before + y) * width;
		memset(to, 0, (size_t)w->before * bytes);
		memcpy(to + w->before * bytes, in + (size_t)y * row, row);
		memset(to + (w->before + w->in) * bytes, 0, (size_t)w->after * bytes);
		if (!kernel_look(p->call, p->width, &pending))
			return false;
	}
	p->feature = in;
	return true;
}

static void load_weights(struct depthwise_plane *p, const uint8_t *weights)
{
	p->split = false;
	for (int64_t k = 0; k < p->n_taps; k++) {
		p->weights[k] = weighted_element(weights, p->weighted->weight_bytes, k);
		p->split |= p->weights[k] != (int8_t)p->weights[k];
	}
	for (int64_t k = 0; k < p->n_taps && p->split; k++) {
		int32_t low = p->weights[k] & 0xff;
		p->high[k] = (p->weights[k] - low) / 256;
		p->weights[k] = low;
	}
}

/* Sums of rows [y, y + n) of outputs by at most TAPS_MAX taps from `tap` on, in `part` at the distance of the
 * plane's rows. */
static void sum_rows(struct depthwise_plane *p, const int32_t *weights, int64_t tap, int64_t y, int64_t n)
{
	const struct window_axis *h = &p->window->h, *w = &p->window->w;
	struct taps from;
	bool one = h->stride == 1 && w->stride == 1;
	from.bytes = p->weighted->data_bytes;
	from.stride = w->stride;
	from.n = p->n_taps - tap < TAPS_MAX ? p->n_taps - tap : TAPS_MAX;
	memcpy(from.offsets, p->offsets + tap, (size_t)from.n * sizeof(*from.offsets));
	memcpy(from.weights, weights + tap, (size_t)from.n * sizeof(*from.weights));
	for (int64_t r = 0; r < (one ? 1 : n); r++) {
		from.in = p->plane + (y + r) * h->stride * p->width * from.bytes;
		taps_row(p->call->isa, &from, one ? (n - 1) * p->width + w->out : w->out, p->part + r * p->width);
	}
}

/* Adds `part` times `unit` to the sums, or sets them. */
static void take_in(struct depthwise_plane *p, int64_t n, int64_t unit, bool add)
{
	int64_t width = p->window->w.out;
	for (int64_t r = 0; r < n; r++)
		for (int64_t x = 0; x < width; x++) {
			int64_t sum = p->part[r * p->width + x] * unit;
			p->sums[r * width + x] = add ? p->sums[r * width + x] + sum : sum;
		}
}

/* Sums of 32 bits are finished as such. */
static void *gather_sums(struct depthwise_plane *p, int64_t y, int64_t n)
{
	int64_t width = p->window->w.out;
	if (p->weighted->accumulator.sum_bytes == 4) {
		sum_rows(p, p->weights, 0, y, n);
		for (int64_t r = 1; r < n; r++)
			memmove(p->part + r * width, p->part + r * p->width, (size_t)width * sizeof(*p->part));
		return p->part;
	}
	for (int64_t tap = 0; tap < p->n_taps; tap += TAPS_MAX) {
		sum_rows(p, p->weights, tap, y, n);
		take_in(p, n, 1, tap > 0);
		if (!p->split)
			continue;
		sum_rows(p, p->high, tap, y, n);
		take_in(p, n, 256, true);
	}
	return p->sums;
}

bool depthwise_plane_run(struct depthwise_plane *plane, int64_t o, const uint8_t *in, const uint8_t *weights,
			 uint8_t *out, int64_t *pending)
{
	int64_t height = plane->window->h.out, width = plane->window->w.out;
	if (plane->feature != in && !fill(plane, in))
		return false;
	load_weights(plane, weights);
	for (int64_t y = 0; y < height; y += plane->block) {
		int64_t n = height - y < plane->block ? height - y : plane->block;
		void *sums = gather_sums(plane, y, n);
		weighted_finish_channel(plane->weighted, sums, n * width, o,
					out + y * width * plane->weighted->data_bytes, &plane->call->counts);
		if (!kernel_step_rarely(plane->call, n * width, pending))
			return false;
	}
	return true;
}
