/* 8-bit data and weights by vpmaddubsw, which saturates sums of two products to 16 bits. Where weights keep the
 * sums of two steps in those, these are added before they are widened; where only those of one step, that comes
 * alone; what is left goes the way of conv_pairs_6x16__avx2.c, data being split into terms 0 and 2, then 1 and 3.
 */
#include "daemon/device/engine/ukernel_avx2.h"

enum {
	VECTORS = 2,
	MOST = 128, /* times 255 it is less than 2^15 */
};

/* ---- weights ---- */

/* How many steps come in twos and how many alone, and which they are, those of words behind them; then weights. */
struct arranged {
	uint16_t n_twos, n_ones, order[];
};

/* Whether 16 bits hold all sums of two products of a step's rows, and of those with another step's. */
static bool fit(const int8_t *one, const int8_t *other, unsigned rows)
{
	bool fit = true;
	for (unsigned i = 0; i < UKERNEL_STEP_BYTES * rows; i += 2) {
		const int weights[4] = {one[i], one[i + 1], other ? other[i] : 0, other ? other[i + 1] : 0};
		int above = 0, below = 0;
		for (unsigned j = 0; j < 4; j++) {
			above += weights[j] > 0 ? weights[j] : 0;
			below += weights[j] < 0 ? weights[j] : 0;
		}
		fit &= above <= MOST && below >= -MOST;
	}
	return fit;
}

struct arranging {
	struct arranged *head;
	unsigned rows, n;
	uint8_t *to;
};

static void add_step(struct arranging *a, const int8_t *step, int64_t k, bool as_words)
{
	const unsigned bytes = UKERNEL_STEP_BYTES * a->rows;
	int8_t put[UKERNEL_STEP_BYTES * UKERNEL_ROWS];
	int16_t words[2][2 * UKERNEL_ROWS];
	memcpy(put, step, bytes);
	a->head->order[a->n++] = (uint16_t)k;
	if (!as_words) {
		memcpy(a->to, put, bytes);
		a->to += bytes;
		return;
	}
	for (unsigned i = 0; i < bytes; i++)
		words[i % 2][i / 2] = put[i];
	memcpy(a->to, words[0], bytes);
	memcpy(a->to + bytes, words[1], bytes);
	a->to += 2 * bytes;
}

/* A step's weights take at most twice the room of those that are put at the end, and words come last: no write
 * reaches what is yet to be read. */
static void arrange(int64_t n_steps, unsigned rows, uint8_t *block)
{
	enum { OF_TWO, ALONE, WORDS };
	uint8_t kinds[UKERNEL_STEPS_MAX];
	struct arranging a = {(struct arranged *)block, rows, 0, block + ukernel_order_bytes(n_steps)};
	const unsigned bytes = UKERNEL_STEP_BYTES * rows;
	const int8_t *put = (const int8_t *)a.to + n_steps * bytes;
	int64_t waiting = -1;
	for (int64_t k = 0; k < n_steps; k++) {
		kinds[k] = fit(put + k * bytes, NULL, rows) ? ALONE : WORDS;
		if (kinds[k] == WORDS)
			continue;
		if (waiting < 0 || !fit(put + waiting * bytes, put + k * bytes, rows)) {
			waiting = k;
			continue;
		}
		add_step(&a, put + waiting * bytes, waiting, false);
		add_step(&a, put + k * bytes, k, false);
		kinds[waiting] = kinds[k] = OF_TWO;
		waiting = -1;
	}
	a.head->n_twos = (uint16_t)a.n;
	for (int64_t k = 0; k < n_steps; k++)
		if (kinds[k] == ALONE)
			add_step(&a, put + k * bytes, k, false);
	a.head->n_ones = (uint16_t)(a.n - a.head->n_twos);
	for (int64_t k = 0; k < n_steps; k++)
		if (kinds[k] == WORDS)
			add_step(&a, put + k * bytes, k, true);
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

UKERNEL_INLINE __m256i load(const uint8_t *data, unsigned v)
{
	return _mm256_loadu_si256((const __m256i *)data + v);
}

UKERNEL_INLINE __m256i step_of(const uint8_t *weights, unsigned row)
{
	int32_t step;
	memcpy(&step, weights + UKERNEL_STEP_BYTES * row, sizeof(step));
	return _mm256_set1_epi32(step);
}

/* As C it makes gcc spill the sums. */
UKERNEL_INLINE __m256i add_in_place(__m256i acc, __m256i x)
{
	__asm__("vpaddd %1, %0, %0" : "+x"(acc) : "x"(x));
	return acc;
}

UKERNEL_INLINE void add_words(__m256i acc[UKERNEL_ROWS][VECTORS], const __m256i *x, const uint8_t *weights,
			      const unsigned rows, const unsigned vectors)
{
	UKERNEL_UNROLL
	for (unsigned r = 0; r < rows; r++) {
		UKERNEL_UNROLL
		for (unsigned v = 0; v < vectors; v++)
			acc[r][v] = add_in_place(acc[r][v], _mm256_madd_epi16(x[v], step_of(weights, r)));
	}
}

UKERNEL_INLINE void add_bytes(__m256i acc[UKERNEL_ROWS][VECTORS], const uint8_t *x, const uint8_t *y,
			      const uint8_t *weights, const unsigned rows, const unsigned vectors, const bool two)
{
	const __m256i one = _mm256_set1_epi16(1);
	UKERNEL_UNROLL
	for (unsigned r = 0; r < rows; r++) {
		UKERNEL_UNROLL
		for (unsigned v = 0; v < vectors; v++) {
			__m256i sum = _mm256_maddubs_epi16(load(x, v), step_of(weights, r));
			if (two)
				sum = _mm256_add_epi16(
					sum, _mm256_maddubs_epi16(load(y, v), step_of(weights, rows + r)));
			acc[r][v] = add_in_place(acc[r][v], _mm256_madd_epi16(sum, one));
		}
	}
}

UKERNEL_INLINE void sum(const uint32_t *offsets, int64_t n_steps, const uint8_t *data, const uint8_t *weights,
			int32_t *sums, const unsigned rows, const unsigned vectors)
{
	const struct arranged *head = (const struct arranged *)weights;
	const uint16_t *order = head->order, *ones = order + head->n_twos, *words = ones + head->n_ones,
		       *end = order + n_steps;
	__m256i acc[UKERNEL_ROWS][VECTORS];
	UKERNEL_UNROLL
	for (unsigned r = 0; r < rows; r++)
		acc[r][0] = acc[r][1] = _mm256_setzero_si256();
	weights += ukernel_order_bytes(n_steps);
	for (; order < ones; order += 2, weights += 2 * UKERNEL_STEP_BYTES * rows)
		add_bytes(acc, data + offsets[order[0]], data + offsets[order[1]], weights, rows, vectors, true);
	for (; order < words; order++, weights += UKERNEL_STEP_BYTES * rows)
		add_bytes(acc, data + offsets[*order], NULL, weights, rows, vectors, false);
	for (; order < end; order++, weights += 2 * UKERNEL_STEP_BYTES * rows) {
		__m256i x[VECTORS], y[VECTORS];
		UKERNEL_UNROLL
		for (unsigned v = 0; v < vectors; v++) {
			__m256i at = load(data + offsets[*order], v);
			x[v] = _mm256_and_si256(at, _mm256_set1_epi16(0xff));
			y[v] = _mm256_srli_epi16(at, 8);
		}
		add_words(acc, x, weights, rows, vectors);
		add_words(acc, y, weights + UKERNEL_STEP_BYTES * rows, rows, vectors);
	}
	UKERNEL_UNROLL
	for (unsigned r = 0; r < rows; r++) {
		UKERNEL_UNROLL
		for (unsigned v = 0; v < vectors; v++)
			_mm256_store_si256((__m256i *)(sums + r * UKERNEL_COLUMNS + 8 * v), acc[r][v]);
	}
}

UKERNEL_AVX2_BLOCK

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
