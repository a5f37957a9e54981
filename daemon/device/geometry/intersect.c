/* A step is one window of at most 4 KiB whose bits are anded, or a jump over what one of the two has nothing of,
 * or over what both have all of. Where windows had nothing in common for as long as both repeat themselves,
 * neither have those to come, up to where either ends: so two combs that lie between each other's teeth are told
 * apart after one period, on an NPU of any size. */
#include "daemon/device/geometry/intersect.h"

#include <string.h>

enum {
	GROWTH = 4,	   /* of windows: the first answer is mostly near */
	SOLID_BYTES = 512, /* what is worth a stretch of its own, and no window */
};

static void open_group(struct intersect *walk)
{
	for (unsigned k = 0; k < 2; k++)
		kind_mask_init(&walk->masks[k], walk->geometry, walk->places[k], walk->places[k]->offset,
			       walk->groups.first[walk->group], walk->kinds[k]);
	walk->at = walk->from;
	walk->n_words = walk->word = 1;
	walk->none_from = -1;
}

void intersect_begin(struct intersect *walk, const struct npumem_geometry *geometry, const struct npumem_place *a,
		     unsigned a_kinds, const struct npumem_place *b, unsigned b_kinds)
{
	int64_t a_end = a->offset + a->bytes_per_npu, b_end = b->offset + b->bytes_per_npu;
	walk->from = a->offset > b->offset ? a->offset : b->offset;
	walk->to = a_end < b_end ? a_end : b_end;
	walk->groups.n = walk->group = walk->n_words = walk->word = 0;
	walk->open.bytes = 0;
	if (walk->from >= walk->to)
		return;
	walk->geometry = geometry;
	walk->places[0] = a;
	walk->places[1] = b;
	walk->kinds[0] = a_kinds;
	walk->kinds[1] = b_kinds;
	npu_groups_init(&walk->groups, geometry);
	npu_groups_cut(&walk->groups, geometry, a, a_kinds);
	npu_groups_cut(&walk->groups, geometry, b, b_kinds);
	open_group(walk);
}

/* ---- stretches ---- */

/* Adds common bytes of this group. True where a stretch is ended by that, in *range. */
static bool add_stretch(struct intersect *walk, int64_t offset, int64_t bytes, struct intersect_range *range)
{
	struct intersect_range *open = &walk->open;
	const int64_t *first = &walk->groups.first[walk->group];
	if (open->bytes && open->offset + open->bytes == offset) {
		open->bytes += bytes;
		return false;
	}
	bool ended = open->bytes > 0;
	*range = *open;
	*open = (struct intersect_range){first[0], first[1] - first[0], offset, bytes};
	return ended;
}

/* Ends what is open. */
static bool end_stretch(struct intersect *walk, struct intersect_range *range)
{
	bool ended = walk->open.bytes > 0;
	*range = walk->open;
	walk->open.bytes = 0;
	return ended;
}

/* Takes stretches from the window until one is ended. */
static bool scan_window(struct intersect *walk, struct intersect_range *range)
{
	while (walk->word < walk->n_words) {
		uint64_t bits = walk->bits[walk->word];
		if (!bits) {
			walk->word++;
			continue;
		}
		int first = __builtin_ctzll(bits);
		uint64_t others = ~(bits >> first);
		int length = others ? __builtin_ctzll(others) : 64;
		walk->bits[walk->word] = first + length < 64 ? bits & (UINT64_MAX << (first + length)) : 0;
		if (add_stretch(walk, walk->bits_from + 64 * (int64_t)walk->word + first, length, range))
			return true;
	}
	return false;
}

/* ---- steps ---- */

static void load_window(struct intersect *walk)
{
	uint64_t other[KIND_MASK_WORDS], any = 0;
	int64_t left = (walk->to - walk->at + 63) / 64, grown = (int64_t)walk->n_words * GROWTH;
	grown = grown < KIND_MASK_WORDS ? grown : KIND_MASK_WORDS;
	walk->n_words = (unsigned)(grown < left ? grown : left);
	walk->word = 0;
	walk->bits_from = walk->at;
	kind_mask_bits(&walk->masks[0], walk->at, walk->n_words, walk->bits);
	kind_mask_bits(&walk->masks[1], walk->at, walk->n_words, other);
	for (unsigned w = 0; w < walk->n_words; w++)
		any |= walk->bits[w] &= other[w];
	if (any)
		walk->none_from = -1;
	else if (walk->none_from < 0)
		walk->none_from = walk->at;
	walk->at += 64 * (int64_t)walk->n_words;
}

/* After windows without a common byte. */
static void jump_periods(struct intersect *walk)
{
	int64_t span = walk->at - walk->none_from, period = 1;
	int64_t a = kind_mask_period(&walk->masks[0], walk->none_from, span, &period);
	if (a <= walk->at || period > span)
		return;
	int64_t b = kind_mask_period(&walk->masks[1], walk->none_from, span, &period);
	int64_t until = a < b ? a : b;
	if (period <= span && until > walk->at)
		walk->at = until;
}

/* One step at `at`. True where a stretch is ended by it; more may be in the window. */
static bool walk_on(struct intersect *walk, struct intersect_range *range)
{
	bool in[2];
	int64_t until[2], none = walk->at, all = walk->to;
	for (unsigned k = 0; k < 2; k++) {
		until[k] = kind_mask_until(&walk->masks[k], walk->at, &in[k]);
		all = until[k] < all ? until[k] : all;
		none = !in[k] && until[k] > none ? until[k] : none;
	}
	if (none >= walk->to || none >= walk->at + 64) {
		walk->at = none;
		return false;
	}
	if (in[0] && in[1] && (all - walk->at >= SOLID_BYTES || all == walk->to)) {
		int64_t from = walk->at;
		walk->at = all;
		walk->none_from = -1;
		return add_stretch(walk, from, all - from, range);
	}
	load_window(walk);
	if (walk->none_from >= 0)
		jump_periods(walk);
	return false;
}

enum intersect_answer intersect_step(struct intersect *walk, int64_t *steps, struct intersect_range *range)
{
	while (walk->group < walk->groups.n) {
		if (scan_window(walk, range))
			return INTERSECT_RANGE;
		if (walk->at < walk->to) {
			if (*steps <= 0)
				return INTERSECT_PAUSE;
			--*steps;
			if (walk_on(walk, range))
				return INTERSECT_RANGE;
			continue;
		}
		bool ended = end_stretch(walk, range);
		if (++walk->group < walk->groups.n)
			open_group(walk);
		if (ended)
			return INTERSECT_RANGE;
	}
	return INTERSECT_END;
}

bool intersect_next(struct intersect *walk, struct intersect_range *range)
{
	int64_t steps = INT64_MAX;
	return intersect_step(walk, &steps, range) == INTERSECT_RANGE;
}

bool intersect_first(const struct npumem_geometry *geometry, const struct npumem_place *a, unsigned a_kinds,
		     const struct npumem_place *b, unsigned b_kinds, struct intersect_range *range)
{
	struct intersect walk;
	intersect_begin(&walk, geometry, a, a_kinds, b, b_kinds);
	return intersect_next(&walk, range);
}

/* A stride whose dimension has extent 1 leads nowhere. */
static bool same_stride(int64_t extent, int64_t a, int64_t b)
{
	return extent == 1 || a == b;
}

bool intersect_same(const struct npumem_place *a, const struct npumem_place *b)
{
	return a->address == b->address && a->lanes == b->lanes && a->word_bytes == b->word_bytes &&
	       a->last_w == b->last_w && !memcmp(&a->shape, &b->shape, sizeof(a->shape)) &&
	       same_stride(a->words_n, a->stride.n, b->stride.n) &&
	       same_stride(a->channels_per_npu, a->stride.c, b->stride.c) &&
	       same_stride(a->shape.h, a->stride.h, b->stride.h) &&
	       same_stride(a->shape.w, a->stride.w, b->stride.w);
}
