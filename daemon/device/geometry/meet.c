/* Whether two places share a byte is told by arithmetic on their combs (comb.h), NPU class by NPU class. All they
 * share is found by painting both, window by window: exact for every layout and kind, and only paid where
 * footprints really meet. Where two places share nothing on one NPU, they share nothing on any other of the same
 * two classes. */
#include "daemon/device/geometry/meet.h"

#include <string.h>

#include "daemon/device/geometry/comb.h"

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

/* False where the offsets have nothing in common. */
static bool pair_init(struct pair *pair, const struct npumem_geometry *geometry, const struct npumem_place *a,
		      unsigned a_kinds, const struct npumem_place *b, unsigned b_kinds)
{
	int64_t a_end = a->offset + a->bytes_per_npu, b_end = b->offset + b->bytes_per_npu;
	*pair = (struct pair){geometry, a, b, a_kinds, b_kinds, 0, 0};
	pair->from = a->offset > b->offset ? a->offset : b->offset;
	pair->end = a_end < b_end ? a_end : b_end;
	return pair->from < pair->end;
}

bool meet_each(const struct npumem_geometry *geometry, const struct npumem_place *a, unsigned a_kinds,
	       const struct npumem_place *b, unsigned b_kinds,
	       bool (*visit)(void *ctx, const struct meet_range *range), void *ctx)
{
	bool apart[MEET_CLASSES][MEET_CLASSES] = {{false}};
	struct pair pair;
	if (!pair_init(&pair, geometry, a, a_kinds, b, b_kinds))
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

/* ---- combs ---- */

/* What a place takes of one NPU: its features, and apart from them a last channel that is narrower. */
struct combs {
	struct comb comb[2];
	unsigned n;
};

static bool has_combs(unsigned kinds)
{
	return kinds == MEET_DATA || kinds == MEET_FOOTPRINT;
}

/* Block rows [row, row_end), of features `width` words wide. */
static void add_rows(const struct npumem_place *place, int64_t row, int64_t row_end, int64_t width,
		     struct combs *combs)
{
	const struct npumem_dims *stride = &place->stride;
	int64_t word = place->word_bytes;
	if (row >= row_end)
		return;
	struct comb *comb = &combs->comb[combs->n++];
	*comb = (struct comb){.low = place->offset + row * stride->c * word, .bytes = word};
	comb_repeat(comb, stride->w * word, width);
	comb_repeat(comb, stride->h * word, place->shape.h);
	comb_repeat(comb, stride->c * word, row_end - row);
	comb_repeat(comb, stride->n * word, place->words_n);
}

/* The blocks of a row that are empty; words_n of them. */
static void add_empty(const struct npumem_place *place, int64_t row, struct combs *combs)
{
	int64_t word = place->word_bytes, block = place->stride.c * word;
	struct comb *comb = &combs->comb[combs->n++];
	*comb = (struct comb){.low = place->offset + row * block, .bytes = block};
	comb_repeat(comb, place->stride.n * word, place->words_n);
}

/* Of a strided place all words of all NPUs, its own data included: see meet_lends. */
static void take_empty(const struct npumem_geometry *geometry, const struct npumem_place *place, int64_t npu,
		       struct combs *combs)
{
	int64_t last = (place->start_npu + place->shape.c - 1) % geometry->n_npus;
	int64_t last_row = place->channels_per_npu - 1;
	bool first_empty = npu < place->start_npu, last_empty = npu < 0 || npu > last;
	if (place->layout == NPUMEM_STRIDED) {
		add_rows(place, 0, place->channels_per_npu, place->shape.w, combs);
		return;
	}
	if (first_empty || (last_row == 0 && last_empty))
		add_empty(place, 0, combs);
	if (last_row > 0 && last_empty)
		add_empty(place, last_row, combs);
}

/* `npu` < 0: at least what any NPU has. */
static void take_combs(const struct npumem_geometry *geometry, const struct npumem_place *place, unsigned kinds,
		       int64_t npu, struct combs *combs)
{
	int64_t last = place->start_npu + place->shape.c - 1, last_row = last / geometry->n_npus;
	int64_t first = npu >= 0 && npu < place->start_npu ? 1 : 0;
	int64_t end = npu >= 0 && npu > last % geometry->n_npus ? last_row : last_row + 1;
	bool narrow = npu == last % geometry->n_npus && place->last_w != place->shape.w;
	combs->n = 0;
	if (kinds == NPUMEM_BYTE_EMPTY) {
		take_empty(geometry, place, npu, combs);
		return;
	}
	if (kinds == MEET_FOOTPRINT) {
		combs->comb[combs->n++] = (struct comb){.low = place->offset, .bytes = place->bytes_per_npu};
		return;
	}
	add_rows(place, first, narrow ? last_row : end, place->shape.w, combs);
	if (narrow)
		add_rows(place, last_row, last_row + 1, place->last_w, combs);
}

static enum comb_answer combs_meet(const struct combs *a, const struct combs *b, int64_t *steps)
{
	for (unsigned i = 0; i < a->n; i++)
		for (unsigned j = 0; j < b->n; j++) {
			enum comb_answer answer = comb_meet(&a->comb[i], &b->comb[j], steps);
			if (answer != COMB_APART)
				return answer;
		}
	return COMB_APART;
}

static enum comb_answer pair_meets(const struct pair *pair, int64_t npu, int64_t *steps)
{
	struct combs a, b;
	take_combs(pair->geometry, pair->a, pair->a_kinds, npu, &a);
	take_combs(pair->geometry, pair->b, pair->b_kinds, npu, &b);
	return combs_meet(&a, &b, steps);
}

/* From an NPU to the next a place has the same or less, but for its start NPU, which has row 0 again. So where two
 * places meet on any NPU, they do on 0 or one of their start NPUs, and on the first of all. Returns how many. */
enum { CUTS = 3 };

static unsigned take_cuts(const struct pair *pair, int64_t *cuts)
{
	int64_t low = pair->a->start_npu, high = pair->b->start_npu;
	unsigned n = 0;
	if (low > high) {
		low = high;
		high = pair->a->start_npu;
	}
	cuts[n++] = 0;
	if (low > 0)
		cuts[n++] = low;
	if (high > low)
		cuts[n++] = high;
	return n;
}

bool meet_maybe(const struct npumem_geometry *geometry, const struct npumem_place *a, unsigned a_kinds,
		const struct npumem_place *b, unsigned b_kinds, int64_t *steps)
{
	int64_t cuts[CUTS];
	struct pair pair;
	if (!pair_init(&pair, geometry, a, a_kinds, b, b_kinds) || pair_meets(&pair, -1, steps) == COMB_APART)
		return false;
	for (unsigned i = 0, n = take_cuts(&pair, cuts); i < n; i++)
		if (pair_meets(&pair, cuts[i], steps) != COMB_APART)
			return true;
	return false;
}

bool meet_lends(const struct npumem_geometry *geometry, const struct npumem_place *lender,
		const struct npumem_place *borrower, int64_t *steps)
{
	int64_t last = (lender->start_npu + lender->shape.c - 1) % geometry->n_npus;
	/* From an NPU to the next there is less or the same of both, but where the borrower's row 0 begins, and
	 * where the lender's last row has ended. */
	int64_t cuts[CUTS] = {0, borrower->start_npu, last + 1};
	struct pair pair;
	if (!lender->blocks.empty || !pair_init(&pair, geometry, lender, NPUMEM_BYTE_EMPTY, borrower, MEET_DATA) ||
	    pair_meets(&pair, -1, steps) == COMB_APART)
		return false;
	for (unsigned i = 0; i < CUTS; i++)
		if (cuts[i] < geometry->n_npus && pair_meets(&pair, cuts[i], steps) != COMB_APART)
			return true;
	return false;
}

/* ---- the first stretch ---- */

/* The first teeth of two places that meet, as the bytes that both have. Of a place with two combs the second lies
 * behind the first, but may lie between its teeth. */
static bool first_teeth(const struct combs *a, const struct combs *b, int64_t *steps, struct meet_range *range)
{
	int64_t from = INT64_MAX, to = 0;
	for (unsigned i = 0; i < a->n; i++)
		for (unsigned j = 0; j < b->n; j++) {
			struct comb x = a->comb[i], y = b->comb[j];
			enum comb_answer answer = comb_meet(&x, &y, steps);
			if (answer == COMB_APART)
				continue;
			if (answer == COMB_UNKNOWN || !comb_first(&x, &y, steps, &x.low))
				return false;
			x.n = 0;
			if (!comb_first(&y, &x, steps, &y.low))
				return false;
			int64_t low = x.low > y.low ? x.low : y.low;
			if (low >= from)
				continue;
			from = low;
			to = x.low + x.bytes < y.low + y.bytes ? x.low + x.bytes : y.low + y.bytes;
		}
	range->offset = from;
	range->bytes = to - from;
	return to > 0;
}

/* Goes on where the next teeth touch. */
static void extend(const struct combs *a, const struct combs *b, int64_t *steps, struct meet_range *range)
{
	enum { PIECES_MAX = 64 };
	for (unsigned i = 0; i < PIECES_MAX; i++) {
		struct combs next = {.comb = {{.low = range->offset + range->bytes, .bytes = 1}}, .n = 1};
		struct meet_range x, y;
		if (combs_meet(a, &next, steps) != COMB_MEET || combs_meet(b, &next, steps) != COMB_MEET)
			return;
		/* What is left of the tooth that the byte is in. */
		next.comb[0].bytes = INT32_MAX;
		if (!first_teeth(a, &next, steps, &x) || !first_teeth(b, &next, steps, &y))
			return;
		range->bytes += x.bytes < y.bytes ? x.bytes : y.bytes;
	}
}

static bool take_first(void *ctx, const struct meet_range *range)
{
	*(struct meet_range *)ctx = *range;
	return false;
}

/* The first stretch on one NPU; false where there is none. */
static bool first_on(const struct pair *pair, int64_t npu, struct meet_range *range)
{
	/* For searching through the teeth; by then painting is faster. */
	enum { STEPS_AT_LEAST = 4000, BYTES_PER_STEP = 64 };
	int64_t steps = STEPS_AT_LEAST + (pair->end - pair->from) / BYTES_PER_STEP;
	struct combs a, b;
	bool any = false;
	range->npu = npu;
	take_combs(pair->geometry, pair->a, pair->a_kinds, npu, &a);
	take_combs(pair->geometry, pair->b, pair->b_kinds, npu, &b);
	enum comb_answer answer = combs_meet(&a, &b, &steps);
	if (answer == COMB_APART)
		return false;
	if (answer == COMB_UNKNOWN || !first_teeth(&a, &b, &steps, range))
		return !meet_on(pair, npu, take_first, range, &any);
	extend(&a, &b, &steps, range);
	return true;
}

bool meet_first(const struct npumem_geometry *geometry, const struct npumem_place *a, unsigned a_kinds,
		const struct npumem_place *b, unsigned b_kinds, struct meet_range *range)
{
	enum { STEPS_FOR_ALL = 16 };
	int64_t cuts[CUTS], steps = STEPS_FOR_ALL;
	struct pair pair;
	if (!has_combs(a_kinds) || !has_combs(b_kinds))
		return !meet_each(geometry, a, a_kinds, b, b_kinds, take_first, range);
	if (!pair_init(&pair, geometry, a, a_kinds, b, b_kinds) || pair_meets(&pair, -1, &steps) == COMB_APART)
		return false;
	for (unsigned i = 0, n = take_cuts(&pair, cuts); i < n; i++)
		if (first_on(&pair, cuts[i], range))
			return true;
	return false;
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
