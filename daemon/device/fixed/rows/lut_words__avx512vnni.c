/* Tables read with words, 32 at a time: entries and their differences from the next one are two tables in
 * registers, of which a permutation reads 64 words. The interpolation is a product of which the high half is kept,
 * with halves rounded up; what another mode does to a tie is taken back. */
#include "daemon/device/fixed/rows/vectors/vector.h"

#include "daemon/device/fixed/rows/lut.h"

enum { PAIRS = VECTOR_TABLE / 64, SCALE = 15 };

struct table {
	__m512i words[2 * PAIRS];
};

/* Which of the pairs an element is in. */
struct place {
	__m512i at;
	__mmask32 odd, second, last;
};

VECTOR __m512i table_read(const struct table *table, const struct place *place)
{
	__m512i pairs[PAIRS];
	VECTOR_UNROLL
	for (int i = 0; i < PAIRS; i++)
		pairs[i] = _mm512_permutex2var_epi16(table->words[2 * i], place->at, table->words[2 * i + 1]);
	VECTOR_UNROLL
	for (int i = 0; i < PAIRS; i += 2)
		pairs[i] = _mm512_mask_mov_epi16(pairs[i], place->odd, pairs[i + 1]);
	pairs[0] = _mm512_mask_mov_epi16(pairs[0], place->second, pairs[2]);
	return _mm512_mask_mov_epi16(pairs[0], place->last, pairs[4]);
}

struct words {
	struct table entries, down;
	__m128i right, left;
	__m512i offset, last, mask, minus;
	enum npumem_rounding rounding;
};

/* Where in the table x is, less what is taken off; `below`: it is negative or 0, and may have 17 bits, so that
 * only its magnitude has a place in a word. *within has its low bits. */
VECTOR __m512i words_at(const struct words *w, __m512i x, const bool below, __m512i *within)
{
	__m512i at, one = _mm512_set1_epi16(1);
	if (below) {
		__m512i steps = _mm512_srl_epi16(_mm512_sub_epi16(w->minus, x), w->right);
		*within = _mm512_and_si512(_mm512_sub_epi16(x, w->minus), w->mask);
		at = _mm512_sub_epi16(w->offset, steps);
		at = _mm512_mask_sub_epi16(at, _mm512_test_epi16_mask(*within, *within), at, one);
	} else {
		*within = _mm512_and_si512(x, w->mask);
		at = _mm512_add_epi16(_mm512_sra_epi16(x, w->right), w->offset);
	}
	return _mm512_min_epi16(_mm512_max_epi16(at, _mm512_setzero_si512()), w->last);
}

VECTOR __m512i words_read(const struct words *w, __m512i x, const bool below)
{
	__m512i within, at = words_at(w, x, below, &within);
	const struct place place = {at, _mm512_test_epi16_mask(at, _mm512_set1_epi16(64)),
				    _mm512_test_epi16_mask(at, _mm512_set1_epi16(128)),
				    _mm512_test_epi16_mask(at, _mm512_set1_epi16(256))};
	__m512i here = table_read(&w->entries, &place), down = table_read(&w->down, &place);
	within = _mm512_sll_epi16(within, w->left);
	__m512i part = _mm512_mulhrs_epi16(down, within), one = _mm512_set1_epi16(1);
	if (w->rounding != NPUMEM_UP) {
		__m512i rest = _mm512_and_si512(_mm512_mullo_epi16(down, within), _mm512_set1_epi16(0x7fff));
		__mmask32 tie = _mm512_cmpeq_epi16_mask(rest, _mm512_set1_epi16(0x4000));
		tie &= w->rounding == NPUMEM_CONVERGENT ? _mm512_test_epi16_mask(part, one)
							: _mm512_movepi16_mask(down);
		part = _mm512_mask_sub_epi16(part, tie, part, one);
	}
	return _mm512_sub_epi16(here, part);
}

VECTOR void words_row(const struct words *w, const int16_t *in, int64_t n, const bool below, int16_t *out)
{
	for (int64_t i = 0; i < n; i += VECTOR_WORDS) {
		__mmask32 lanes = vector_word_lanes(n - i);
		__m512i x = _mm512_maskz_loadu_epi16(lanes, in + i);
		_mm512_mask_storeu_epi16(out + i, lanes, words_read(w, x, below));
	}
}

void lut_words__avx512vnni(const struct lut_row *row, int64_t n)
{
	const struct lut_reader *reader = row->reader;
	struct words w = {.right = _mm_cvtsi32_si128((int)reader->right),
			  .left = _mm_cvtsi32_si128(SCALE - (int)reader->right),
			  .offset = _mm512_set1_epi16((short)reader->offset),
			  .last = _mm512_set1_epi16((short)reader->last),
			  .mask = _mm512_set1_epi16((short)((1 << reader->right) - 1)),
			  .minus = _mm512_set1_epi16((short)row->minus),
			  .rounding = reader->rounding};
	VECTOR_UNROLL
	for (int i = 0; i < 2 * PAIRS; i++) {
		const int16_t *words = reader->padded + VECTOR_WORDS * i;
		w.entries.words[i] = _mm512_loadu_si512(words);
		w.down.words[i] = _mm512_sub_epi16(w.entries.words[i], _mm512_loadu_si512(words + 1));
	}
	if (row->minus)
		words_row(&w, row->in, n, true, row->out);
	else
		words_row(&w, row->in, n, false, row->out);
}
