/* A window is counted on all NPUs at once, group by group of those on which all of its tensors look the same:
 * there are few, as a tensor has a few itself. A group has a plane of bits for each kind.
 *
 * What a window has is kept for a span of some windows together, so that large NPUs take no more memory for it.
 *
 * Invariant: `total` is the sum of the spans that are known; a span that is not dirty is known, or no guest lies
 * in it. */
#include "daemon/device/reuse/overlap_count.h"

#include <errno.h>

#include "daemon/device/geometry/npu_groups.h"
#include "daemon/device/memory/bits.h"
#include "daemon/device/reuse/overlap_walk.h"

/* In order of strength, as the flags are. */
enum { EMPTY, PADDING, DUMMY, DATA, N_KINDS };
enum { WINDOW_WORDS = OVERLAP_WINDOW_BYTES / 64 };
/* It is host memory in nobody's books: 2.6 MB. A span is one window on NPUs of up to 16 MiB. */
enum { SPANS_MAX = 1 << 16 };

struct window {
	const struct npumem_geometry *geometry;
	struct overlap_windows *windows;
	uint64_t n_changes; /* the device's when it was begun */
	bool has_groups;
	struct overlap_cursor cursor; /* over its tensors, once for the groups, and once to put them in */
	int64_t at;		      /* offset */
	unsigned n_groups;	      /* of NPUs on which all tensors of the window look the same */
	struct overlap_excess excess; /* of its span so far */
};

struct overlap_windows {
	uint64_t n, span_bytes;	      /* spans, each of so many offsets */
	uint64_t cursor;	      /* no span before it is dirty */
	uint64_t *dirty, *known;      /* a bit for each */
	struct overlap_excess *spans; /* only set where known: few pages of it may ever be touched */
	struct overlap_excess total;
	struct window now; /* being counted; without a geometry: none */
	/* Room to count in. */
	uint64_t *planes;   /* group, kind, offset */
	uint16_t *group_of; /* of NPUs that a group begins with, and of n_npus */
	uint16_t *first;    /* NPU of a group, and n_npus */
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
	w->span_bytes = OVERLAP_WINDOW_BYTES;
	while ((uint64_t)geometry->npu_bytes > w->span_bytes * SPANS_MAX)
		w->span_bytes *= 2;
	w->n = ((uint64_t)geometry->npu_bytes + w->span_bytes - 1) / w->span_bytes;
	w->dirty = heap_zalloc(heap, words_of(w->n), sizeof(*w->dirty));
	w->known = heap_zalloc(heap, words_of(w->n), sizeof(*w->known));
	w->spans = heap_alloc(heap, (size_t)w->n * sizeof(*w->spans));
	size_t n_npus = (size_t)geometry->n_npus;
	w->planes = heap_alloc(heap, n_npus * N_KINDS * WINDOW_WORDS * sizeof(*w->planes));
	w->group_of = heap_alloc(heap, 2 * (n_npus + 1) * sizeof(*w->group_of));
	if (!w->dirty || !w->known || !w->spans || !w->planes || !w->group_of) {
		overlap_count_end(device);
		return -ENOMEM;
	}
	w->first = w->group_of + n_npus + 1;
	return 0;
}

void overlap_count_end(struct device *device)
{
	struct overlap_windows *w = device->windows;
	if (!w)
		return;
	heap_free(device->heap, w->dirty);
	heap_free(device->heap, w->known);
	heap_free(device->heap, w->spans);
	heap_free(device->heap, w->planes);
	heap_free(device->heap, w->group_of);
	heap_free(device->heap, w);
	device->windows = NULL;
}

void overlap_count_again(struct device *device, int64_t from, int64_t to)
{
	struct overlap_windows *w = device->windows;
	w->now.geometry = NULL;
	if (from >= to)
		return;
	uint64_t first = (uint64_t)from / w->span_bytes, last = (uint64_t)(to - 1) / w->span_bytes;
	bits_set(w->dirty, first, last - first + 1);
	if (first < w->cursor)
		w->cursor = first;
}

/* ---- one window ---- */

static uint64_t *plane(const struct overlap_windows *w, unsigned group, unsigned kind)
{
	return w->planes + ((size_t)group * N_KINDS + kind) * WINDOW_WORDS;
}

static bool is_in(const struct window *window, const struct tensor *tensor)
{
	return tensor_offset(tensor) < window->at + OVERLAP_WINDOW_BYTES && tensor_end(tensor) > window->at;
}

static void cut_groups(struct window *window, const struct tensor *tensor)
{
	int64_t cuts[KIND_MASK_CUTS];
	for (unsigned i = kind_mask_cuts(window->geometry, TENSOR_PLACE(tensor), KIND_MASK_EACH, cuts); i-- > 0;)
		window->windows->group_of[cuts[i]] = 1;
}

/* Numbers the groups, which begin where group_of is not 0. */
static void number_groups(struct window *window)
{
	struct overlap_windows *w = window->windows;
	int64_t n_npus = window->geometry->n_npus;
	for (int64_t npu = 0; npu < n_npus; npu++)
		if (npu == 0 || w->group_of[npu]) {
			w->first[window->n_groups] = (uint16_t)npu;
			w->group_of[npu] = (uint16_t)window->n_groups++;
		}
	w->first[window->n_groups] = (uint16_t)n_npus;
	w->group_of[n_npus] = (uint16_t)window->n_groups;
	memset(w->planes, 0, window->n_groups * (size_t)N_KINDS * WINDOW_WORDS * sizeof(*w->planes));
}

static int64_t bits_of(const uint64_t *words)
{
	int64_t n = 0;
	for (unsigned i = 0; i < WINDOW_WORDS; i++)
		n += __builtin_popcountll(words[i]);
	return n;
}

static int64_t *count_of(struct npumem_blocks *blocks, unsigned kind)
{
	return kind == DATA	 ? &blocks->data
	       : kind == DUMMY	 ? &blocks->dummy
	       : kind == PADDING ? &blocks->padding
				 : &blocks->empty;
}

/* Puts a tensor in, on NPUs [from, to) on which it looks the same. */
static void put_group(struct window *window, const struct npumem_place *place, int64_t from, int64_t to)
{
	const struct overlap_windows *w = window->windows;
	struct kind_mask mask;
	struct kind_mask_split split;
	const uint64_t *const kinds[N_KINDS] = {split.empty, split.padding, split.dummy, split.data};
	kind_mask_init(&mask, window->geometry, place, place->offset, from, KIND_MASK_EACH);
	kind_mask_split(&mask, window->at, WINDOW_WORDS, &split);
	for (unsigned kind = 0; kind < N_KINDS; kind++) {
		int64_t n = bits_of(kinds[kind]);
		*count_of(&window->excess.over, kind) += n * (to - from);
		for (unsigned group = w->group_of[from]; n && group < w->group_of[to]; group++)
			for (unsigned i = 0; i < WINDOW_WORDS; i++)
				plane(w, group, kind)[i] |= kinds[kind][i];
	}
}

static void put_tensor(struct window *window, const struct tensor *tensor)
{
	struct npu_groups groups;
	npu_groups_init(&groups, window->geometry);
	npu_groups_cut(&groups, window->geometry, TENSOR_PLACE(tensor), KIND_MASK_EACH);
	for (unsigned i = 0; i < groups.n; i++)
		put_group(window, TENSOR_PLACE(tensor), groups.first[i], groups.first[i + 1]);
}

/* Counts each byte of a group once, as its strongest kind. */
static void count_group(struct window *window, unsigned group)
{
	const struct overlap_windows *w = window->windows;
	int64_t n_npus = w->first[group + 1] - w->first[group];
	uint64_t left[WINDOW_WORDS], lent[WINDOW_WORDS], only[WINDOW_WORDS];
	memset(left, 0xff, sizeof(left));
	for (unsigned i = 0; i < WINDOW_WORDS; i++)
		lent[i] = plane(w, group, EMPTY)[i] & plane(w, group, DATA)[i];
	window->excess.lent += bits_of(lent) * n_npus;
	for (unsigned kind = N_KINDS; kind-- > 0;) {
		for (unsigned i = 0; i < WINDOW_WORDS; i++) {
			only[i] = plane(w, group, kind)[i] & left[i];
			left[i] &= ~only[i];
		}
		*count_of(&window->excess.over, kind) -= bits_of(only) * n_npus;
	}
}

/* `before`: of the windows of its span that are before it. */
static void begin_window(struct device *device, int64_t at, struct overlap_excess before)
{
	struct overlap_windows *w = device->windows;
	w->now = (struct window){.geometry = &device->options.geometry,
				 .windows = w,
				 .n_changes = device->n_changes,
				 .at = at,
				 .excess = before};
	memset(w->group_of, 0, (size_t)(w->now.geometry->n_npus + 1) * sizeof(*w->group_of));
}

/* Counts on until no more tensors may be looked at (false), or the window is done. */
static bool count_window(struct device *device, unsigned *most)
{
	struct window *window = &device->windows->now;
	for (; *most; --*most) {
		struct tensor *tensor = overlap_next(device, window->at, OVERLAP_WINDOW_BYTES, &window->cursor);
		if (tensor && is_in(window, tensor))
			(window->has_groups ? put_tensor : cut_groups)(window, tensor);
		if (tensor)
			continue;
		if (window->has_groups)
			break;
		number_groups(window);
		window->has_groups = true;
		window->cursor = (struct overlap_cursor){.offset = 0};
	}
	for (unsigned group = 0; *most && group < window->n_groups; group++)
		count_group(window, group);
	return *most;
}

/* ---- all of them ---- */

static void add_excess(struct overlap_excess *total, const struct overlap_excess *excess, int64_t sign)
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
	if (!w)
		return true;
	for (;;) {
		w->cursor = bits_first_not(w->dirty, false, w->cursor, w->n - w->cursor);
		if (w->cursor == w->n)
			return true;
		uint64_t i = w->cursor;
		/* Any tensor that comes, goes or moves may be one of its own. */
		if (!w->now.geometry || w->now.n_changes != device->n_changes)
			begin_window(device, (int64_t)(i * w->span_bytes), (struct overlap_excess){.lent = 0});
		if (!count_window(device, &most))
			return false;
		uint64_t next = (uint64_t)w->now.at + OVERLAP_WINDOW_BYTES;
		if (next < (i + 1) * w->span_bytes && next < (uint64_t)device->options.geometry.npu_bytes) {
			begin_window(device, (int64_t)next, w->now.excess);
			continue;
		}
		if (w->known[i / 64] >> i % 64 & 1)
			add_excess(&w->total, &w->spans[i], -1);
		w->spans[i] = w->now.excess;
		add_excess(&w->total, &w->spans[i], 1);
		bits_set(w->known, i, 1);
		bits_clear(w->dirty, i, 1);
		w->now.geometry = NULL;
	}
}

struct overlap_excess overlap_sum(const struct device *device)
{
	return device->windows ? device->windows->total : (struct overlap_excess){.lent = 0};
}
