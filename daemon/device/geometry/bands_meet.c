/* Two classes of NPUs that have one NPU in common are looked at once, as all their NPUs look the same: each
 * stretch of the one is looked up in the other. */
#include "daemon/device/geometry/bands_meet.h"

#include "daemon/device/geometry/bands.h"
#include "daemon/device/geometry/classes.h"

struct pair {
	const struct npumem_geometry *geometry;
	const struct npumem_place *a, *b;
	unsigned a_kinds, b_kinds;
	int64_t from, to;     /* offsets that both have */
	int64_t looks, words; /* bytes that may still be painted, and words that may be passed by */
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

/* Calls `on_npus` for each two classes that have an NPU in common, until it has met. */
static void each_class(struct pair *pair, void (*on_npus)(struct pair *pair, int64_t a_npu))
{
	struct classes a, b;
	classes_of(pair->geometry, pair->a, &a);
	classes_of(pair->geometry, pair->b, &b);
	for (unsigned i = 0; i < MEET_CLASSES; i++)
		for (unsigned k = 0; k < MEET_CLASSES && !pair->met; k++) {
			if (!common_npu(&a, i, &b, k))
				continue;
			pair->b_npu = b.first[k];
			on_npus(pair, a.first[i]);
		}
}

/* `b` is not strided, so that a part of it costs no more than its stretches. */
static void meet_blocks(struct pair *pair, int64_t a_npu)
{
	bands_each(pair->geometry, pair->a, a_npu, pair->from - pair->a->offset, pair->to - pair->a->offset, true,
		   look_up, pair);
}

static unsigned kinds_at(const struct pair *pair, const struct npumem_place *place, int64_t npu, int64_t offset)
{
	uint8_t kind = 0;
	npumem_place_paint(pair->geometry, place, npu, offset - place->offset, offset - place->offset + 1, &kind);
	return kind;
}

/* A word of `a` at this offset, some bytes of which may be out of the range. */
static void meet_word(struct pair *pair, int64_t a_npu, int64_t offset)
{
	for (int64_t at = offset; at < offset + pair->a->word_bytes && !pair->met; at++)
		if (at >= pair->from && at < pair->to) {
			pair->looks--;
			pair->met = kinds_at(pair, pair->a, a_npu, at) & pair->a_kinds &&
				    kinds_at(pair, pair->b, pair->b_npu, at) & pair->b_kinds;
		}
}

static void meet_words(struct pair *pair, int64_t a_npu)
{
	const struct npumem_place *a = pair->a;
	const struct npumem_dims *stride = &a->stride;
	for (int64_t n = 0; n < a->words_n; n++)
		for (int64_t row = 0; row < a->channels_per_npu; row++)
			for (int64_t h = 0; h < a->shape.h; h++)
				for (int64_t w = 0; w < a->shape.w && !pair->met; w++) {
					int64_t words =
						n * stride->n + row * stride->c + h * stride->h + w * stride->w;
					if (pair->looks <= 0 || pair->words-- <= 0)
						return;
					meet_word(pair, a_npu, a->offset + words * a->word_bytes);
				}
}

static int64_t n_words(const struct npumem_place *place)
{
	return place->words_n * place->channels_per_npu * place->shape.h * place->shape.w;
}

static void swap(struct pair *pair)
{
	const struct npumem_place *place = pair->a;
	unsigned kinds = pair->a_kinds;
	pair->a = pair->b;
	pair->a_kinds = pair->b_kinds;
	pair->b = place;
	pair->b_kinds = kinds;
}

/* Both are strided. All that is not padding is in their words. */
static bool meet_strided(struct pair *pair)
{
	enum { LOOKS = 4096, WORDS = 1 << 16 };
	struct meet_range range;
	pair->looks = LOOKS;
	pair->words = WORDS;
	if (pair->a_kinds & NPUMEM_BYTE_PADDING ||
	    (!(pair->b_kinds & NPUMEM_BYTE_PADDING) && n_words(pair->b) < n_words(pair->a)))
		swap(pair);
	if (!(pair->a_kinds & NPUMEM_BYTE_PADDING)) {
		each_class(pair, meet_words);
		if (pair->met || (pair->looks > 0 && pair->words > 0))
			return pair->met;
	}
	return meet_first(pair->geometry, pair->a, pair->a_kinds, pair->b, pair->b_kinds, &range);
}

bool bands_meet(const struct npumem_geometry *geometry, const struct npumem_place *a, unsigned a_kinds,
		const struct npumem_place *b, unsigned b_kinds)
{
	int64_t from = a->offset > b->offset ? a->offset : b->offset;
	int64_t a_end = a->offset + a->bytes_per_npu, b_end = b->offset + b->bytes_per_npu;
	int64_t to = a_end < b_end ? a_end : b_end;
	struct pair pair = {.geometry = geometry, .a = a, .b = b, .a_kinds = a_kinds, .b_kinds = b_kinds};
	if (from >= to || !has_any(a, a_kinds) || !has_any(b, b_kinds))
		return false;
	pair.from = from;
	pair.to = to;
	if (a->layout == NPUMEM_STRIDED && b->layout == NPUMEM_STRIDED)
		return meet_strided(&pair);
	if (b->layout == NPUMEM_STRIDED)
		swap(&pair);
	each_class(&pair, meet_blocks);
	return pair.met;
}
