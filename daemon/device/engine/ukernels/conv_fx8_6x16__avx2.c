/* 8-bit data and weights by vpmaddubsw, four products in two instructions. It saturates sums of two products to 16
 * bits: steps where weights allow sums that these do not hold go the way of conv_pairs_6x16__avx2.c, data being
 * split into terms 0 and 2, then 1 and 3. Of each block the steps that do not come first, each kind in its order.
 */
#include "daemon/device/engine/ukernel_avx2.h"

enum {
	COLUMNS = 16,
	VECTORS = 2,
	PAIR_MOST = 128, /* times 255 it is less than 2^15 */
};

/* ---- weights ---- */

/* How many steps are of bytes, and which they are, those of words behind them; then weights. */
struct arranged {
	uint32_t n_bytes;
	uint16_t order[];
};

UKERNEL_INLINE bool may_pair(int8_t a, int8_t b)
{
	return (a > 0 ? a : 0) + (b > 0 ? b : 0) <= PAIR_MOST && (a < 0 ? a : 0) + (b < 0 ? b : 0) >= -PAIR_MOST;
}

static bool may_saturate(const int8_t *weights, unsigned rows)
{
	bool fit = true;
	for (unsigned i = 0; i < UKERNEL_STEP_BYTES * rows; i += 2)
		fit &= may_pair(weights[i], weights[i + 1]);
	return !fit;
}

/* A step's weights take twice the room of those that are put at the end: no write reaches what is yet to be read.
 */
static void arrange(int64_t n_steps, unsigned rows, uint8_t *block)
{
	struct arranged *head = (struct arranged *)block;
	unsigned bytes = UKERNEL_STEP_BYTES * rows;
	uint8_t *to = block + ukernel_order_bytes(n_steps);
	const int8_t *put = (const int8_t *)to + n_steps * bytes;
	uint32_t n = 0;
	for (int64_t k = 0; k < n_steps; k++)
		if (!may_saturate(put + k * bytes, rows)) {
			memmove(to, put + k * bytes, bytes);
			to += bytes;
			head->order[n++] = (uint16_t)k;
		}
	head->n_bytes = n;
	for (int64_t k = 0; k < n_steps; k++)
		if (may_saturate(put + k * bytes, rows)) {
			int8_t step[UKERNEL_STEP_BYTES * UKERNEL_ROWS];
			int16_t words[2][2 * UKERNEL_ROWS];
			memcpy(step, put + k * bytes, bytes);
			for (unsigned i = 0; i < bytes; i++)
				words[i % 2][i / 2] = step[i];
			memcpy(to, words[0], bytes);
			memcpy(to + bytes, words[1], bytes);
			to += 2 * bytes;
			head->order[n++] = (uint16_t)k;
		}
}

/* ---- data ---- */

/* 32 pixels of four lines, of which unpacking takes 4 from either half of a register. */
UKERNEL_INLINE void pack_32(const uint8_t *const lines[UKERNEL_TERMS_MAX], uint8_t *to)
{
	__m256i x[UKERNEL_TERMS_MAX], y[4];
	UKERNEL_UNROLL
	for (unsigned j = 0; j < UKERNEL_TERMS_MAX; j++)
		x[j] = _mm256_xor_si256(_mm256_loadu_si256((const __m256i *)lines[j]), _mm256_set1_epi8(INT8_MIN));
	__m256i a = _mm256_unpacklo_epi8(x[0], x[1]), b = _mm256_unpackhi_epi8(x[0], x[1]);
	__m256i c = _mm256_unpacklo_epi8(x[2], x[3]), d = _mm256_unpackhi_epi8(x[2], x[3]);
	y[0] = _mm256_unpacklo_epi16(a, c);
	y[1] = _mm256_unpackhi_epi16(a, c);
	y[2] = _mm256_unpacklo_epi16(b, d);
	y[3] = _mm256_unpackhi_epi16(b, d);
	UKERNEL_UNROLL
	for (unsigned i = 0; i < 4; i += 2, to += 32) {
		_mm256_storeu_si256((__m256i *)to, _mm256_permute2x128_si256(y[i], y[i + 1], 0x20));
		_mm256_storeu_si256((__m256i *)(to + 64), _mm256_permute2x128_si256(y[i], y[i + 1], 0x31));
	}
}

static void pack(unsigned bytes, const void *const *lines, int64_t n, int64_t high_off, uint8_t *to)
{
	(void)bytes, (void)high_off;
	int64_t end = (n + UKERNEL_COLUMNS - 1) / UKERNEL_COLUMNS * UKERNEL_COLUMNS;
	for (int64_t i = 0; i < end; i += 32, to += 32 * UKERNEL_STEP_BYTES) {
		const uint8_t *at[UKERNEL_TERMS_MAX];
		uint8_t last[UKERNEL_TERMS_MAX][32] = {{0}};
		int64_t some = i < n ? n - i : 0;
		for (unsigned j = 0; j < UKERNEL_TERMS_MAX; j++)
			at[j] = some < 32 ? memcpy(last[j], (const uint8_t *)lines[j] + n - some, (size_t)some)
					  : (const uint8_t *)lines[j] + i;
		pack_32(at, to);
	}
}

/* ---- sums ---- */

UKERNEL_INLINE __m256i step_of(const uint8_t *weights, unsigned row)
{
	int32_t step;
	memcpy(&step, weights + UKERNEL_STEP_BYTES * row, sizeof(step));
	return _mm256_set1_epi32(step);
}

UKERNEL_INLINE void add_words(__m256i acc[UKERNEL_ROWS][VECTORS], __m256i x, __m256i y, const uint8_t *weights,
			      const unsigned rows)
{
	UKERNEL_UNROLL
	for (unsigned r = 0; r < rows; r++) {
		__m256i w = step_of(weights, r);
		acc[r][0] = _mm256_add_epi32(acc[r][0], _mm256_madd_epi16(x, w));
		acc[r][1] = _mm256_add_epi32(acc[r][1], _mm256_madd_epi16(y, w));
	}
}

UKERNEL_INLINE void add_bytes(__m256i acc[UKERNEL_ROWS][VECTORS], __m256i x, __m256i y, const uint8_t *weights,
			      const unsigned rows)
{
	const __m256i one = _mm256_set1_epi16(1);
	UKERNEL_UNROLL
	for (unsigned r = 0; r < rows; r++) {
		__m256i w = step_of(weights, r);
		__m256i a = _mm256_madd_epi16(_mm256_maddubs_epi16(x, w), one);
		__m256i b = _mm256_madd_epi16(_mm256_maddubs_epi16(y, w), one);
		acc[r][0] = _mm256_add_epi32(acc[r][0], a);
		acc[r][1] = _mm256_add_epi32(acc[r][1], b);
	}
}

UKERNEL_INLINE void sum(const uint32_t *offsets, int64_t n_steps, const uint8_t *data, const uint8_t *weights,
			int32_t *sums, const unsigned rows)
{
	const struct arranged *head = (const struct arranged *)weights;
	const uint16_t *order = head->order, *words = order + head->n_bytes, *end = order + n_steps;
	const __m256i low = _mm256_set1_epi16(0xff);
	__m256i acc[UKERNEL_ROWS][VECTORS];
	UKERNEL_UNROLL
	for (unsigned r = 0; r < rows; r++)
		acc[r][0] = acc[r][1] = _mm256_setzero_si256();
	weights += ukernel_order_bytes(n_steps);
	for (; order < words; order++, weights += UKERNEL_STEP_BYTES * rows) {
		const __m256i *at = (const __m256i *)(data + offsets[*order]);
		add_bytes(acc, _mm256_loadu_si256(at), _mm256_loadu_si256(at + 1), weights, rows);
	}
	for (; order < end; order++, weights += UKERNEL_STEP_BYTES * rows) {
		const __m256i *at = (const __m256i *)(data + offsets[*order]);
		add_words(acc, _mm256_and_si256(_mm256_loadu_si256(at), low),
			  _mm256_and_si256(_mm256_loadu_si256(at + 1), low), weights, rows);
		weights += UKERNEL_STEP_BYTES * rows;
		add_words(acc, _mm256_srli_epi16(_mm256_loadu_si256(at), 8),
			  _mm256_srli_epi16(_mm256_loadu_si256(at + 1), 8), weights, rows);
	}
	UKERNEL_UNROLL
	for (unsigned r = 0; r < rows; r++) {
		_mm256_store_si256((__m256i *)(sums + r * UKERNEL_COLUMNS), acc[r][0]);
		_mm256_store_si256((__m256i *)(sums + r * UKERNEL_COLUMNS + 8), acc[r][1]);
	}
}

UKERNEL_BLOCK_OF_ROWS(COLUMNS)

const struct ukernel conv_fx8_6x16__avx2 = {
	.name = "conv_fx8_6x16__avx2",
	.n_terms = 4,
	.weight_bytes = 1,
	.rows = UKERNEL_ROWS,
	.speed = 32,
	.depth = 1,
	.unsigned_data = true,
	UKERNEL_PLAIN_MOVES,
	.arrange = arrange,
	.pack = pack,
	.block = block,
	.widen = ukernel_plain_widen,
	.store32 = ukernel_avx2_store32,
};
