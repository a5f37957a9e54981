/* Both places are painted, window by window: exact for every layout, and only paid where footprints really meet.
 * Where two places share nothing on one NPU, they share nothing on any other of the same two classes. */
#include "daemon/device/meet.h"

#include <string.h>

enum { WINDOW_BYTES = 4096 };

unsigned meet_class(const struct npumem_geometry *geometry, const struct npumem_place *place, int64_t npu)
{
	int64_t last = (place->start_npu + place->shape.c - 1) % geometry->n_npus;
	if (npu == last && place->last_w != place->shape.w)
		return MEET_CLASSES - 1;
	return (npu >= place->start_npu ? 1U : 0U) | (npu <= last ? 2U : 0U);
}

bool meet_has_data(const struct npumem_geometry *geometry, const struct npumem_place *place, int64_t npu)
{
	int64_t distance = npu - place->start_npu;
	return (distance < 0 ? distance + geometry->n_npus : distance) < place->shape.c;
}

static bool can_meet(const struct npumem_geometry *geometry, const struct npumem_place *place, unsigned kinds,
		     int64_t npu)
{
	return kinds & ~(unsigned)MEET_DATA || meet_has_data(geometry, place, npu);
}

/* What meet_each looks for. */
struct pair {
	const struct npumem_geometry *geometry;
	const struct npumem_place *a, *b;
	unsigned a_kinds, b_kinds;
	int64_t from, end; /* offsets that both have */
};

/* One NPU; *any tells whether there was a stretch. False where the visitor stopped. */
static bool meet_on(const struct pair *pair, int64_t npu, bool (*visit)(void *ctx, const struct meet_range *range),
		    void *ctx, bool *any)
{
	const struct npumem_place *a = pair->a, *b = pair->b;
	uint8_t a_paint[WINDOW_BYTES], b_paint[WINDOW_BYTES];
	struct meet_range range = {.npu = npu};
	for (int64_t at = pair->from; at < pair->end; at += WINDOW_BYTES) {
		int64_t n = pair->end - at < WINDOW_BYTES ? pair->end - at : WINDOW_BYTES;
		memset(a_paint, 0, (size_t)n);
		memset(b_paint, 0, (size_t)n);
		npumem_place_paint(pair->geometry, a, npu, at - a->offset, at - a->offset + n, a_paint);
		npumem_place_paint(pair->geometry, b, npu, at - b->offset, at - b->offset + n, b_paint);
		for (int64_t i = 0; i < n; i++) {
			if (a_paint[i] & pair->a_kinds && b_paint[i] & pair->b_kinds) {
				*any = true;
				if (!range.bytes)
					range.offset = at + i;
				range.bytes++;
			} else if (range.bytes) {
				if (!visit(ctx, &range))
					return false;
				range.bytes = 0;
			}
		}
	}
	return !range.bytes || visit(ctx, &range);
}

bool meet_each(const struct npumem_geometry *geometry, const struct npumem_place *a, unsigned a_kinds,
	       const struct npumem_place *b, unsigned b_kinds,
	       bool (*visit)(void *ctx, const struct meet_range *range), void *ctx)
{
	bool apart[MEET_CLASSES][MEET_CLASSES] = {{false}};
	int64_t a_end = a->offset + a->bytes_per_npu, b_end = b->offset + b->bytes_per_npu;
	struct pair pair = {geometry, a, b, a_kinds, b_kinds, 0, 0};
	pair.from = a->offset > b->offset ? a->offset : b->offset;
	pair.end = a_end < b_end ? a_end : b_end;
	if (pair.from >= pair.end)
		return true;
	for (int64_t npu = 0; npu < geometry->n_npus; npu++) {
		bool *known = &apart[meet_class(geometry, a, npu)][meet_class(geometry, b, npu)], any = false;
		if (*known || !can_meet(geometry, a, a_kinds, npu) || !can_meet(geometry, b, b_kinds, npu))
			continue;
		if (!meet_on(&pair, npu, visit, ctx, &any))
			return false;
		*known = !any;
	}
	return true;
}

static bool take_first(void *ctx, const struct meet_range *range)
{
	*(struct meet_range *)ctx = *range;
	return false;
}

bool meet_first(const struct npumem_geometry *geometry, const struct npumem_place *a, unsigned a_kinds,
		const struct npumem_place *b, unsigned b_kinds, struct meet_range *range)
{
	return !meet_each(geometry, a, a_kinds, b, b_kinds, take_first, range);
}

/* A stride whose dimension has extent 1 leads nowhere. */
static bool same_step(int64_t extent, int64_t a, int64_t b)
{
	return extent == 1 || a == b;
}

bool meet_same(const struct npumem_place *a, const struct npumem_place *b)
{
	return a->address == b->address && a->lanes == b->lanes && a->word_bytes == b->word_bytes &&
	       a->last_w == b->last_w && !memcmp(&a->shape, &b->shape, sizeof(a->shape)) &&
	       same_step(a->words_n, a->stride.n, b->stride.n) &&
	       same_step(a->channels_per_npu, a->stride.c, b->stride.c) &&
	       same_step(a->shape.h, a->stride.h, b->stride.h) && same_step(a->shape.w, a->stride.w, b->stride.w);
}
