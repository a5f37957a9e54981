/* Pairs of 16-bit terms by vpmaddwd, for 8-bit data too: vpmaddubsw would saturate. 12 sums, 2 vectors of pixels,
 * one weight and one product are the 16 registers. */
#include "daemon/device/engine/ukernel_avx2.h"

enum { VECTORS = 2 };

UKERNEL_INLINE __m256i load(unsigned bytes, const void *line, int64_t i)
{
	if (bytes == 1)
		return _mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i *)((const int8_t *)line + i)));
	return _mm256_loadu_si256((const __m256i *)((const int16_t *)line + i));
}

/* 16 pixels of both lines: unpacking works in halves, so the middle quarters change places first. */
UKERNEL_INLINE int64_t pack_pairs(unsigned bytes, const void *const *lines, int64_t n, uint8_t *to)
{
	int64_t i = 0;
	for (; i + 16 <= n; i += 16) {
		__m256i a = _mm256_permute4x64_epi64(load(bytes, lines[0], i), 0xd8);
		__m256i b = _mm256_permute4x64_epi64(load(bytes, lines[1], i), 0xd8);
		_mm256_storeu_si256((__m256i *)(to + 4 * i), _mm256_unpacklo_epi16(a, b));
		_mm256_storeu_si256((__m256i *)(to + 4 * i + 32), _mm256_unpackhi_epi16(a, b));
	}
	return i;
}

static void pack(unsigned bytes, const void *const *lines, int64_t n, int64_t high_off, uint8_t *to)
{
	(void)high_off;
	int64_t i = bytes == 1 ? pack_pairs(1, lines, n, to) : pack_pairs(2, lines, n, to);
	ukernel_plain_pairs(bytes, lines, i, n, to);
}

UKERNEL_INLINE void sum(const uint32_t *offsets, int64_t n_steps, const uint8_t *data, const uint8_t *weights,
			int32_t *sums, const unsigned rows, const unsigned vectors)
{
	__m256i acc[UKERNEL_ROWS][VECTORS];
	UKERNEL_UNROLL
	for (unsigned r = 0; r < rows; r++)
		acc[r][0] = acc[r][1] = _mm256_setzero_si256();
	for (int64_t k = 0; k < n_steps; k++, weights += UKERNEL_STEP_BYTES * rows) {
		const __m256i *at = (const __m256i *)(data + offsets[k]);
		__m256i x = _mm256_loadu_si256(at), y = vectors > 1 ? _mm256_loadu_si256(at + 1) : x;
		UKERNEL_UNROLL
		for (unsigned r = 0; r < rows; r++) {
			int32_t pair;
			memcpy(&pair, weights + 4 * r, sizeof(pair));
			__m256i w = _mm256_set1_epi32(pair);
			acc[r][0] = _mm256_add_epi32(acc[r][0], _mm256_madd_epi16(x, w));
			if (vectors > 1)
				acc[r][1] = _mm256_add_epi32(acc[r][1], _mm256_madd_epi16(y, w));
		}
	}
	UKERNEL_UNROLL
	for (unsigned r = 0; r < rows; r++) {
		_mm256_store_si256((__m256i *)(sums + r * UKERNEL_COLUMNS), acc[r][0]);
		if (vectors > 1)
			_mm256_store_si256((__m256i *)(sums + r * UKERNEL_COLUMNS + 8), acc[r][1]);
	}
}

UKERNEL_AVX2_BLOCK

static void widen(const int32_t *sums, unsigned rows, unsigned n_columns, unsigned shift, bool first,
		  int64_t *wide)
{
	for (unsigned row = 0; row < rows; row++, sums += UKERNEL_COLUMNS, wide += UKERNEL_COLUMNS)
		for (unsigned i = 0; i < n_columns; i += 4) {
			__m256i x = _mm256_cvtepi32_epi64(_mm_load_si128((const __m128i *)(sums + i)));
			x = _mm256_sll_epi64(x, _mm_cvtsi32_si128((int)shift));
			if (!first)
				x = _mm256_add_epi64(x, _mm256_load_si256((const __m256i *)(wide + i)));
			_mm256_store_si256((__m256i *)(wide + i), x);
		}
}

/* ---- stores of 16 bits ---- */

/* As struct ukernel_avx2_round, of sums of 64 bits. */
struct round64 {
	__m256i half, away, below, even, offset, shifted;
	__m128i shift;
};

enum { OFFSET_BITS = 62 }; /* makes sums positive: there is no arithmetic shift of 64 bits */

static struct round64 round64_of(const struct requantize *r)
{
	const int64_t half = r->shift > 0 ? INT64_C(1) << (r->shift - 1) : 0, offset = INT64_C(1) << OFFSET_BITS;
	return (struct round64){
		.half = _mm256_set1_epi64x(half),
		.away = _mm256_set1_epi64x(half && r->rounding == NPUMEM_NEAREST),
		.below = _mm256_set1_epi64x((INT64_C(1) << r->shift) - 1),
		.even = _mm256_set1_epi64x(half && r->rounding == NPUMEM_CONVERGENT),
		.offset = _mm256_set1_epi64x(offset),
		.shifted = _mm256_set1_epi64x(offset >> r->shift),
		.shift = _mm_cvtsi64_si128(r->shift),
	};
}

/* 4 sums to results, saturated to 32 bits. */
UKERNEL_INLINE __m256i round64(__m256i x, const struct round64 *r)
{
	const __m256i most = _mm256_set1_epi64x(INT32_MAX), least = _mm256_set1_epi64x(INT32_MIN);
	__m256i t = _mm256_sub_epi64(_mm256_add_epi64(x, r->half),
				     _mm256_and_si256(_mm256_srli_epi64(x, 63), r->away));
	__m256i y = _mm256_sub_epi64(_mm256_srl_epi64(_mm256_add_epi64(t, r->offset), r->shift), r->shifted);
	__m256i tie = _mm256_cmpeq_epi64(_mm256_and_si256(t, r->below), _mm256_setzero_si256());
	y = _mm256_andnot_si256(_mm256_and_si256(tie, r->even), y);
	y = _mm256_blendv_epi8(y, most, _mm256_cmpgt_epi64(y, most));
	return _mm256_blendv_epi8(y, least, _mm256_cmpgt_epi64(least, y));
}

static int64_t store64(const struct ukernel_result *result, const struct ukernel_strip *strip, unsigned rows,
		       const int64_t *sums)
{
	const struct round64 round = round64_of(result->requantize);
	struct ukernel_avx2_store store;
	ukernel_avx2_begin(&store, 2, result->requantize, strip->real);
	for (unsigned row = 0; row < rows; row++) {
		__m256i total = _mm256_set1_epi64x(result->totals[row]), y[UKERNEL_AVX2_VECTORS];
		const __m256i *x = (const __m256i *)(sums + row * UKERNEL_COLUMNS);
		UKERNEL_UNROLL
		for (unsigned v = 0; v < UKERNEL_AVX2_VECTORS; v++, x += 2) {
			__m256i a = round64(_mm256_add_epi64(total, _mm256_load_si256(x)), &round);
			__m256i b = round64(_mm256_add_epi64(total, _mm256_load_si256(x + 1)), &round);
			__m256 low = _mm256_shuffle_ps(_mm256_castsi256_ps(a), _mm256_castsi256_ps(b), 0x88);
			y[v] = _mm256_permute4x64_epi64(_mm256_castps_si256(low), 0xd8);
		}
		ukernel_avx2_finish(&store, 2, strip, y, result->to[row] + result->at);
	}
	return ukernel_avx2_end(&store);
}

/* How sums in units of 2^UKERNEL_DROP become results; what is below a unit decides a tie alone. */
struct parts {
	__m256i away, below, even, half;
	__m128i shift;
	int64_t n_high, n_low;
};

/* 8 results. The half of their unit is whole units of the sums. */
UKERNEL_INLINE __m256i join(const struct parts *p, const int32_t *sums, int64_t total)
{
	const __m256i fraction = _mm256_set1_epi32((1 << UKERNEL_DROP) - 1);
	__m256i high = _mm256_add_epi32(_mm256_set1_epi32((int32_t)(total >> UKERNEL_DROP)), p->half);
	__m256i low = _mm256_set1_epi32((int32_t)(total & ((1 << UKERNEL_DROP) - 1)));
	for (int64_t i = 0; i < p->n_high; i++, sums += UKERNEL_PART)
		high = _mm256_add_epi32(high, _mm256_load_si256((const __m256i *)sums));
	for (int64_t i = 0; i < p->n_low; i++, sums += UKERNEL_PART) {
		__m256i x = _mm256_load_si256((const __m256i *)sums);
		high = _mm256_add_epi32(high, _mm256_srai_epi32(x, UKERNEL_DROP));
		low = _mm256_add_epi32(low, _mm256_and_si256(x, fraction));
	}
	high = _mm256_add_epi32(high, _mm256_srli_epi32(low, UKERNEL_DROP));
	__m256i whole = _mm256_cmpeq_epi32(_mm256_and_si256(low, fraction), _mm256_setzero_si256());
	/* What is negative is a little less: the next unit where it is whole. */
	__m256i less = _mm256_and_si256(_mm256_and_si256(whole, p->away), _mm256_cmpgt_epi32(p->half, high));
	high = _mm256_add_epi32(high, less);
	__m256i tie = _mm256_cmpeq_epi32(_mm256_and_si256(high, p->below), _mm256_setzero_si256());
	return _mm256_andnot_si256(_mm256_and_si256(_mm256_and_si256(tie, whole), p->even),
				   _mm256_sra_epi32(high, p->shift));
}

static int64_t store_parts(const struct ukernel_result *result, const struct ukernel_strip *strip, unsigned rows,
			   const int32_t *sums, int64_t n_high, int64_t n_low)
{
	const struct requantize *to = result->requantize;
	const struct parts parts = {
		.away = _mm256_set1_epi32(to->rounding == NPUMEM_NEAREST ? -1 : 0),
		.below = _mm256_set1_epi32((int32_t)((1u << to->shift) - 1)),
		.even = _mm256_set1_epi32(to->rounding == NPUMEM_CONVERGENT),
		.half = _mm256_set1_epi32(1 << (to->shift - 1)),
		.shift = _mm_cvtsi64_si128(to->shift),
		.n_high = n_high,
		.n_low = n_low,
	};
	struct ukernel_avx2_store store;
	ukernel_avx2_begin(&store, 2, to, strip->real);
	for (unsigned row = 0; row < rows; row++, sums += UKERNEL_COLUMNS) {
		__m256i y[UKERNEL_AVX2_VECTORS];
		UKERNEL_UNROLL
		for (unsigned v = 0; v < UKERNEL_AVX2_VECTORS; v++)
			y[v] = join(&parts, sums + 8 * v, result->totals[row]);
		ukernel_avx2_finish(&store, 2, strip, y, result->to[row] + result->at);
	}
	return ukernel_avx2_end(&store);
}

const struct ukernel conv_pairs_6x16__avx2 = {
	.name = "conv_pairs_6x16__avx2",
	.n_terms = 2,
	.weight_bytes = 2,
	.segment_min = 16,
	.rows = UKERNEL_ROWS,
	.speed = 24,
	.depth = 1,
	UKERNEL_PLAIN_MOVES,
	.pack = pack,
	.block = block,
	.widen = widen,
	.store32 = ukernel_avx2_store32,
	.store_parts = store_parts,
	.store64 = store64,
};
