/* Depthwise sums by vpdpbusd: 16 outputs of a row see up to 64 bytes of an input row, of which a permutation makes
 * their windows, four taps to each 32-bit element. The unsigned side is the input, shifted by 128; what that adds
 * to the sums, for padding too, is taken back with the bias. A mask keeps loads inside the row: padding is zero.
 */
#include "daemon/device/fixed/rows/vectors/vector.h"
#include "daemon/device/fixed/rows/vectors/vector_rounding.h"
#include "daemon/device/kernel_support/windows/depthwise.h"

#include <string.h>

enum {
	ABREAST = 4, /* vectors of outputs */
	STEPS_MAX = DEPTHWISE_TAPS_MAX * DEPTHWISE_QUADS_MAX,
	OFFSET = 128,
};

/* Which bytes of an input row a vector of outputs sees, from where, and which outputs they are. */
struct columns {
	__mmask64 seen;
	int64_t from;
	__mmask16 lanes;
};

struct strip {
	struct window_axis h, w;
	const uint8_t *in;
	uint8_t *out;
	int64_t quads;
	struct columns columns[ABREAST];
	struct requantize to;
	struct rounding rounding;
	vector initial, order[DEPTHWISE_QUADS_MAX];
	int32_t weights[STEPS_MAX];
};

static void strip_init(struct strip *s, const struct depthwise *d, const struct depthwise_channel *channel)
{
	const struct window_axis *h = &d->window.h, *w = &d->window.w;
	int32_t total = 0;
	s->h = *h;
	s->w = *w;
	s->in = channel->in;
	s->out = channel->out;
	s->to = d->to;
	s->rounding = rounding_of(&d->to, 0);
	s->quads = (w->kernel + 3) / 4;
	for (int64_t q = 0; q < s->quads; q++)
		s->order[q] = _mm512_loadu_si512(d->order[q]);
	memset(s->weights, 0, (size_t)(h->kernel * s->quads) * sizeof(*s->weights));
	for (int64_t y = 0; y < h->kernel; y++)
		for (int64_t x = 0; x < w->kernel; x++) {
			int8_t weight = (int8_t)channel->weights[y * w->kernel + x];
			((int8_t *)s->weights)[y * s->quads * 4 + x] = weight;
			total += weight;
		}
	s->initial = vector_set((int32_t)channel->bias - OFFSET * total);
}

/* The low n bits, 0 <= n. */
static __mmask64 low_bits(int64_t n)
{
	return n >= 64 ? ~UINT64_C(0) : (UINT64_C(1) << n) - 1;
}

static void strip_place(struct strip *s, int64_t x, int64_t end)
{
	const struct window_axis *w = &s->w;
	int64_t reach = (VECTOR_N - 1) * w->stride + (w->kernel - 1) * w->dilation + 1;
	for (int v = 0; v < ABREAST; v++, x += VECTOR_N) {
		int64_t from = window_at(w, x, 0), below = from < 0 ? -from : 0;
		int64_t past = w->in - from < reach ? w->in - from : reach;
		s->columns[v].lanes = end - x < 0 ? 0 : vector_lanes(end - x);
		s->columns[v].from = from;
		s->columns[v].seen = past > below ? low_bits(past) & ~low_bits(below) : 0;
	}
}

/* Writes and counts one vector of sums. */
VECTOR vector store(const struct rounding *r, vector sum, __mmask16 lanes, uint8_t *out, vector counts)
{
	vector value = rounded_right(r, sum); /* what is shifted to the left does not fit */
	_mm_mask_storeu_epi8(out, lanes, _mm512_cvtepi32_epi8(limited(r, value)));
	__mmask16 outside =
		_mm512_mask_cmpgt_epu32_mask(lanes, vector_sub(value, r->low), vector_sub(r->high, r->low));
	return _mm512_mask_add_epi32(counts, outside, counts, vector_set(1));
}

/* The bytes of an input row that a vector of outputs sees, shifted by OFFSET; zeros where the row is padding. */
VECTOR vector load(const struct columns *columns, const uint8_t *row, bool inside)
{
	vector bytes = _mm512_maskz_loadu_epi8(inside ? columns->seen : 0, row + columns->from);
	return _mm512_xor_si512(bytes, _mm512_set1_epi8((char)OFFSET));
}

VECTOR vector taps(vector order, vector bytes, vector sum, vector weights)
{
	return _mm512_dpbusd_epi32(sum, _mm512_permutexvar_epi8(order, bytes), weights);
}

/* `abreast` vectors; `kernel_h` and `quads` are those of the window: constants where they are common. What
 * should stay in registers is copied: stores through a pointer to bytes could change all else. */
VECTOR int64_t strip_rows(const struct strip *s, int64_t y, int64_t end, int64_t x, const int abreast,
			  const int64_t kernel_h, const int64_t quads)
{
	const struct window_axis h = s->h;
	const struct rounding r = s->rounding;
	const uint8_t *const in = s->in;
	const int64_t in_w = s->w.in, out_w = s->w.out;
	const vector initial = s->initial;
	struct columns columns[ABREAST];
	vector counts = vector_set(0), sums[ABREAST];
	uint8_t *out = s->out + y * out_w + x;
	VECTOR_UNROLL
	for (int v = 0; v < abreast; v++)
		columns[v] = s->columns[v];
	for (; y < end; y++, out += out_w) {
		VECTOR_UNROLL
		for (int v = 0; v < abreast; v++)
			sums[v] = initial;
		for (int64_t ky = 0; ky < kernel_h; ky++) {
			int64_t in_y = window_at(&h, y, ky);
			bool inside = in_y >= 0 && in_y < h.in;
			const uint8_t *row = in + (inside ? in_y * in_w : 0);
			VECTOR_UNROLL
			for (int v = 0; v < abreast; v++) {
				vector bytes = load(&columns[v], row, inside);
				for (int64_t q = 0; q < quads; q++)
					sums[v] = taps(s->order[q], bytes, sums[v],
						       vector_set(s->weights[ky * quads + q]));
			}
		}
		VECTOR_UNROLL
		for (int v = 0; v < abreast; v++)
			counts = store(&r, sums[v], columns[v].lanes, out + v * VECTOR_N, counts);
	}
	return vector_total(counts);
}

/* Windows of three rows, each a row below the one before: an input row is loaded once, for the three rows of
 * outputs that it is part of. */
VECTOR int64_t strip_rows_3(const struct strip *s, int64_t y, int64_t end, int64_t x, const int abreast)
{
	const struct rounding r = s->rounding;
	const vector initial = s->initial, order = s->order[0];
	const vector w0 = vector_set(s->weights[0]), w1 = vector_set(s->weights[1]),
		     w2 = vector_set(s->weights[2]);
	const int64_t in_h = s->h.in, in_w = s->w.in, out_w = s->w.out;
	struct columns columns[ABREAST];
	vector counts = vector_set(0), next[ABREAST], after[ABREAST];
	int64_t in_y = window_at(&s->h, y, 0), last = in_y + end - y + 1, from = in_y + 2;
	const uint8_t *row = s->in + in_y * in_w;
	uint8_t *out = s->out + y * out_w + x;
	VECTOR_UNROLL
	for (int v = 0; v < abreast; v++) {
		columns[v] = s->columns[v];
		next[v] = after[v] = initial;
	}
	for (; in_y <= last; in_y++, row += in_w) {
		bool inside = in_y >= 0 && in_y < in_h;
		VECTOR_UNROLL
		for (int v = 0; v < abreast; v++) {
			vector bytes = _mm512_permutexvar_epi8(order, load(&columns[v], row, inside));
			vector sum = _mm512_dpbusd_epi32(next[v], bytes, w2);
			next[v] = _mm512_dpbusd_epi32(after[v], bytes, w1);
			after[v] = _mm512_dpbusd_epi32(initial, bytes, w0);
			if (in_y >= from)
				counts = store(&r, sum, columns[v].lanes, out + v * VECTOR_N, counts);
		}
		out += in_y >= from ? out_w : 0;
	}
	return vector_total(counts);
}

/* Of windows whose taps lie side by side: all that up to 64 outputs see of an input row are two loads, the second
 * one TAIL bytes behind the first. Results are packed with saturation, in which vectors are interleaved by fours.
 */
enum { TAIL = 3 };

struct line {
	struct rounding rounding;
	vector initial, order[ABREAST], from_fours;
	__mmask64 seen, seen_tail, lanes;
	__mmask32 words[2]; /* of which elements in pairs of vectors are outputs */
	bool away;	    /* ties go away from zero: the half is added last */
};

static __mmask32 line_words(const struct columns *pair)
{
	vector first = _mm512_maskz_set1_epi32(pair[0].lanes, -1),
	       second = _mm512_maskz_set1_epi32(pair[1].lanes, -1);
	return _mm512_movepi16_mask(_mm512_packs_epi32(first, second));
}

static void line_init(struct line *line, const struct strip *s, int abreast)
{
	const struct columns *columns = s->columns;
	int64_t past = s->w.in - columns[0].from, below = columns[0].from < 0 ? -columns[0].from : 0;
	line->rounding = s->rounding;
	line->away = s->to.rounding == NPUMEM_NEAREST;
	line->initial = line->away ? s->initial : vector_add(s->initial, s->rounding.add);
	line->seen = past > below ? low_bits(past) & ~low_bits(below) : 0;
	line->seen_tail = past > TAIL ? low_bits(past - TAIL) & ~low_bits(below > TAIL ? below - TAIL : 0) : 0;
	line->lanes = 0;
	for (int v = 0; v < ABREAST; v++) {
		line->lanes |= (__mmask64)(v < abreast ? columns[v].lanes : 0) << v * VECTOR_N;
		line->order[v] = _mm512_add_epi8(
			s->order[0], _mm512_set1_epi8((char)(v * VECTOR_N - (v == ABREAST - 1 ? TAIL : 0))));
	}
	line->words[0] = line_words(columns);
	line->words[1] = line_words(columns + 2);
	line->from_fours = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
}

VECTOR vector line_rounded(const struct line *line, vector x)
{
	const struct rounding *r = &line->rounding;
	if (line->away)
		return rounded_right(r, x);
	/* With the half added, what decides a tie is only met where the sum was one. */
	return vector_right(vector_add(x, vector_and(vector_right(x, r->tie_shift), r->tie_mask)), r->shift);
}

VECTOR int64_t line_outside(vector words, vector low, vector width, __mmask32 lanes)
{
	return __builtin_popcount(_mm512_mask_cmpgt_epu16_mask(lanes, _mm512_sub_epi16(words, low), width));
}

/* Writes and counts a row of outputs. */
VECTOR int64_t line_store(const struct line *line, const struct requantize *to, const vector *sums,
			  const int abreast, uint8_t *out)
{
	vector low = vector_set_raw((int32_t)to->low, 2), width = vector_set_raw((int32_t)(to->high - to->low), 2);
	vector x[ABREAST];
	VECTOR_UNROLL
	for (int v = 0; v < ABREAST; v++)
		x[v] = v < abreast ? line_rounded(line, sums[v]) : x[0];
	vector first = _mm512_packs_epi32(x[0], x[1]),
	       second = abreast > 2 ? (vector)_mm512_packs_epi32(x[2], x[3]) : first;
	vector bytes = _mm512_permutexvar_epi32(line->from_fours, _mm512_packs_epi16(first, second));
	bytes = vector_max_raw(bytes, vector_set_raw((int32_t)to->limit_low, 1), 1);
	bytes = vector_min_raw(bytes, vector_set_raw((int32_t)to->limit_high, 1), 1);
	_mm512_mask_storeu_epi8(out, line->lanes, bytes);
	int64_t outside = line_outside(first, low, width, line->words[0]);
	return abreast > 2 ? outside + line_outside(second, low, width, line->words[1]) : outside;
}

VECTOR vector line_load(const uint8_t *row, __mmask64 seen)
{
	return _mm512_xor_si512(_mm512_maskz_loadu_epi8(seen, row), _mm512_set1_epi8((char)OFFSET));
}

/* As strip_rows_3. */
VECTOR int64_t line_rows_3(const struct strip *s, int64_t y, int64_t end, int64_t x, const int abreast)
{
	struct line line;
	line_init(&line, s, abreast);
	const struct requantize to = s->to;
	const vector initial = line.initial;
	const vector w0 = vector_set(s->weights[0]), w1 = vector_set(s->weights[1]),
		     w2 = vector_set(s->weights[2]);
	const int64_t in_h = s->h.in, in_w = s->w.in, out_w = s->w.out;
	vector next[ABREAST], after[ABREAST], sums[ABREAST];
	int64_t in_y = window_at(&s->h, y, 0), last = in_y + end - y + 1, from = in_y + 2, saturated = 0;
	const uint8_t *row = s->in + in_y * in_w + s->columns[0].from;
	uint8_t *out = s->out + y * out_w + x;
	VECTOR_UNROLL
	for (int v = 0; v < abreast; v++)
		next[v] = after[v] = initial;
	for (; in_y <= last; in_y++, row += in_w) {
		bool inside = in_y >= 0 && in_y < in_h;
		vector head = line_load(row, inside ? line.seen : 0);
		vector tail = abreast == ABREAST ? line_load(row + TAIL, inside ? line.seen_tail : 0) : head;
		VECTOR_UNROLL
		for (int v = 0; v < abreast; v++) {
			vector bytes = _mm512_permutexvar_epi8(line.order[v], v == ABREAST - 1 ? tail : head);
			sums[v] = _mm512_dpbusd_epi32(next[v], bytes, w2);
			next[v] = _mm512_dpbusd_epi32(after[v], bytes, w1);
			after[v] = _mm512_dpbusd_epi32(initial, bytes, w0);
		}
		if (in_y < from)
			continue;
		saturated += line_store(&line, &to, sums, abreast, out);
		out += out_w;
	}
	return saturated;
}

#define ROWS(abreast)                                                                                             \
	static int64_t rows_##abreast(const struct strip *s, int64_t y, int64_t end, int64_t x)                   \
	{                                                                                                         \
		const struct window_axis *h = &s->h;                                                              \
		bool one = h->kernel == 3 && s->quads == 1 && h->stride == 1 && h->dilation == 1;                 \
		if (one && s->w.stride == 1 && s->w.dilation == 1 && s->to.low < 0)                               \
			return line_rows_3(s, y, end, x, abreast);                                                \
		if (one)                                                                                          \
			return strip_rows_3(s, y, end, x, abreast);                                               \
		if (h->kernel == 3 && s->quads == 1)                                                              \
			return strip_rows(s, y, end, x, abreast, 3, 1);                                           \
		if (h->kernel == 5 && s->quads == 2)                                                              \
			return strip_rows(s, y, end, x, abreast, 5, 2);                                           \
		return strip_rows(s, y, end, x, abreast, h->kernel, s->quads);                                    \
	}
ROWS(1)
ROWS(2)
ROWS(3)
ROWS(4)

int64_t depthwise_fx8__avx512vnni(const struct depthwise *depthwise, const struct depthwise_channel *channel,
				  const struct depthwise_outputs *outputs)
{
	int64_t (*const rows[])(const struct strip *, int64_t, int64_t, int64_t) = {rows_1, rows_2, rows_3,
										    rows_4};
	struct strip s;
	int64_t saturated = 0, end = outputs->end_x;
	strip_init(&s, depthwise, channel);
	for (int64_t x = outputs->x; x < end; x += ABREAST * VECTOR_N) {
		int64_t vectors = (end - x + VECTOR_N - 1) / VECTOR_N;
		strip_place(&s, x, end);
		saturated += rows[(vectors < ABREAST ? vectors : ABREAST) - 1](&s, outputs->y, outputs->end_y, x);
	}
	return saturated;
}
