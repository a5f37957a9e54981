/* A plain model of a whole device: for each byte its value, whether it was written, whether it is damaged, and
 * what kind it is for every tensor. All is drawn element by element from shapes and strides; no rule of the
 * product is used, only what the design says of a byte. Made for small devices: everything is looked at byte by
 * byte.
 *
 * Invariant: `count` holds, for each byte and kind, of how many live tensors it is that. */
#ifndef TESTS_SUPPORT_BYTEMAP_H
#define TESTS_SUPPORT_BYTEMAP_H

#include <stdlib.h>
#include <string.h>

#include <npumem/layout.h>

enum { BYTEMAP_EMPTY, BYTEMAP_PADDING, BYTEMAP_DUMMY, BYTEMAP_DATA, BYTEMAP_KINDS };
enum { BYTEMAP_POISON = 0xdb, BYTEMAP_QUANTUM = 4 };

/* A tensor, or a view, which has elements and no kinds. */
struct bytemap_tensor {
	struct npumem_place place;
	struct bytemap_tensor *base;
	bool dma_only, sealed, unchecked;
	uint8_t *kind; /* [npu][byte of the footprint] */
	int64_t n_elements, element_bytes;
	int64_t *byte;		     /* of each element, row-major: npu * bytes_per_npu + byte of the footprint */
	int32_t *of;		     /* of a view's elements: the base's */
	struct bytemap_tensor *next; /* of the live ones that are no views */
	int64_t destroyed;	     /* bytes of data that the last poisoning took from it */
};

struct bytemap {
	int64_t n_npus, npu_bytes;
	uint8_t *value; /* [npu][offset], as the three below */
	bool *written, *damaged;
	uint8_t (*count)[BYTEMAP_KINDS];
	struct bytemap_tensor *tensors;
};

static inline void bytemap_init(struct bytemap *map, const struct npumem_geometry *geometry)
{
	size_t bytes = (size_t)(geometry->n_npus * geometry->npu_bytes);
	*map = (struct bytemap){.n_npus = geometry->n_npus, .npu_bytes = geometry->npu_bytes};
	map->value = calloc(bytes, 1);
	map->written = calloc(bytes, sizeof(*map->written));
	map->damaged = calloc(bytes, sizeof(*map->damaged));
	map->count = calloc(bytes, sizeof(*map->count));
	if (!map->value || !map->written || !map->damaged || !map->count)
		abort();
}

static inline void bytemap_deinit(struct bytemap *map)
{
	free(map->value);
	free(map->written);
	free(map->damaged);
	free(map->count);
}

/* ---- one tensor ---- */

static inline void bytemap_paint_word(struct bytemap_tensor *t, int64_t npu, int64_t at, int64_t used)
{
	for (int64_t i = 0; i < t->place.word_bytes; i++)
		t->kind[npu * t->place.bytes_per_npu + at + i] = i < used ? BYTEMAP_DATA : BYTEMAP_DUMMY;
}

/* Places the elements of one n and c, which lie on `npu` in block row `row`, in row-major order. */
static inline void bytemap_feature(struct bytemap_tensor *t, int64_t npu, int64_t row, int64_t n, int64_t width,
				   int64_t *next)
{
	const struct npumem_place *p = &t->place;
	int64_t group = n / p->lanes, lane = n % p->lanes;
	int64_t left = p->shape.n - group * p->lanes, lanes = left < p->lanes ? left : p->lanes;
	for (int64_t h = 0; h < p->shape.h; h++)
		for (int64_t w = 0; w < width; w++) {
			int64_t at =
				(group * p->stride.n + row * p->stride.c + h * p->stride.h + w * p->stride.w) *
				p->word_bytes;
			bytemap_paint_word(t, npu, at, lanes * t->element_bytes);
			t->byte[(*next)++] = npu * p->bytes_per_npu + at + lane * t->element_bytes;
		}
}

/* What is not data or dummy: a block of a row in which this NPU stores nothing is empty, the rest is padding; with
 * strides of the caller's, empty is where another NPU has something. */
static inline void bytemap_paint_rest(struct bytemap_tensor *t, int64_t n_npus, const bool *stored, int64_t n_rows)
{
	const struct npumem_place *p = &t->place;
	int64_t block = p->stride.c * p->word_bytes, batch = p->stride.n * p->word_bytes;
	for (int64_t i = 0; i < n_npus * p->bytes_per_npu; i++) {
		int64_t npu = i / p->bytes_per_npu, byte = i % p->bytes_per_npu;
		bool empty = false;
		if (t->kind[i] == BYTEMAP_DATA || t->kind[i] == BYTEMAP_DUMMY)
			continue;
		if (p->layout == NPUMEM_STRIDED) {
			for (int64_t other = 0; other < n_npus; other++) {
				uint8_t kind = t->kind[other * p->bytes_per_npu + byte];
				empty = empty || kind == BYTEMAP_DATA || kind == BYTEMAP_DUMMY;
			}
		} else {
			int64_t row = byte % batch / block;
			empty = byte / batch < p->words_n && row < n_rows && !stored[npu * n_rows + row];
		}
		t->kind[i] = empty ? BYTEMAP_EMPTY : BYTEMAP_PADDING;
	}
}

/* Draws a resolved place, wherever it will lie. */
static inline struct bytemap_tensor *bytemap_draw(const struct bytemap *map, const struct npumem_place *place)
{
	struct bytemap_tensor *t = calloc(1, sizeof(*t));
	int64_t n_rows = place->shape.c + 1, next = 0;
	bool *stored = calloc((size_t)(map->n_npus * n_rows), sizeof(*stored));
	if (!t || !stored)
		abort();
	t->place = *place;
	t->element_bytes = npumem_dtype_bytes(place->dtype);
	t->n_elements = place->shape.n * place->shape.h * ((place->shape.c - 1) * place->shape.w + place->last_w);
	t->kind = malloc((size_t)(map->n_npus * place->bytes_per_npu));
	t->byte = calloc((size_t)t->n_elements, sizeof(*t->byte));
	if (!t->kind || !t->byte)
		abort();
	memset(t->kind, BYTEMAP_KINDS, (size_t)(map->n_npus * place->bytes_per_npu));
	for (int64_t n = 0; n < place->shape.n; n++) {
		int64_t npu = place->start_npu, row = 0;
		for (int64_t c = 0; c < place->shape.c; c++) {
			int64_t width = c == place->shape.c - 1 ? place->last_w : place->shape.w;
			bytemap_feature(t, npu, row, n, width, &next);
			stored[npu * n_rows + row] = true;
			if (++npu == map->n_npus) {
				npu = 0;
				row++;
			}
		}
	}
	bytemap_paint_rest(t, map->n_npus, stored, n_rows);
	free(stored);
	return t;
}

static inline void bytemap_forget_drawing(struct bytemap_tensor *t)
{
	free(t->kind);
	free(t->byte);
	free(t->of);
	free(t);
}

/* The byte of the device at `i` of [npu][byte of the footprint]. */
static inline int64_t bytemap_place_of(const struct bytemap *map, const struct bytemap_tensor *t, int64_t i)
{
	return i / t->place.bytes_per_npu * map->npu_bytes + t->place.offset + i % t->place.bytes_per_npu;
}

static inline bool bytemap_is_data(uint8_t kind)
{
	return kind == BYTEMAP_DATA || kind == BYTEMAP_DUMMY;
}

static inline void bytemap_tally(struct bytemap *map, const struct bytemap_tensor *t, int by)
{
	for (int64_t i = 0; i < map->n_npus * t->place.bytes_per_npu; i++)
		map->count[bytemap_place_of(map, t, i)][t->kind[i]] += (uint8_t)by;
}

/* A drawn tensor, whose place has an offset, is there from now on. */
static inline void bytemap_add(struct bytemap *map, struct bytemap_tensor *t)
{
	t->next = map->tensors;
	map->tensors = t;
	bytemap_tally(map, t, 1);
}

/* Its data and dummies become bytes never written, and zero. */
static inline void bytemap_remove(struct bytemap *map, struct bytemap_tensor *t)
{
	struct bytemap_tensor **link = &map->tensors;
	while (*link != t)
		link = &(*link)->next;
	*link = t->next;
	bytemap_tally(map, t, -1);
	for (int64_t i = 0; i < map->n_npus * t->place.bytes_per_npu; i++)
		if (bytemap_is_data(t->kind[i])) {
			int64_t at = bytemap_place_of(map, t, i);
			map->value[at] = 0;
			map->written[at] = map->damaged[at] = false;
		}
	bytemap_forget_drawing(t);
}

/* ---- where a tensor may lie ---- */

static inline bool bytemap_ranges_meet(int64_t a, int64_t a_end, int64_t b, int64_t b_end)
{
	return a < b_end && b < a_end;
}

/* No footprint has a byte of a quantum of [offset, offset + bytes). */
static inline bool bytemap_is_free(const struct bytemap *map, int64_t offset, int64_t bytes)
{
	int64_t from = offset / BYTEMAP_QUANTUM * BYTEMAP_QUANTUM;
	int64_t to = (offset + bytes + BYTEMAP_QUANTUM - 1) / BYTEMAP_QUANTUM * BYTEMAP_QUANTUM;
	for (const struct bytemap_tensor *t = map->tensors; t; t = t->next) {
		int64_t end = t->place.offset + t->place.bytes_per_npu;
		int64_t t_from = t->place.offset / BYTEMAP_QUANTUM * BYTEMAP_QUANTUM;
		int64_t t_to = (end + BYTEMAP_QUANTUM - 1) / BYTEMAP_QUANTUM * BYTEMAP_QUANTUM;
		if (bytemap_ranges_meet(from, to, t_from, t_to))
			return false;
	}
	return true;
}

/* No footprint has a byte of it. */
static inline bool bytemap_meets_none(const struct bytemap *map, int64_t offset, int64_t bytes)
{
	for (const struct bytemap_tensor *t = map->tensors; t; t = t->next)
		if (bytemap_ranges_meet(offset, offset + bytes, t->place.offset,
					t->place.offset + t->place.bytes_per_npu))
			return false;
	return true;
}

/* Whether a drawn tensor's data would lie at `offset` on no other's data, and if not unchecked on no padding. */
static inline bool bytemap_data_fits(const struct bytemap *map, const struct bytemap_tensor *u, int64_t offset)
{
	const struct npumem_place *p = &u->place;
	if (offset + p->bytes_per_npu > map->npu_bytes)
		return false;
	for (int64_t i = 0; i < map->n_npus * p->bytes_per_npu; i++) {
		int64_t at = i / p->bytes_per_npu * map->npu_bytes + offset + i % p->bytes_per_npu;
		const uint8_t *count = map->count[at];
		if (!bytemap_is_data(u->kind[i]))
			continue;
		if (count[BYTEMAP_DATA] || count[BYTEMAP_DUMMY] || (count[BYTEMAP_PADDING] && !u->unchecked))
			return false;
	}
	return true;
}

/* Whether the rule of reuse lets a drawn tensor lie at `offset`. */
static inline bool bytemap_may_lie(const struct bytemap *map, const struct bytemap_tensor *u, int64_t offset)
{
	for (const struct bytemap_tensor *t = map->tensors; t && !u->unchecked; t = t->next)
		if (bytemap_ranges_meet(offset, offset + u->place.bytes_per_npu, t->place.offset,
					t->place.offset + t->place.bytes_per_npu) &&
		    !(u->dma_only && (t->dma_only || t->sealed)))
			return false;
	return bytemap_data_fits(map, u, offset);
}

/* ---- what is in it ---- */

static inline int64_t bytemap_element(const struct bytemap *map, const struct bytemap_tensor *t, int64_t i)
{
	if (t->base)
		return bytemap_element(map, t->base, t->of[i]);
	return bytemap_place_of(map, t, t->byte[i]);
}

static inline void bytemap_put(struct bytemap *map, int64_t at, uint8_t value)
{
	map->value[at] = value;
	map->written[at] = true;
	map->damaged[at] = false;
}

/* Writes element i. A DMA puts 0 into the dummies behind the last n; a kernel leaves them alone. */
static inline void bytemap_write(struct bytemap *map, struct bytemap_tensor *t, int64_t i, const uint8_t *element,
				 bool kernel)
{
	int64_t at = bytemap_element(map, t, i);
	struct bytemap_tensor *root = t->base ? t->base : t;
	for (int64_t k = 0; k < t->element_bytes; k++)
		bytemap_put(map, at + k, element[k]);
	int64_t flat = t->base ? t->of[i] : i, batch = root->n_elements / root->place.shape.n;
	int64_t used = root->place.shape.n % root->place.lanes;
	if (kernel || !used || flat / batch != root->place.shape.n - 1)
		return;
	for (int64_t k = 1; k <= (root->place.lanes - used) * t->element_bytes; k++)
		bytemap_put(map, at + t->element_bytes - 1 + k, 0);
}

/* Bytes of elements [first, first + n) for which `flags` is `value`. */
static inline int64_t bytemap_count(const struct bytemap *map, const struct bytemap_tensor *t, const bool *flags,
				    bool value, int64_t first, int64_t n)
{
	int64_t count = 0;
	for (int64_t i = first; i < first + n; i++)
		for (int64_t k = 0; k < t->element_bytes; k++)
			count += flags[bytemap_element(map, t, i) + k] == value;
	return count;
}

/* What lockstep does: every byte of the footprint that is data of a tensor other than `out` or its base. */
static inline void bytemap_poison(struct bytemap *map, const struct bytemap_tensor *out)
{
	int64_t from = out->place.offset, to = from + out->place.bytes_per_npu;
	for (struct bytemap_tensor *t = map->tensors; t; t = t->next) {
		if (t == out || t == out->base)
			continue;
		for (int64_t i = 0; i < map->n_npus * t->place.bytes_per_npu; i++) {
			int64_t at = bytemap_place_of(map, t, i), offset = at % map->npu_bytes;
			if (!bytemap_is_data(t->kind[i]) || offset < from || offset >= to)
				continue;
			bytemap_put(map, at, BYTEMAP_POISON);
			map->damaged[at] = true;
			t->destroyed += t->kind[i] == BYTEMAP_DATA;
		}
	}
}

/* Bytes of elements [first, first + n) that are lost. */
static inline int64_t bytemap_lost(const struct bytemap *map, const struct bytemap_tensor *t, int64_t first,
				   int64_t n)
{
	int64_t count = 0;
	for (int64_t i = first; i < first + n; i++)
		for (int64_t k = 0; k < t->element_bytes; k++) {
			int64_t at = bytemap_element(map, t, i) + k;
			count += map->damaged[at] && !map->written[at];
		}
	return count;
}

static inline void bytemap_lose(struct bytemap *map, const struct bytemap_tensor *t, int64_t first, int64_t n)
{
	for (int64_t i = first; i < first + n; i++)
		for (int64_t k = 0; k < t->element_bytes; k++) {
			int64_t at = bytemap_element(map, t, i) + k;
			map->value[at] = 0;
			map->written[at] = false;
			map->damaged[at] = true;
		}
}

/* The tensor lies at `offset` now, with all that was in it. */
static inline void bytemap_move(struct bytemap *map, struct bytemap_tensor *t, int64_t offset)
{
	int64_t n = map->n_npus * t->place.bytes_per_npu;
	uint8_t *value = calloc((size_t)n, 3);
	if (!value)
		abort();
	bytemap_tally(map, t, -1);
	for (int64_t i = 0; i < n; i++) {
		int64_t at = bytemap_place_of(map, t, i);
		if (!bytemap_is_data(t->kind[i]))
			continue;
		value[3 * i] = map->value[at];
		value[3 * i + 1] = map->written[at];
		value[3 * i + 2] = map->damaged[at];
		map->value[at] = 0;
		map->written[at] = map->damaged[at] = false;
	}
	t->place.offset = offset;
	for (int64_t i = 0; i < n; i++) {
		int64_t at = bytemap_place_of(map, t, i);
		if (!bytemap_is_data(t->kind[i]))
			continue;
		map->value[at] = value[3 * i];
		map->written[at] = value[3 * i + 1];
		map->damaged[at] = value[3 * i + 2];
	}
	bytemap_tally(map, t, 1);
	free(value);
}

/* ---- the whole device ---- */

struct bytemap_counts {
	int64_t kind[BYTEMAP_KINDS], free, lent;
};

static inline struct bytemap_counts bytemap_counts(const struct bytemap *map)
{
	struct bytemap_counts counts = {.free = 0};
	for (int64_t at = 0; at < map->n_npus * map->npu_bytes; at++) {
		const uint8_t *count = map->count[at];
		int kind = BYTEMAP_DATA;
		while (kind >= 0 && !count[kind])
			kind--;
		if (kind < 0)
			counts.free++;
		else
			counts.kind[kind]++;
		counts.lent += count[BYTEMAP_EMPTY] && count[BYTEMAP_DATA];
	}
	return counts;
}

#endif
