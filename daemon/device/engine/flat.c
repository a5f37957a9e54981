/* Coordinates of the padded input are q * stride + residue; a plane of a residue is indexed by q. */
#include "daemon/device/engine/flat.h"

static int64_t most(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

static int64_t greatest_divisor(int64_t a, int64_t b)
{
	while (b) {
		int64_t rest = a % b;
		a = b;
		b = rest;
	}
	return a;
}

/* Tap t has residue (t * dilation) % stride, which repeats with a period. */
static struct flat_axis axis_init(const struct window_axis *axis)
{
	int64_t period = axis->stride / greatest_divisor(axis->stride, axis->dilation);
	return (struct flat_axis){
		.extent = axis->out + (axis->kernel - 1) * axis->dilation / axis->stride,
		.n_residues = axis->kernel < period ? axis->kernel : period,
	};
}

/* Planes cost memory and time by their size, whatever is in them. */
static bool is_ordinary(const struct window_axis *axis)
{
	return axis->kernel > 0 &&
	       axis->stride * (axis->out + (axis->kernel - 1) * axis->dilation / axis->stride) <= 2 * axis->in + 8;
}

/* Of residue number r: [*first, *first + *n) are inputs, the first of them *in. Asked for each channel, of which
 * there may be many small ones: a stride of 1 needs no division. */
static void find_inputs(const struct window_axis *axis, const struct flat_axis *flat, int64_t r, int64_t *first,
			int64_t *in, int64_t *n)
{
	int64_t stride = axis->stride, inputs;
	if (stride == 1) {
		*first = most(axis->before, 0);
		*in = *first - axis->before;
		inputs = most(axis->in - *in, 0);
	} else {
		int64_t residue = r * axis->dilation % stride;
		*first = axis->before > residue ? (axis->before - residue + stride - 1) / stride : 0;
		*in = *first * stride + residue - axis->before;
		inputs = *in < axis->in ? (axis->in - *in - 1) / stride + 1 : 0;
	}
	int64_t room = most(flat->extent - *first, 0);
	*n = inputs < room ? inputs : room;
}

/* Columns past the pitch are the first ones of the next row, which must be zeros of all planes. */
static int64_t find_pitch(const struct flat *flat)
{
	enum { RESIDUES_MOST = 64 };
	const struct window_axis *axis = &flat->phase->w.window;
	int64_t zeros = flat->w.extent, pitch = axis->out;
	/* A stride may be as long as a row, and this is asked on the loop: of many residues only what none of them
	 * is beyond, which is a column less or more. */
	if (flat->w.n_residues > RESIDUES_MOST) {
		int64_t end = (axis->in - 1 + most(axis->before, 0)) / axis->stride + 1;
		zeros = most(axis->before, 0) / axis->stride;
		return most(most(pitch, end < flat->w.extent ? end : flat->w.extent), flat->w.extent - zeros);
	}
	for (int64_t r = 0; r < flat->w.n_residues; r++) {
		int64_t first, in, n;
		find_inputs(axis, &flat->w, r, &first, &in, &n);
		if (n == 0)
			continue;
		zeros = first < zeros ? first : zeros;
		pitch = most(pitch, first + n);
	}
	return most(pitch, flat->w.extent - zeros);
}

bool flat_init(struct flat *flat, const struct phase *phase)
{
	const struct window_axis *h = &phase->h.window, *w = &phase->w.window;
	if (!is_ordinary(h) || !is_ordinary(w))
		return false;
	*flat = (struct flat){.phase = phase, .h = axis_init(h), .w = axis_init(w)};
	flat->pitch = find_pitch(flat);
	flat->n_pixels = (h->out - 1) * flat->pitch + w->out;
	flat->reach = flat_offset(flat, h->kernel - 1, w->kernel - 1);
	int64_t seen = flat->reach + (flat->n_pixels + UKERNEL_VECTOR - 1) / UKERNEL_VECTOR * UKERNEL_VECTOR;
	flat->length = most(seen, flat->h.extent * flat->pitch);
	flat->length = (flat->length + UKERNEL_COLUMNS - 1) / UKERNEL_COLUMNS * UKERNEL_COLUMNS;
	flat->as_it_lies = h->kernel * w->kernel == 1 && h->stride * w->stride == 1 && h->before == 0 &&
			   w->before == 0 && h->in == h->out && w->in == w->out;
	return true;
}

int64_t flat_plane(const struct flat *flat, int64_t y, int64_t x)
{
	return y % flat->h.n_residues * flat->w.n_residues + x % flat->w.n_residues;
}

int64_t flat_offset(const struct flat *flat, int64_t y, int64_t x)
{
	const struct window_axis *h = &flat->phase->h.window, *w = &flat->phase->w.window;
	return y * h->dilation / h->stride * flat->pitch + x * w->dilation / w->stride;
}

bool flat_spread(const struct flat *flat, struct flat_span span, const struct ukernel *ukernel, unsigned bytes,
		 const void *feature, void *planes, bool (*look)(void *ctx, int64_t elements), void *ctx)
{
	enum { STRETCH = 16384 }; /* elements between two looks */
	const struct window_axis *h = &flat->phase->h.window, *w = &flat->phase->w.window;
	for (int64_t plane = 0; plane < flat_n_planes(flat); plane++) {
		int64_t y, in_y, rows, x, in_x, columns, some, wide;
		uint8_t *to = (uint8_t *)planes + plane * flat->length * bytes;
		find_inputs(h, &flat->h, plane / flat->w.n_residues, &y, &in_y, &rows);
		find_inputs(w, &flat->w, plane % flat->w.n_residues, &x, &in_x, &columns);
		int64_t end = (span.end + flat->pitch - 1) / flat->pitch - y;
		rows = rows < end ? rows : end;
		int64_t most_rows = rows * columns <= STRETCH ? rows : columns < STRETCH ? STRETCH / columns : 1;
		for (int64_t row = most(span.first / flat->pitch - y, 0); row < rows && columns > 0; row += some) {
			some = rows - row < most_rows ? rows - row : most_rows;
			const uint8_t *from =
				(const uint8_t *)feature + ((in_y + row * h->stride) * w->in + in_x) * bytes;
			uint8_t *row_to = to + ((y + row) * flat->pitch + x) * bytes;
			for (int64_t at = 0; at < columns; at += wide) {
				wide = columns - at < STRETCH ? columns - at : STRETCH;
				ukernel->spread(bytes, from + at * w->stride * bytes, h->stride * w->in, w->stride,
						row_to + at * bytes, flat->pitch, some, wide);
				if (!look(ctx, some * wide))
					return false;
			}
		}
		if (!look(ctx, 1))
			return false;
	}
	return true;
}

static uint64_t bits(int64_t n)
{
	return n >= 64 ? ~UINT64_C(0) : (UINT64_C(1) << n) - 1;
}

int64_t flat_strip(const struct flat *flat, int64_t pixel, struct ukernel_strip *strip)
{
	int64_t out = flat->phase->w.window.out, left = flat->n_pixels - pixel;
	int64_t y = pixel / flat->pitch, x = pixel % flat->pitch;
	int64_t n = left < UKERNEL_COLUMNS ? left : UKERNEL_COLUMNS, first = y * out + (x < out ? x : out), run;
	*strip = (struct ukernel_strip){.n_columns = (unsigned)n};
	for (int64_t i = 0; i < n; i += run, x = (x + run) % flat->pitch) {
		run = x < out ? out - x : flat->pitch - x;
		run = run < n - i ? run : n - i;
		if (x < out) {
			strip->real |= bits(run) << i;
			strip->n_real += (unsigned)run;
		}
	}
	return first;
}
