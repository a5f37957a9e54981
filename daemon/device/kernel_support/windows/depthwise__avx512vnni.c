/* Depthwise sums by vpdpbusd: 16 outputs see up to 64 bytes of an input row, or of some short rows, of which a
 * permutation makes their windows, four taps to each 32-bit element. The unsigned side is the input, shifted by
 * 128; what that adds to the sums, for padding too, is taken back with the bias. A mask keeps loads inside:
 * padding is zero. Four vectors are a block of up to 64 outputs that lie side by side: a stretch of a row, or some
 * rows. */
#include "daemon/device/fixed/rows/vectors/vector.h"
#include "daemon/device/fixed/rows/vectors/vector_rounding.h"
#include "daemon/device/kernel_support/windows/depthwise.h"
#include "daemon/device/least.h"

enum {
	ABREAST = 4, /* vectors of outputs */
	STEPS_MAX = DEPTHWISE_TAPS_MAX * DEPTHWISE_QUADS_MAX,
	OFFSET = 128,
	TAIL = 3, /* bytes from the first load of a row of the last vector's taps to the second one */
};

/* An output channel whose weights are ready. */
struct filter {
	const uint8_t *in;
	uint8_t *out;
	int32_t initial, weights[STEPS_MAX + VECTOR_N];
};

/* The outputs of one vector, and which bytes they see from where, counted from the block's first input row. */
struct columns {
	__mmask64 seen;
	int64_t from, n;
};

/* From the sums of a block to its outputs. */
struct results {
	struct rounding rounding;
	bool away; /* ties go away from zero: the half is added last */
	vector low, width, limit_low, limit_high, from_packed;
	__mmask64 lanes;
	__mmask32 words[2]; /* of which elements in pairs of vectors are outputs */
};

struct strip {
	struct window_axis h, w;
	int64_t quads;
	int64_t near; /* rows in a vector, where windows are as those of rows_3() */
	/* A channel's weights, where their quads are a vector, else 0; which of them is which byte there, if any.
	 */
	__mmask64 taps, tap_bytes;
	vector quad_bytes;
	vector order[DEPTHWISE_QUADS_MAX];
	struct results results;
	struct columns columns[ABREAST];
	int64_t across, rows; /* vectors of a row; rows of the block */
	int64_t n;	      /* outputs of the block under way, and what they see from where */
	int64_t at;
	/* Of a row of taps; of one that is padding alone the feature's begin, which is mapped: a load of an
	 * unmapped page takes a fraction of a microsecond, even where its mask is empty. */
	__mmask64 seen[DEPTHWISE_TAPS_MAX][ABREAST];
	int64_t from[DEPTHWISE_TAPS_MAX][ABREAST];
};

/* The low n bits. */
static __mmask64 low_bits(int64_t n)
{
	return n <= 0 ? 0 : n >= 64 ? ~UINT64_C(0) : (UINT64_C(1) << n) - 1;
}

static void strip_init(struct strip *s, const struct depthwise *d)
{
	const struct requantize *to = &d->to;
	s->h = d->window.h;
	s->w = d->window.w;
	s->quads = (s->w.kernel + 3) / 4;
	s->near = s->h.kernel == 3 && s->h.stride == 1 && s->h.dilation == 1 && s->quads == 1 &&
				  s->w.stride == 1 && s->w.dilation == 1
			  ? d->rows
			  : 0;
	for (int64_t q = 0; q < s->quads; q++)
		s->order[q] = _mm512_loadu_si512(d->order[q]);
	s->taps = s->h.kernel * s->quads > VECTOR_N ? 0 : low_bits(s->h.kernel * s->w.kernel);
	s->quad_bytes = _mm512_loadu_si512(d->weights);
	s->tap_bytes = _mm512_cmplt_epu8_mask(s->quad_bytes, _mm512_set1_epi8(DEPTHWISE_VECTOR_BYTES));
	s->results = (struct results){
		.rounding = rounding_of(to, 0),
		.away = to->rounding == NPUMEM_NEAREST,
		.low = vector_set_raw((int32_t)to->low, 2),
		.width = vector_set_raw((int32_t)(to->high - to->low), 2),
		.limit_low = vector_set_raw((int32_t)to->limit_low, 1),
		.limit_high = vector_set_raw((int32_t)to->limit_high, 1),
	};
}

/* Makes quads of a channel's weights and returns their sum. Of other shapes rows overlap, in order. */
static int32_t filter_taps(int32_t *to, const struct strip *s, const uint8_t *weights)
{
	const __m512i ones = _mm512_set1_epi8(1);
	int32_t total = 0;
	if (s->taps) {
		vector quads = _mm512_maskz_permutexvar_epi8(s->tap_bytes, s->quad_bytes,
							     _mm512_maskz_loadu_epi8(s->taps, weights));
		_mm512_storeu_si512(to, quads);
		return _mm512_reduce_add_epi32(_mm512_dpbusd_epi32(vector_set(0), ones, quads));
	}
	for (int64_t y = 0; y < s->h.kernel; y++, weights += s->w.kernel, to += s->quads) {
		vector row = _mm512_maskz_loadu_epi8(low_bits(s->w.kernel), weights);
		_mm_storeu_si128((void *)to, _mm512_castsi512_si128(row));
		total += _mm512_reduce_add_epi32(_mm512_dpbusd_epi32(vector_set(0), ones, row));
	}
	return total;
}

static void filter_init(struct filter *f, const struct strip *s, const struct depthwise_channel *channel)
{
	f->in = channel->in;
	f->out = channel->out;
	f->initial = (int32_t)channel->bias - OFFSET * filter_taps(f->weights, s, channel->weights);
	if (!s->results.away)
		f->initial += _mm512_cvtsi512_si32(s->results.rounding.add);
}

/* Of 64 bytes from `from` on, those in [0, end). */
static __mmask64 inside(int64_t from, int64_t end)
{
	return low_bits(end - from) & ~low_bits(-from);
}

/* Vectors lie across the row from x to `end`, and below each other where that is all of it. */
static void strip_place(struct strip *s, int64_t rows, int64_t x, int64_t end)
{
	const struct window_axis *w = &s->w;
	uint8_t order[DEPTHWISE_VECTOR_BYTES] = {0};
	int64_t position = 0, n_seen = depthwise_reach(w, VECTOR_N);
	s->across = (end - x + VECTOR_N - 1) / VECTOR_N;
	s->rows = end - x == w->out ? ABREAST / s->across * rows : 1;
	for (int64_t v = 0; v < ABREAST; v++) {
		struct columns *columns = &s->columns[v];
		int64_t y = v / s->across * rows, at = x + v % s->across * VECTOR_N, from = window_at(w, at, 0);
		columns->n = y >= s->rows ? 0 : rows > 1 ? rows * w->out : least(end - at, VECTOR_N);
		columns->from = y * s->h.stride * w->in + from;
		columns->seen =
			rows > 1 ? low_bits(DEPTHWISE_VECTOR_BYTES - 1) : inside(from, w->in) & low_bits(n_seen);
		for (int64_t i = 0; i < columns->n; i++)
			order[position++] = (uint8_t)(i / 4 * 16 + v * 4 + i % 4);
	}
	s->results.from_packed = _mm512_loadu_si512(order);
	s->n = 0;
}

static __mmask32 pair_of(__mmask16 first, __mmask16 second)
{
	return _mm512_movepi16_mask(
		_mm512_packs_epi32(_mm512_maskz_set1_epi32(first, -1), _mm512_maskz_set1_epi32(second, -1)));
}

/* The block's first n outputs are made. */
static void strip_count(struct strip *s, int64_t n)
{
	__mmask16 lanes[ABREAST];
	if (n == s->n)
		return;
	s->n = n;
	s->results.lanes = low_bits(n);
	for (int v = 0; v < ABREAST; v++) {
		lanes[v] = (__mmask16)low_bits(least(n, s->columns[v].n));
		n -= s->columns[v].n;
	}
	s->results.words[0] = pair_of(lanes[0], lanes[1]);
	s->results.words[1] = pair_of(lanes[2], lanes[3]);
}

VECTOR vector rounded_once(const struct results *to, vector x)
{
	const struct rounding *r = &to->rounding;
	if (to->away)
		return rounded_right(r, x);
	/* With the half added, what decides a tie is only met where the sum was one. */
	return vector_right(vector_add(x, vector_and(vector_right(x, r->tie_shift), r->tie_mask)), r->shift);
}

VECTOR int64_t outside(const struct results *to, vector words, __mmask32 lanes)
{
	return __builtin_popcount(
		_mm512_mask_cmpgt_epu16_mask(lanes, _mm512_sub_epi16(words, to->low), to->width));
}

/* Writes and counts the outputs. Results are packed with saturation, in which vectors are interleaved by fours. */
VECTOR int64_t store(const struct results *to, const vector *sums, const int abreast, uint8_t *out)
{
	vector x[ABREAST];
	VECTOR_UNROLL
	for (int v = 0; v < ABREAST; v++)
		x[v] = v < abreast ? rounded_once(to, sums[v]) : x[0];
	vector first = _mm512_packs_epi32(x[0], x[1]),
	       second = abreast > 2 ? (vector)_mm512_packs_epi32(x[2], x[3]) : first;
	vector bytes = _mm512_permutexvar_epi8(to->from_packed, _mm512_packs_epi16(first, second));
	bytes = vector_min_raw(vector_max_raw(bytes, to->limit_low, 1), to->limit_high, 1);
	_mm512_mask_storeu_epi8(out, to->lanes, bytes);
	int64_t saturated = outside(to, first, to->words[0]);
	return abreast > 2 ? saturated + outside(to, second, to->words[1]) : saturated;
}

VECTOR vector load(const uint8_t *from, __mmask64 seen)
{
	return _mm512_xor_si512(_mm512_maskz_loadu_epi8(seen, from), _mm512_set1_epi8((char)OFFSET));
}

/* What a block sees from input row `at` on. */
static void strip_look(struct strip *s, int64_t at)
{
	int64_t bytes = s->h.in * s->w.in;
	s->at = at * s->w.in;
	for (int64_t y = 0; y < s->h.kernel; y++)
		for (int v = 0; v < ABREAST; v++) {
			const struct columns *columns = &s->columns[v];
			int64_t from = s->at + y * s->h.dilation * s->w.in + columns->from;
			s->seen[y][v] = columns->seen & inside(from, bytes);
			s->from[y][v] = s->seen[y][v] ? from : 0;
		}
}

/* The block's outputs of one channel; `kernel_h` and `quads` are those of the window: constants where they are
 * common. `to` is a copy: stores through a pointer to bytes could change all else. */
VECTOR int64_t block(const struct strip *s, const struct results *to, const struct filter *f, uint8_t *out,
		     const int64_t kernel_h, const int64_t quads)
{
	vector sums[ABREAST];
	VECTOR_UNROLL
	for (int v = 0; v < ABREAST; v++)
		sums[v] = vector_set(f->initial);
	for (int64_t y = 0; y < kernel_h; y++)
		VECTOR_UNROLL
	for (int v = 0; v < ABREAST; v++) {
		/* Numbers: windows may begin before the feature. */
		uintptr_t from = (uintptr_t)f->in + (uintptr_t)s->from[y][v];
		vector bytes = load((const uint8_t *)from, s->seen[y][v]);
		for (int64_t q = 0; q < quads; q++)
			sums[v] = _mm512_dpbusd_epi32(sums[v], _mm512_permutexvar_epi8(s->order[q], bytes),
						      vector_set(f->weights[y * quads + q]));
	}
	return store(to, sums, ABREAST, out);
}

/* The same of windows of three rows, each a row below the one before, in vectors of `rows` whole rows: what one
 * vector sees below its first row others see too. */
VECTOR int64_t block_3(const struct strip *s, const struct results *to, const struct filter *f, uint8_t *out,
		       const int rows)
{
	uintptr_t row = (uintptr_t)f->in + (uintptr_t)(s->at + s->columns[0].from);
	vector sums[ABREAST];
	VECTOR_UNROLL
	for (int v = 0; v < ABREAST; v++)
		sums[v] = vector_set(f->initial);
	VECTOR_UNROLL
	for (int y = 0; y < (ABREAST - 1) * rows + 3; y++, row += (uintptr_t)s->w.in) {
		const int last = y / rows < ABREAST ? y / rows : ABREAST - 1; /* vector that sees it */
		vector bytes = load((const uint8_t *)row, s->seen[y - last * rows][last]);
		bytes = _mm512_permutexvar_epi8(s->order[0], bytes);
		VECTOR_UNROLL
		for (int v = 0; v < ABREAST; v++)
			if (v * rows <= y && y < v * rows + 3)
				sums[v] =
					_mm512_dpbusd_epi32(sums[v], bytes, vector_set(f->weights[y - v * rows]));
	}
	return store(to, sums, ABREAST, out);
}

static int64_t run_blocks(struct strip *s, const struct filter *filters, const struct depthwise_outputs *o,
			  int64_t x, int64_t wide)
{
	int64_t saturated = 0;
	for (int64_t y = o->y; y < o->end_y; y += s->rows) {
		strip_count(s, least(o->end_y - y, s->rows) * wide);
		strip_look(s, window_at(&s->h, y, 0));
		const struct results to = s->results;
		for (int64_t i = 0; i < o->n; i++) {
			const struct filter *f = &filters[i];
			uint8_t *out = f->out + y * s->w.out + x;
			saturated += s->near == 1			 ? block_3(s, &to, f, out, 1)
				     : s->near == 2			 ? block_3(s, &to, f, out, 2)
				     : s->h.kernel == 3 && s->quads == 1 ? block(s, &to, f, out, 3, 1)
				     : s->h.kernel == 5 && s->quads == 2
					     ? block(s, &to, f, out, 5, 2)
					     : block(s, &to, f, out, s->h.kernel, s->quads);
		}
	}
	return saturated;
}

/* Windows of three rows, each a row below the one before, whose taps lie side by side: an input row is loaded
 * once, for the three rows of outputs that it is part of, and all that up to 64 outputs see of it are two loads,
 * the second one TAIL bytes behind the first. */
VECTOR int64_t rows_3(const struct strip *s, const struct filter *f, const struct depthwise_outputs *o, int64_t x,
		      const int abreast)
{
	const struct results to = s->results;
	const vector initial = vector_set(f->initial), w0 = vector_set(f->weights[0]),
		     w1 = vector_set(f->weights[1]), w2 = vector_set(f->weights[2]);
	const int64_t in_h = s->h.in, in_w = s->w.in, out_w = s->w.out, left = s->columns[0].from;
	const __mmask64 seen = inside(left, in_w), seen_tail = inside(left + TAIL, in_w);
	vector order[ABREAST], next[ABREAST], after[ABREAST], sums[ABREAST];
	int64_t in_y = window_at(&s->h, o->y, 0), last = in_y + o->end_y - o->y + 1, from = in_y + 2,
		saturated = 0;
	const uint8_t *row = f->in + in_y * in_w + left;
	uint8_t *out = f->out + o->y * out_w + x;
	VECTOR_UNROLL
	for (int v = 0; v < abreast; v++) {
		int skipped = v * VECTOR_N - (v == ABREAST - 1 ? TAIL : 0);
		order[v] = _mm512_add_epi8(s->order[0], _mm512_set1_epi8((char)skipped));
		next[v] = after[v] = initial;
	}
	for (; in_y <= last; in_y++, row += in_w) {
		bool is_in = in_y >= 0 && in_y < in_h;
		vector head = load(row, is_in ? seen : 0);
		vector tail = abreast == ABREAST ? load(row + TAIL, is_in ? seen_tail : 0) : head;
		VECTOR_UNROLL
		for (int v = 0; v < abreast; v++) {
			vector bytes = _mm512_permutexvar_epi8(order[v], v == ABREAST - 1 ? tail : head);
			sums[v] = _mm512_dpbusd_epi32(next[v], bytes, w2);
			next[v] = _mm512_dpbusd_epi32(after[v], bytes, w1);
			after[v] = _mm512_dpbusd_epi32(initial, bytes, w0);
		}
		if (in_y < from)
			continue;
		saturated += store(&to, sums, abreast, out);
		out += out_w;
	}
	return saturated;
}

static int64_t run_rows(struct strip *s, const struct filter *filters, const struct depthwise_outputs *o,
			int64_t x, int64_t wide)
{
	int64_t saturated = 0;
	strip_count(s, wide);
	for (int64_t i = 0; i < o->n; i++)
		saturated += s->across == 1   ? rows_3(s, &filters[i], o, x, 1)
			     : s->across == 2 ? rows_3(s, &filters[i], o, x, 2)
			     : s->across == 3 ? rows_3(s, &filters[i], o, x, 3)
					      : rows_3(s, &filters[i], o, x, 4);
	return saturated;
}

int64_t depthwise_fx8__avx512vnni(const struct depthwise *depthwise, const struct depthwise_outputs *outputs)
{
	struct filter filters[DEPTHWISE_CHANNELS_MAX];
	struct strip s;
	int64_t saturated = 0, end = outputs->end_x;
	strip_init(&s, depthwise);
	for (int64_t i = 0; i < outputs->n; i++)
		filter_init(&filters[i], &s, &outputs->channels[i]);
	for (int64_t x = outputs->x, n; x < end; x += n) {
		n = least(end - x, ABREAST * VECTOR_N);
		strip_place(&s, depthwise->rows, x, x + n);
		saturated += (s.near && s.w.out > VECTOR_N ? run_rows : run_blocks)(&s, filters, outputs, x, n);
	}
	return saturated;
}
