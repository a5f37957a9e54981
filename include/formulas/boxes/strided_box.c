/* Whatever leaves no gap is joined to one run before anything is asked; runs of up to 64 bytes are one stamp of
 * bits, and stamps at distances of up to 64 bytes are written by whole words. So a window costs what is in it, and
 * dense data costs next to nothing.
 *
 * Axes are tangled where a step is shorter than what it repeats, as only strides of the caller's can be: then
 * bytes of one step lie between those of others, and each step that may touch an offset has to be asked. */
#include "include/formulas/boxes/strided_box.h"

#include <string.h>

static uint64_t low_bits(int64_t n)
{
	return n >= 64 ? UINT64_MAX : ~(UINT64_MAX << n);
}

/* ---- making one ---- */

/* The dims that repeat anything, shortest stride first; their number. */
static unsigned sort_dims(const struct strided_box_dim *dims, unsigned n, struct strided_box_dim *sorted)
{
	unsigned n_sorted = 0;
	for (unsigned i = 0; i < n; i++) {
		unsigned at = n_sorted;
		if (dims[i].count == 1)
			continue;
		for (; at > 0 && sorted[at - 1].stride > dims[i].stride; at--)
			sorted[at] = sorted[at - 1];
		sorted[at] = dims[i];
		n_sorted++;
	}
	return n_sorted;
}

static int64_t last_step(const struct strided_box_dim *dim)
{
	return (dim->count - 1) * dim->stride;
}

/* Takes into one stamp the dims that fit; how many. */
static unsigned make_stamp(struct strided_box *box, const struct strided_box_dim *dims, unsigned n)
{
	unsigned k = 0;
	box->stamp = low_bits(box->run);
	for (; k < n && box->run + last_step(&dims[k]) <= STRIDED_BOX_STAMP_BITS; k++) {
		uint64_t one = box->stamp;
		for (int64_t i = 1; i < dims[k].count; i++)
			box->stamp |= one << i * dims[k].stride;
		box->run += last_step(&dims[k]);
	}
	return k;
}

static void make_pattern(struct strided_box *box)
{
	const struct strided_box_axis *last = &box->axes[box->n ? box->n - 1 : 0];
	if (!box->n || !box->stamp || last->stride > STRIDED_BOX_STAMP_BITS || last->stride < box->run)
		return;
	box->pattern = box->stamp;
	for (int64_t n = last->stride; n < STRIDED_BOX_STAMP_BITS; n *= 2)
		box->pattern |= box->pattern << n;
}

/* Makes axes of the dims that are left: one of two where the second goes on as the first. */
static void make_axes(struct strided_box *box, struct strided_box_dim *dims, unsigned n)
{
	unsigned n_axes = 0;
	int64_t reach = box->run;
	for (unsigned i = 0; i < n; i++) {
		if (n_axes && dims[i].stride == dims[n_axes - 1].stride * dims[n_axes - 1].count)
			dims[n_axes - 1].count *= dims[i].count;
		else
			dims[n_axes++] = dims[i];
	}
	box->n = n_axes;
	box->n_tangled = 0;
	for (unsigned i = 0; i < n_axes; i++) {
		unsigned level = n_axes - 1 - i;
		box->axes[level] = (struct strided_box_axis){dims[i].stride, dims[i].count, reach};
		if (dims[i].stride < reach && level >= box->n_tangled)
			box->n_tangled = level + 1;
		reach += last_step(&dims[i]);
	}
	box->end = box->low + reach;
}

bool strided_box_init(struct strided_box *box, int64_t low, int64_t bytes, const struct strided_box_dim *dims,
		      unsigned n)
{
	struct strided_box_dim sorted[STRIDED_BOX_DIMS];
	unsigned used = 0;
	for (unsigned i = 0; i < n; i++)
		if (dims[i].count < 1)
			return false;
	n = sort_dims(dims, n, sorted);
	box->low = low;
	box->run = bytes;
	box->stamp = box->pattern = 0;
	for (; used < n && sorted[used].stride <= box->run; used++)
		box->run += last_step(&sorted[used]);
	if (box->run <= STRIDED_BOX_STAMP_BITS)
		used += make_stamp(box, sorted + used, n - used);
	make_axes(box, sorted + used, n - used);
	make_pattern(box);
	return true;
}

/* ---- its bits ---- */

struct window {
	int64_t from, to;
	uint64_t *bits;
};

/* Clips [*low, *high) to the window, and counts from its start; false where nothing is left. */
static bool clip(const struct window *window, int64_t *low, int64_t *high)
{
	*low = (*low > window->from ? *low : window->from) - window->from;
	*high = (*high < window->to ? *high : window->to) - window->from;
	return *low < *high;
}

static void fill_run(const struct window *window, int64_t low, int64_t high)
{
	if (!clip(window, &low, &high))
		return;
	int64_t w = low / 64, last = (high - 1) / 64;
	uint64_t head = UINT64_MAX << low % 64, tail = UINT64_MAX >> (63 - (high - 1) % 64);
	if (w == last) {
		window->bits[w] |= head & tail;
		return;
	}
	window->bits[w++] |= head;
	while (w < last)
		window->bits[w++] = UINT64_MAX;
	window->bits[w] |= tail;
}

static void fill_stamp(const struct window *window, int64_t low, uint64_t stamp)
{
	int64_t at = low - window->from;
	if (at < 0) {
		window->bits[0] |= at > -64 ? stamp >> -at : 0;
		return;
	}
	window->bits[at / 64] |= stamp << at % 64;
	if (at % 64 && low + 64 - at % 64 < window->to)
		window->bits[at / 64 + 1] |= stamp >> (64 - at % 64);
}

/* All steps of the last axis, a word at a time. */
static void fill_pattern(const struct window *window, const struct strided_box *box, int64_t base)
{
	const struct strided_box_axis *axis = &box->axes[box->n - 1];
	int64_t low = base, high = base + (axis->count - 1) * axis->stride + box->run;
	if (!clip(window, &low, &high))
		return;
	int64_t w = low / 64, last = (high - 1) / 64, advance = 64 % axis->stride;
	/* How far behind the start of a step the word's first bit is; before the first step, as if there were
	 * more. */
	int64_t phase = (window->from + 64 * w - base) % axis->stride;
	uint64_t keep = UINT64_MAX << low % 64;
	phase += phase < 0 ? axis->stride : 0;
	for (; w <= last; w++) {
		uint64_t bits = box->pattern >> phase;
		if (phase)
			bits |= box->pattern << (axis->stride - phase);
		if (w == last)
			keep &= UINT64_MAX >> (63 - (high - 1) % 64);
		window->bits[w] |= bits & keep;
		keep = UINT64_MAX;
		phase += advance;
		phase -= phase >= axis->stride ? axis->stride : 0;
	}
}

/* The first step of an axis that may reach `at`, and behind the last that begins before `to`. */
static int64_t first_step(const struct strided_box_axis *axis, int64_t base, int64_t at)
{
	int64_t behind = at - base - axis->reach;
	return behind < 0 ? 0 : behind / axis->stride + 1;
}

static int64_t end_step(const struct strided_box_axis *axis, int64_t base, int64_t to)
{
	if (to <= base)
		return 0;
	int64_t n = (to - 1 - base) / axis->stride + 1;
	return n < axis->count ? n : axis->count;
}

static void fill_axis(const struct window *window, const struct strided_box *box, unsigned level, int64_t base)
{
	if (level == box->n) {
		if (box->stamp)
			fill_stamp(window, base, box->stamp);
		else
			fill_run(window, base, base + box->run);
		return;
	}
	if (box->pattern && level + 1 == box->n) {
		fill_pattern(window, box, base);
		return;
	}
	const struct strided_box_axis *axis = &box->axes[level];
	int64_t end = end_step(axis, base, window->to);
	for (int64_t i = first_step(axis, base, window->from); i < end; i++)
		fill_axis(window, box, level + 1, base + i * axis->stride);
}

void strided_box_fill(const struct strided_box *box, int64_t from, unsigned n_words, uint64_t *bits)
{
	const struct window window = {from, from + 64 * (int64_t)n_words, bits};
	if (box->low < window.to && box->end > from)
		fill_axis(&window, box, 0, box->low);
}

/* ---- how far it goes on ---- */

/* Within a stamp that begins at `base`. */
static int64_t stamp_until(const struct strided_box *box, int64_t base, int64_t at, bool *in)
{
	uint64_t rest = box->stamp ? box->stamp >> (at - base) : 1;
	*in = rest & 1;
	if (!box->stamp)
		return base + box->run;
	/* The last bit of a stamp is set, so that one without a change ends with the stamp. */
	uint64_t change = *in ? ~rest : rest;
	int64_t n = change ? __builtin_ctzll(change) : 64;
	return at + (n < base + box->run - at ? n : base + box->run - at);
}

static int64_t nested_until(const struct strided_box *box, unsigned level, int64_t base, int64_t at, bool *in)
{
	int64_t next = INT64_MAX;
	*in = false;
	for (; level < box->n; level++) {
		const struct strided_box_axis *axis = &box->axes[level];
		int64_t i = (at - base) / axis->stride;
		i = i < axis->count ? i : axis->count - 1;
		base += i * axis->stride;
		if (i + 1 < axis->count)
			next = base + axis->stride;
		if (at >= base + axis->reach)
			return next;
	}
	return at < base + box->run ? stamp_until(box, base, at, in) : next;
}

static int64_t axis_until(const struct strided_box *box, unsigned level, int64_t base, int64_t at, bool *in)
{
	*in = false;
	if (at < base)
		return base;
	if (level >= box->n_tangled)
		return nested_until(box, level, base, at, in);
	const struct strided_box_axis *axis = &box->axes[level];
	int64_t end = end_step(axis, base, at + 1), until = INT64_MAX;
	if (end < axis->count)
		until = base + end * axis->stride;
	for (int64_t i = first_step(axis, base, at); i < end && !*in; i++) {
		int64_t step_until = axis_until(box, level + 1, base + i * axis->stride, at, in);
		until = *in || step_until < until ? step_until : until;
	}
	return until;
}

int64_t strided_box_until(const struct strided_box *box, int64_t at, bool *in)
{
	*in = false;
	return at >= box->end ? INT64_MAX : axis_until(box, 0, box->low, at, in);
}

static int64_t common_multiple(int64_t a, int64_t b)
{
	const int64_t most = INT64_C(1) << 31;
	int64_t x = a, y = b;
	while (y) {
		int64_t rest = x % y;
		x = y;
		y = rest;
	}
	return a / x <= most / b ? a / x * b : most;
}

int64_t strided_box_period(const struct strided_box *box, int64_t at, int64_t most, int64_t *period)
{
	int64_t base = box->low;
	bool in;
	for (unsigned k = 0; k < box->n && !box->n_tangled && at >= base && at < box->end; k++) {
		const struct strided_box_axis *axis = &box->axes[k];
		int64_t end = base + (axis->count - 1) * axis->stride + axis->reach;
		if (axis->stride <= most && at < end) {
			*period = common_multiple(*period, axis->stride);
			return end;
		}
		base += (end_step(axis, base, at + 1) - 1) * axis->stride;
	}
	return strided_box_until(box, at, &in);
}
