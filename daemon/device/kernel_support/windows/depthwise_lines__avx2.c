/* 16 sums at a time. What is real of 8 bytes is moved together by pext and stored with what comes behind it, which
 * the next ones then cover. */
#include "daemon/device/kernel_support/windows/depthwise_lines.h"

#include "daemon/device/fixed/rows/vectors/vector.h"
#include "daemon/device/fixed/rows/vectors/vector_rounding.h"

enum {
	GROUP = 8,
	COLUMNS = 2 * GROUP,
	FEW = 6, /* pairs of a window of 3 x 3, whose weights stay in registers */
};

/* 16 results, in order, saturated to 16 bits. Of a stride of 1 every second sum is in a vector: the pairs of each
 * are elements of 32 bits as they lie. */
VECTOR vector results(const struct depthwise_lines *l, const struct rounding *rounding, const int16_t *in,
		      const int64_t n_pairs, const vector *weights, const int64_t stride)
{
	vector a = vector_set(l->taps.low_bias), b = a;
	VECTOR_UNROLL
	for (int64_t k = 0; k < n_pairs; k++) {
		const int16_t *at = in + l->taps.offsets[k];
		vector w = weights ? weights[k] : vector_set(l->taps.low[k]);
		a = vector_add_pairs(a, vector_load32(at, VECTOR_N), w);
		b = vector_add_pairs(b, vector_load32(at + (stride == 1 ? 1 : COLUMNS), VECTOR_N), w);
	}
	vector words = _mm256_packs_epi32(rounded_right(rounding, a), rounded_right(rounding, b));
	if (stride == 2)
		return _mm256_permute4x64_epi64(words, 0xd8);
	const __m128i order = _mm_setr_epi8(0, 1, 8, 9, 2, 3, 10, 11, 4, 5, 12, 13, 6, 7, 14, 15);
	return _mm256_shuffle_epi8(words, _mm256_broadcastsi128_si256(order));
}

/* The real ones of 8 bytes of which the line has n more. */
VECTOR uint64_t real_of(const struct depthwise_lines *l, int64_t n, int64_t *phase)
{
	uint64_t real = l->real[*phase];
	*phase += l->way;
	*phase -= *phase >= l->pitch ? l->pitch : 0;
	return n >= GROUP ? real : n <= 0 ? 0 : real & ~(~UINT64_C(0) << (8 * n));
}

VECTOR uint8_t *put(uint64_t bytes, uint64_t real, uint8_t *to, const uint8_t *end)
{
	bytes = _pext_u64(bytes, real);
	int64_t n = __builtin_popcountll(real) / 8;
	if (end - to >= GROUP)
		memcpy(to, &bytes, GROUP);
	else
		for (int64_t i = 0; i < n; i++)
			to[i] = (uint8_t)(bytes >> (8 * i));
	return to + n;
}

VECTOR int64_t run(const struct depthwise_lines *l, const int64_t n_pairs, const vector *weights,
		   const int64_t stride)
{
	const struct rounding rounding = rounding_of(l->to, 0);
	const vector low = _mm256_set1_epi8((char)l->to->limit_low),
		     high = _mm256_set1_epi8((char)l->to->limit_high);
	const vector ones = _mm256_set1_epi16(-1);
	vector saturated = vector_set(0);
	const uint8_t *end = l->out + l->n_outputs;
	uint8_t *to = l->out;
	const int16_t *in = l->taps.in;
	for (int64_t line = 0; line < l->n; line++, in += l->step)
		for (int64_t i = 0, phase = 0; i < l->length; i += COLUMNS) {
			vector words = results(l, &rounding, in + i * stride, n_pairs, weights, stride);
			vector bytes = _mm256_packs_epi16(words, words);
			vector fits = _mm256_cmpeq_epi16(_mm256_srai_epi16(_mm256_unpacklo_epi8(bytes, bytes), 8),
							 words);
			uint64_t first = real_of(l, l->length - i, &phase);
			uint64_t second = real_of(l, l->length - i - GROUP, &phase);
			vector real = _mm256_cvtepi8_epi16(_mm_set_epi64x((int64_t)second, (int64_t)first));
			saturated += (vector)_mm256_madd_epi16(_mm256_andnot_si256(fits, real), ones);
			bytes = _mm256_min_epi8(_mm256_max_epi8(bytes, low), high);
			to = put((uint64_t)_mm256_extract_epi64(bytes, 0), first, to, end);
			to = put((uint64_t)_mm256_extract_epi64(bytes, 2), second, to, end);
		}
	int64_t n = 0;
	for (int i = 0; i < VECTOR_N; i++)
		n += saturated[i];
	return n;
}

VECTOR int64_t run_by(const struct depthwise_lines *l, const int64_t stride)
{
	vector weights[FEW];
	if (l->taps.n != FEW)
		return run(l, l->taps.n, NULL, stride);
	VECTOR_UNROLL
	for (int64_t k = 0; k < FEW; k++)
		weights[k] = vector_set(l->taps.low[k]);
	return run(l, FEW, weights, stride);
}

int64_t depthwise_lines__avx2(const struct depthwise_lines *lines)
{
	return lines->taps.stride == 1 ? run_by(lines, 1) : run_by(lines, 2);
}
