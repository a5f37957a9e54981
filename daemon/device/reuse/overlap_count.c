/* A window is counted on all NPUs at once: a plane holds, for one kind of bytes and 64 NPUs, one word for each
 * offset, in which a bit stands for an NPU. A tensor looks the same on the NPUs of one class, so that it goes into
 * the planes with a few stretches for each class; stretches as long as the window do not even need the planes.
 *
 * Invariant: `total` is the sum of the windows that are known; a window that is not dirty is known, or no guest
 * lies in it. */
#include "daemon/device/reuse/overlap_count.h"

#include <errno.h>

#include "daemon/device/geometry/bands.h"
#include "daemon/device/memory/bits.h"
#include "daemon/device/geometry/classes.h"
#include "daemon/device/reuse/overlap.h"

/* In order of strength, as the flags are. */
enum { EMPTY, PADDING, DUMMY, DATA, N_KINDS };

struct overlap_windows {
	uint64_t n;
	uint64_t cursor;		/* no window before it is dirty */
	uint64_t *dirty, *known;	/* a bit for each */
	struct overlap_excess *windows; /* only set where known: few pages of it may ever be touched */
	struct overlap_excess total;
	uint64_t *planes; /* room to count in, zero between counts: kind, 64 NPUs, offset */
	unsigned n_words;
};

static size_t words_of(uint64_t n_bits)
{
	return (size_t)((n_bits + 63) / 64);
}

int overlap_count_begin(struct device *device)
{
	const struct npumem_geometry *geometry = &device->options.geometry;
	const struct heap *heap = device->heap;
	if (device->windows)
		return 0;
	struct overlap_windows *w = heap_zalloc(heap, 1, sizeof(*w));
	if (!w)
		return -ENOMEM;
	device->windows = w;
	w->n = ((uint64_t)geometry->npu_bytes + OVERLAP_WINDOW_BYTES - 1) / OVERLAP_WINDOW_BYTES;
	w->n_words = (unsigned)((geometry->n_npus + 63) / 64);
	w->dirty = heap_zalloc(heap, words_of(w->n), sizeof(*w->dirty));
	w->known = heap_zalloc(heap, words_of(w->n), sizeof(*w->known));
	w->windows = heap_alloc(heap, (size_t)w->n * sizeof(*w->windows));
	w->planes = heap_zalloc(heap, (size_t)N_KINDS * w->n_words * OVERLAP_WINDOW_BYTES, sizeof(*w->planes));
	if (w->dirty && w->known && w->windows && w->planes)
		return 0;
	overlap_count_end(device);
	return -ENOMEM;
}

void overlap_count_end(struct device *device)
{
	struct overlap_windows *w = device->windows;
	if (!w)
		return;
	heap_free(device->heap, w->dirty);
	heap_free(device->heap, w->known);
	heap_free(device->heap, w->windows);
	heap_free(device->heap, w->planes);
	heap_free(device->heap, w);
	device->windows = NULL;
}

void overlap_count_again(struct device *device, int64_t from, int64_t to)
{
	struct overlap_windows *w = device->windows;
	if (from >= to)
		return;
	uint64_t first = (uint64_t)from / OVERLAP_WINDOW_BYTES, last = (uint64_t)(to - 1) / OVERLAP_WINDOW_BYTES;
	bits_set(w->dirty, first, last - first + 1);
	if (first < w->cursor)
		w->cursor = first;
}

/* ---- one window ---- */

struct window {
	const struct npumem_geometry *geometry;
	struct overlap_windows *windows;
	int64_t at, n;				    /* offsets */
	int64_t low, high;			    /* of these, from the window's start, what the planes hold */
	uint64_t whole[N_KINDS][CLASSES_WORDS_MAX]; /* NPUs that are of a kind all over the window */
	uint64_t all_npus[CLASSES_WORDS_MAX];
	unsigned n_tensors;
	struct overlap_excess excess;
	/* the tensor that is being put in, on one class of NPUs */
	const struct npumem_place *place;
	struct classes classes;
	const uint64_t *npus;
	int64_t n_npus;
};

static int64_t *count_of(struct npumem_blocks *blocks, unsigned kind)
{
	return kind == DATA	 ? &blocks->data
	       : kind == DUMMY	 ? &blocks->dummy
	       : kind == PADDING ? &blocks->padding
				 : &blocks->empty;
}

static unsigned kind_of(unsigned flag)
{
	return flag == NPUMEM_BYTE_DATA	     ? DATA
	       : flag == NPUMEM_BYTE_DUMMY   ? DUMMY
	       : flag == NPUMEM_BYTE_PADDING ? PADDING
					     : EMPTY;
}

static uint64_t *plane(const struct overlap_windows *w, unsigned kind, unsigned word)
{
	return w->planes + ((size_t)kind * w->n_words + word) * OVERLAP_WINDOW_BYTES;
}

static void put_band(void *ctx, int64_t from, int64_t to, unsigned flag)
{
	struct window *window = ctx;
	unsigned kind = kind_of(flag);
	*count_of(&window->excess.over, kind) += (to - from) * window->n_npus;
	from += window->place->offset - window->at;
	to += window->place->offset - window->at;
	bool whole = to - from == window->n;
	if (!whole) {
		window->low = from < window->low ? from : window->low;
		window->high = to > window->high ? to : window->high;
	}
	for (unsigned w = 0; w < window->windows->n_words; w++) {
		uint64_t bits = window->npus[w], *offsets = plane(window->windows, kind, w);
		window->whole[kind][w] |= whole ? bits : 0;
		if (whole || !bits)
			continue;
		for (int64_t i = from; i < to; i++)
			offsets[i] |= bits;
	}
}

static bool put_tensor(void *ctx, struct tensor *tensor)
{
	struct window *window = ctx;
	const struct npumem_place *place = &tensor->place;
	int64_t from = window->at - place->offset, to = from + window->n;
	from = from > 0 ? from : 0;
	to = to < place->bytes_per_npu ? to : place->bytes_per_npu;
	window->n_tensors++;
	if (from >= to)
		return true;
	window->place = place;
	if (!bands_may_hold(place, from, to)) {
		window->npus = window->all_npus;
		window->n_npus = window->geometry->n_npus;
		put_band(window, from, to, NPUMEM_BYTE_PADDING);
		return true;
	}
	classes_of(window->geometry, place, &window->classes);
	for (unsigned class = 0; class < MEET_CLASSES; class ++) {
		if (window->classes.first[class] < 0)
			continue;
		window->npus = window->classes.npus[class];
		window->n_npus = classes_count(&window->classes, class);
		bands_each(window->geometry, place, window->classes.first[class], from, to, true, put_band,
			   window);
	}
	return true;
}

/* Takes `n` offsets, on which 64 NPUs are of these kinds, off what the tensors there counted. */
static void take_off(struct overlap_excess *excess, const uint64_t kinds[N_KINDS], int64_t n)
{
	uint64_t stronger = 0;
	for (unsigned kind = N_KINDS; kind-- > 0; stronger |= kinds[kind])
		*count_of(&excess->over, kind) -= n * __builtin_popcountll(kinds[kind] & ~stronger);
	excess->lent += n * __builtin_popcountll(kinds[EMPTY] & (kinds[DATA] | kinds[DUMMY]));
}

/* Counts each byte of 64 NPUs once. Most offsets are like the one before. */
static void count_word(struct window *window, unsigned w)
{
	uint64_t *planes[N_KINDS], kinds[N_KINDS];
	int64_t start = window->low;
	for (unsigned k = 0; k < N_KINDS; k++) {
		planes[k] = plane(window->windows, k, w);
		kinds[k] = window->whole[k][w];
	}
	take_off(&window->excess, kinds, window->n - (window->high - window->low));
	for (int64_t i = window->low; i < window->high; i++) {
		bool last = i + 1 == window->high;
		uint64_t differs = 0;
		for (unsigned k = 0; k < N_KINDS && !last; k++)
			differs |= planes[k][i] ^ planes[k][i + 1];
		if (!last && !differs)
			continue;
		for (unsigned k = 0; k < N_KINDS; k++)
			kinds[k] = planes[k][i] | window->whole[k][w];
		take_off(&window->excess, kinds, i + 1 - start);
		start = i + 1;
	}
	for (unsigned k = 0; k < N_KINDS; k++)
		memset(planes[k] + window->low, 0, (size_t)(window->high - window->low) * sizeof(uint64_t));
}

static unsigned count_window(struct device *device, uint64_t number, struct overlap_excess *excess)
{
	struct window window = {.geometry = &device->options.geometry, .windows = device->windows};
	int64_t npu_bytes = device->options.geometry.npu_bytes;
	window.at = (int64_t)number * OVERLAP_WINDOW_BYTES;
	window.n = npu_bytes - window.at < OVERLAP_WINDOW_BYTES ? npu_bytes - window.at : OVERLAP_WINDOW_BYTES;
	window.low = window.n;
	for (int64_t left = window.geometry->n_npus, w = 0; left > 0; left -= 64)
		window.all_npus[w++] = left < 64 ? (UINT64_C(1) << left) - 1 : UINT64_MAX;
	overlap_each(device, window.at, window.n, NULL, put_tensor, &window);
	if (window.low > window.high)
		window.low = window.high = 0;
	for (unsigned w = 0; w < window.windows->n_words; w++)
		count_word(&window, w);
	*excess = window.excess;
	return window.n_tensors;
}

/* ---- all of them ---- */

static void add(struct overlap_excess *total, const struct overlap_excess *excess, int64_t sign)
{
	total->over.data += sign * excess->over.data;
	total->over.dummy += sign * excess->over.dummy;
	total->over.padding += sign * excess->over.padding;
	total->over.empty += sign * excess->over.empty;
	total->lent += sign * excess->lent;
}

bool overlap_count(struct device *device, unsigned most)
{
	struct overlap_windows *w = device->windows;
	unsigned n_tensors = 0;
	if (!w)
		return true;
	while (n_tensors < most) {
		w->cursor = bits_first_not(w->dirty, false, w->cursor, w->n - w->cursor);
		if (w->cursor == w->n)
			return true;
		uint64_t i = w->cursor;
		if (w->known[i / 64] >> i % 64 & 1)
			add(&w->total, &w->windows[i], -1);
		n_tensors += 1 + count_window(device, i, &w->windows[i]);
		add(&w->total, &w->windows[i], 1);
		bits_set(w->known, i, 1);
		bits_clear(w->dirty, i, 1);
	}
	return false;
}

struct overlap_excess overlap_sum(struct device *device)
{
	while (!overlap_count(device, UINT32_MAX))
		;
	return device->windows ? device->windows->total : (struct overlap_excess){.lent = 0};
}
