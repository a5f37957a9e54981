/* Words and empty blocks are strided boxes, at most two of each: a last channel that is narrower than the others
 * has one of its own, and empty blocks lie before and behind an NPU's rows. Only the boxes that separate the asked
 * kinds from the others are prepared. Works for any strides > 0, so for the places of views too. */
#include "include/formulas/boxes/kind_mask.h"

#include <string.h>

#include "include/formulas/layout_row.h"

enum { WORDS = NPUMEM_BYTE_DATA | NPUMEM_BYTE_DUMMY };

static void add_box(struct kind_mask *mask, enum kind_mask_part part, int64_t low, int64_t bytes,
		    const struct strided_box_dim *dims, unsigned n)
{
	mask->n[part] += strided_box_init(&mask->boxes[part][mask->n[part]], low, bytes, dims, n);
}

/* The words of block rows [row, end), of features `width` words wide; of these the dummies, or all. */
static void add_rows(struct kind_mask *mask, const struct npumem_place *place, enum kind_mask_part part,
		     int64_t row, int64_t end, int64_t width)
{
	const struct npumem_dims *stride = &place->stride;
	int64_t word = place->word_bytes, last = place->words_n - 1;
	int64_t used = word / place->lanes * (place->shape.n - last * place->lanes);
	int64_t low = mask->from + row * stride->c * word;
	const struct strided_box_dim dims[] = {
		{stride->w * word, width},
		{stride->h * word, place->shape.h},
		{stride->c * word, end - row},
		{stride->n * word, place->words_n},
	};
	if (part == KIND_MASK_DUMMY)
		add_box(mask, part, low + last * stride->n * word + used, word - used, dims, 3);
	else
		add_box(mask, part, low, word, dims, 4);
}

/* What the NPUs hold at each block row. */
struct rows {
	int64_t first, end; /* this NPU's */
	int64_t all;	    /* those that any NPU has */
	bool narrow;	    /* this NPU's last one is of the last channel, which is narrower than the others */
	bool last_narrow;   /* so is the last one of all NPUs, since no other channel is in it */
};

static struct rows rows_of(const struct npumem_geometry *geometry, const struct npumem_place *place, int64_t npu)
{
	int64_t last = place->start_npu + place->shape.c - 1, last_npu = last % geometry->n_npus;
	bool tail = place->last_w != place->shape.w;
	struct rows rows = {
		.all = last / geometry->n_npus + 1,
		.narrow = tail && npu == last_npu,
		.last_narrow = tail && (last_npu == 0 || place->shape.c == 1),
	};
	layout_row_rows(geometry, place, npu, &rows.first, &rows.end);
	return rows;
}

static void add_own(struct kind_mask *mask, const struct npumem_place *place, enum kind_mask_part part,
		    const struct rows *rows)
{
	add_rows(mask, place, part, rows->first, rows->end - rows->narrow, place->shape.w);
	if (rows->narrow)
		add_rows(mask, place, part, rows->end - 1, rows->end, place->last_w);
}

/* Blocks of the rows [row, end) as a whole. */
static void add_blocks(struct kind_mask *mask, const struct npumem_place *place, int64_t row, int64_t end)
{
	int64_t block = place->stride.c * place->word_bytes;
	const struct strided_box_dim dim = {place->stride.n * place->word_bytes, place->words_n};
	if (row < end)
		add_box(mask, KIND_MASK_EMPTY, mask->from + row * block, (end - row) * block, &dim, 1);
}

static bool has_whole_blocks(const struct npumem_place *place)
{
	return layout_row_by_number(place->layout)->whole_blocks;
}

static void add_empty(struct kind_mask *mask, const struct npumem_place *place, const struct rows *rows)
{
	if (has_whole_blocks(place)) {
		add_blocks(mask, place, 0, rows->first);
		add_blocks(mask, place, rows->end, rows->all);
		return;
	}
	add_rows(mask, place, KIND_MASK_EMPTY, 0, rows->all - rows->last_narrow, place->shape.w);
	if (rows->last_narrow)
		add_rows(mask, place, KIND_MASK_EMPTY, rows->all - 1, rows->all, place->last_w);
}

/* Whether one of two kinds is asked for and the other is not. */
static bool tells_apart(unsigned kinds, unsigned one, unsigned other)
{
	return kinds == KIND_MASK_EACH || !(kinds & one) != !(kinds & other);
}

void kind_mask_init(struct kind_mask *mask, const struct npumem_geometry *geometry,
		    const struct npumem_place *place, int64_t base, int64_t npu, unsigned kinds)
{
	mask->from = base;
	mask->to = base + place->bytes_per_npu;
	mask->kinds = kinds;
	memset(mask->n, 0, sizeof(mask->n));
	if (kinds == KIND_MASK_ALL)
		return;
	const struct rows rows = rows_of(geometry, place, npu);
	bool dummies = tells_apart(kinds, NPUMEM_BYTE_DATA, NPUMEM_BYTE_DUMMY);
	/* Words are never in blocks that are empty as a whole. */
	if (dummies || tells_apart(kinds, NPUMEM_BYTE_DATA, NPUMEM_BYTE_PADDING) || !has_whole_blocks(place))
		add_own(mask, place, KIND_MASK_WORD, &rows);
	if (dummies && place->shape.n % place->lanes)
		add_own(mask, place, KIND_MASK_DUMMY, &rows);
	if (tells_apart(kinds, NPUMEM_BYTE_EMPTY, NPUMEM_BYTE_PADDING))
		add_empty(mask, place, &rows);
}

/* ---- bits ---- */

static void fill_part(const struct kind_mask *mask, enum kind_mask_part part, int64_t from, unsigned n_words,
		      uint64_t *bits)
{
	memset(bits, 0, n_words * sizeof(*bits));
	for (unsigned i = 0; i < mask->n[part]; i++)
		strided_box_fill(&mask->boxes[part][i], from, n_words, bits);
}

/* Drops what lies outside the footprint. */
static void clip(const struct kind_mask *mask, int64_t from, unsigned n_words, uint64_t *bits)
{
	int64_t end = from + 64 * (int64_t)n_words;
	if (from >= mask->from && end <= mask->to)
		return;
	for (unsigned w = 0; w < n_words; w++) {
		int64_t at = from + 64 * (int64_t)w, before = mask->from - at, left = mask->to - at;
		uint64_t inside = before >= 64 || left <= 0 ? 0 : UINT64_MAX;
		if (before > 0 && before < 64)
			inside &= UINT64_MAX << before;
		if (left > 0 && left < 64)
			inside &= ~(UINT64_MAX << left);
		bits[w] &= inside;
	}
}

static uint64_t all_if(unsigned flag)
{
	return flag ? UINT64_MAX : 0;
}

/* `bits` has all words: makes it what is asked for, but takes dummies for data. */
static void add_outside(const struct kind_mask *mask, int64_t from, unsigned n_words, uint64_t *bits)
{
	uint64_t others[KIND_MASK_WORDS];
	uint64_t data = all_if(mask->kinds & NPUMEM_BYTE_DATA);
	uint64_t empty = all_if(mask->kinds & NPUMEM_BYTE_EMPTY),
		 padding = all_if(mask->kinds & NPUMEM_BYTE_PADDING);
	fill_part(mask, KIND_MASK_EMPTY, from, n_words, others);
	for (unsigned w = 0; w < n_words; w++)
		bits[w] = (bits[w] & data) | (~bits[w] & ((others[w] & empty) | (~others[w] & padding)));
	clip(mask, from, n_words, bits);
}

/* Only one of data and dummies is asked for. */
static void sort_dummies(const struct kind_mask *mask, int64_t from, unsigned n_words, uint64_t *bits)
{
	uint64_t dummies[KIND_MASK_WORDS];
	bool data = mask->kinds & NPUMEM_BYTE_DATA;
	if (!mask->n[KIND_MASK_DUMMY])
		return;
	fill_part(mask, KIND_MASK_DUMMY, from, n_words, dummies);
	for (unsigned w = 0; w < n_words; w++)
		bits[w] = data ? bits[w] & ~dummies[w] : bits[w] | dummies[w];
}

void kind_mask_bits(const struct kind_mask *mask, int64_t from, unsigned n_words, uint64_t *bits)
{
	bool data = mask->kinds & NPUMEM_BYTE_DATA, dummy = mask->kinds & NPUMEM_BYTE_DUMMY;
	if (mask->kinds == KIND_MASK_ALL) {
		memset(bits, 0xff, n_words * sizeof(*bits));
		clip(mask, from, n_words, bits);
		return;
	}
	fill_part(mask, KIND_MASK_WORD, from, n_words, bits);
	if (!data || mask->kinds & ~(unsigned)WORDS)
		add_outside(mask, from, n_words, bits);
	if (data != dummy)
		sort_dummies(mask, from, n_words, bits);
}

void kind_mask_split(const struct kind_mask *mask, int64_t from, unsigned n_words, struct kind_mask_split *split)
{
	fill_part(mask, KIND_MASK_WORD, from, n_words, split->data);
	fill_part(mask, KIND_MASK_DUMMY, from, n_words, split->dummy);
	fill_part(mask, KIND_MASK_EMPTY, from, n_words, split->empty);
	for (unsigned w = 0; w < n_words; w++) {
		split->padding[w] = ~(split->data[w] | split->empty[w]);
		split->empty[w] &= ~split->data[w];
		split->data[w] &= ~split->dummy[w];
	}
	clip(mask, from, n_words, split->padding);
}

/* ---- how far it goes on ---- */

int64_t kind_mask_until(const struct kind_mask *mask, int64_t at, bool *in)
{
	static const unsigned kinds[KIND_MASK_PARTS] = {NPUMEM_BYTE_EMPTY, NPUMEM_BYTE_DATA, NPUMEM_BYTE_DUMMY};
	unsigned kind = mask->kinds == KIND_MASK_ALL ? NPUMEM_BYTE_DATA : NPUMEM_BYTE_PADDING;
	int64_t until = mask->to;
	for (unsigned part = 0; part < KIND_MASK_PARTS; part++)
		for (unsigned i = 0; i < mask->n[part]; i++) {
			bool in_box;
			int64_t box_until = strided_box_until(&mask->boxes[part][i], at, &in_box);
			until = box_until < until ? box_until : until;
			kind = in_box ? kinds[part] : kind;
		}
	/* If data and dummies are not distinguished, both are asked for or neither. */
	*in = mask->kinds & kind;
	return until;
}

int64_t kind_mask_period(const struct kind_mask *mask, int64_t at, int64_t most, int64_t *period)
{
	int64_t until = mask->to;
	for (unsigned part = 0; part < KIND_MASK_PARTS; part++)
		for (unsigned i = 0; i < mask->n[part]; i++) {
			int64_t box_until = strided_box_period(&mask->boxes[part][i], at, most, period);
			until = box_until < until ? box_until : until;
		}
	return until;
}

unsigned kind_mask_cuts(const struct npumem_geometry *geometry, const struct npumem_place *place, unsigned kinds,
			int64_t cuts[KIND_MASK_CUTS])
{
	int64_t last = (place->start_npu + place->shape.c - 1) % geometry->n_npus;
	int64_t all[] = {place->start_npu, last + 1, place->last_w != place->shape.w ? last : 0};
	unsigned n = 0;
	for (unsigned i = 0; i < KIND_MASK_CUTS && kinds != KIND_MASK_ALL; i++)
		if (all[i] > 0 && all[i] < geometry->n_npus)
			cuts[n++] = all[i];
	return n;
}
