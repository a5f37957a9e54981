/* Two classes of NPUs that have one NPU in common are looked at once, as all their NPUs look the same: each
 * stretch of the one is looked up in the other. */
#include "daemon/device/bands_meet.h"

#include "daemon/device/bands.h"
#include "daemon/device/classes.h"

struct pair {
	const struct npumem_geometry *geometry;
	const struct npumem_place *a, *b;
	unsigned a_kinds, b_kinds;
	int64_t b_npu;
	bool met;
};

static void look(void *ctx, int64_t from, int64_t to, unsigned kind)
{
	struct pair *pair = ctx;
	(void)from;
	(void)to;
	pair->met |= kind & pair->b_kinds;
}

static void look_up(void *ctx, int64_t from, int64_t to, unsigned kind)
{
	struct pair *pair = ctx;
	int64_t by = pair->a->offset - pair->b->offset;
	if (!pair->met && kind & pair->a_kinds)
		bands_each(pair->geometry, pair->b, pair->b_npu, from + by, to + by, true, look, pair);
}

static bool common_npu(const struct classes *a, unsigned i, const struct classes *b, unsigned k)
{
	if (a->first[i] < 0 || b->first[k] < 0)
		return false;
	for (unsigned w = 0; w < a->n_words; w++)
		if (a->npus[i][w] & b->npus[k][w])
			return true;
	return false;
}

static bool has_any(const struct npumem_place *place, unsigned kinds)
{
	const struct npumem_blocks *blocks = &place->blocks;
	return (kinds & NPUMEM_BYTE_DATA && blocks->data) || (kinds & NPUMEM_BYTE_DUMMY && blocks->dummy) ||
	       (kinds & NPUMEM_BYTE_PADDING && blocks->padding) || (kinds & NPUMEM_BYTE_EMPTY && blocks->empty);
}

/* `b` is not strided, so that a part of it costs no more than its stretches. */
static bool meet_blocks(struct pair *pair, int64_t from, int64_t to)
{
	struct classes a, b;
	classes_of(pair->geometry, pair->a, &a);
	classes_of(pair->geometry, pair->b, &b);
	for (unsigned i = 0; i < MEET_CLASSES && !pair->met; i++)
		for (unsigned k = 0; k < MEET_CLASSES && !pair->met; k++) {
			if (!common_npu(&a, i, &b, k))
				continue;
			pair->b_npu = b.first[k];
			bands_each(pair->geometry, pair->a, a.first[i], from - pair->a->offset,
				   to - pair->a->offset, true, look_up, pair);
		}
	return pair->met;
}

bool bands_meet(const struct npumem_geometry *geometry, const struct npumem_place *a, unsigned a_kinds,
		const struct npumem_place *b, unsigned b_kinds)
{
	int64_t from = a->offset > b->offset ? a->offset : b->offset;
	int64_t a_end = a->offset + a->bytes_per_npu, b_end = b->offset + b->bytes_per_npu;
	int64_t to = a_end < b_end ? a_end : b_end;
	struct meet_range range;
	if (from >= to || !has_any(a, a_kinds) || !has_any(b, b_kinds))
		return false;
	if (b->layout != NPUMEM_STRIDED)
		return meet_blocks(&(struct pair){geometry, a, b, a_kinds, b_kinds, 0, false}, from, to);
	if (a->layout != NPUMEM_STRIDED)
		return meet_blocks(&(struct pair){geometry, b, a, b_kinds, a_kinds, 0, false}, from, to);
	return meet_first(geometry, a, a_kinds, b, b_kinds, &range);
}
