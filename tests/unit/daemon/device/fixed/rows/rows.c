/* Rows of every instruction set against the scalar ones: every tail, containers with and without a sign,
 * constants, shifts past every width, limits; and nothing written past a row. The scalar rows are held against the
 * oracle by the tests of the kernels. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/device/fixed/rows/rows.h"
#include "tests/support/oracle.h"
#include "tests/support/test.h"

enum { LENGTH_MAX = 150, GUARD = 8, FILLER = 0x5a };

typedef void row_run(const struct row *row, int64_t n, int64_t *saturated);
struct op {
	const char *name;
	row_run *run;
};
static const struct op ops[] = {
#define ROW(name, value) {#name, row_##name},
#include "daemon/device/fixed/rows/rows.def"
#undef ROW
};

static int64_t pick(uint64_t *state, int64_t low, int64_t high)
{
	return low + (int64_t)(oracle_random(state) % (uint64_t)(high - low + 1));
}

/* In memory of exactly n elements, so that a sanitizer sees a step past the end. */
static struct row_source some_source(uint64_t *state, int64_t n, int64_t *magnitude)
{
	static const int dtypes[] = {NPUMEM_FX8, NPUMEM_FX16, NPUMEM_UINT8, NPUMEM_UINT16};
	int dtype = dtypes[pick(state, 0, 3)];
	struct row_source source = row_source(dtype);
	int64_t low, high;
	ck_assert(npumem_dtype_range(dtype, &low, &high));
	*magnitude = row_magnitude(dtype);
	if (pick(state, 0, 3) == 0) {
		source.bytes = 0;
		source.value = (int32_t)oracle_sample(state, low, high);
		return source;
	}
	uint8_t *data = malloc((size_t)n * source.bytes);
	ck_assert_ptr_nonnull(data);
	for (int64_t i = 0; i < n; i++) {
		int64_t x = oracle_sample(state, low, high);
		memcpy(data + i * source.bytes, &x, source.bytes);
	}
	source.data = data;
	return source;
}

static void some_result(uint64_t *state, struct requantize *to)
{
	static const int dtypes[] = {NPUMEM_FX8, NPUMEM_FX16, NPUMEM_UINT8, NPUMEM_UINT16};
	int64_t far = pick(state, 0, 5) ? 34 : NPUMEM_FRAC_BITS_MAX;
	requantize_init(to, dtypes[pick(state, 0, 3)], pick(state, -far, far),
			(enum npumem_rounding)pick(state, 1, 3));
	if (pick(state, 0, 2) == 0) {
		to->limit_low = pick(state, to->low, to->high);
		to->limit_high = pick(state, to->limit_low, to->high);
	}
}

/* fp32 of every size, and infinities. */
static void some_reals(uint64_t *state, int64_t n, struct row_source *source)
{
	float *reals = malloc((size_t)n * sizeof(*reals));
	ck_assert_ptr_nonnull(reals);
	for (int64_t i = 0; i < n; i++) {
		uint32_t bits = (uint32_t)oracle_random(state);
		if (pick(state, 0, 3)) /* around 1 */
			bits = (bits & 0x807fffff) | (uint32_t)pick(state, 90, 150) << 23;
		memcpy(&reals[i], &bits, sizeof(bits));
		if (isnan(reals[i]))
			reals[i] = INFINITY;
	}
	*source = (struct row_source){.data = reals, .bytes = sizeof(*reals), .mask = -1};
}

/* Sums of n elements of 16 bits, many of whose means are next to a tie. */
static void some_sums(uint64_t *state, int64_t n, struct row *row)
{
	int32_t *sums = malloc((size_t)n * sizeof(*sums));
	ck_assert_ptr_nonnull(sums);
	int64_t divisor = pick(state, 0, 2) ? pick(state, 1, 130) : pick(state, 1, 1 << 16);
	for (int64_t i = 0; i < n; i++) {
		int64_t x = oracle_sample(state, INT16_MIN * divisor, INT16_MAX * divisor);
		int64_t halves = pick(state, INT16_MIN, INT16_MAX) * divisor + pick(state, -1, 1);
		sums[i] = (int32_t)(pick(state, 0, 1) ? x : halves >> pick(state, 0, 2));
	}
	free((void *)row->in1.data);
	free((void *)row->in2.data);
	row->in1 = (struct row_source){.data = sums, .bytes = sizeof(*sums), .mask = -1};
	row->in2 = (struct row_source){.value = (int32_t)divisor};
}

static void some_row(uint64_t *state, const struct op *op, int64_t n, struct row *row, int64_t most[3])
{
	*row = (struct row){.sign = pick(state, 0, 1) ? 1 : -1};
	row->in1 = some_source(state, n, &most[0]);
	row->in2 = some_source(state, n, &most[1]);
	row->acc = some_source(state, n, &most[2]);
	some_result(state, &row->to);
	if (strcmp(op->name, "mean") == 0)
		some_sums(state, n, row);
	if (strcmp(op->name, "from_real") == 0) {
		free((void *)row->in1.data);
		some_reals(state, n, &row->in1);
	}
	if (strcmp(op->name, "to_real") == 0) {
		row->to.shift = pick(state, 0, NPUMEM_FRAC_BITS_MAX);
		row->to.bytes = sizeof(float);
	}
	bool product = strcmp(op->name, "mac") == 0;
	align_init(&row->align, pick(state, 0, 20), pick(state, 0, 20) + (product ? pick(state, 0, 15) : 0));
	if (pick(state, 0, 3) == 0)
		align_init(&row->align, pick(state, 0, 127), pick(state, 0, 127));
	if (strcmp(op->name, "quotient") == 0) {
		row->in1_unit = (int64_t)1 << pick(state, 2, 34);
		row->in2_unit = row->in1_unit == 1 << ROW_GUARD_BITS ? (int64_t)1 << pick(state, 0, 17) : 1;
		row->to.shift = ROW_GUARD_BITS;
	}
}

static void choose(const struct op *op, struct row *row, enum isa isa, const int64_t most[3])
{
	if (strcmp(op->name, "from_real") == 0 || strcmp(op->name, "to_real") == 0)
		row_init_real(row, isa);
	else if (strcmp(op->name, "sum") == 0)
		row_init_sum(row, isa, most[0], most[1]);
	else if (strcmp(op->name, "mac") == 0)
		row_init_mac(row, isa, most[2], most[0] * most[1]);
	else if (strcmp(op->name, "product") == 0 || strcmp(op->name, "slope") == 0)
		row_init_product(row, isa, most[0] * most[1]);
	else if (strcmp(op->name, "mean") == 0)
		row_init_mean(row, isa, row_magnitude(NPUMEM_FX16));
	else
		row_init(row, isa,
			 strcmp(op->name, "quotient") == 0 ? 1 << 20
			 : most[0] > most[1]		   ? most[0]
							   : most[1]);
}

/* Whether the products of the scalar row are in its domain. */
static bool defined(const struct op *op, const struct row *row, const int64_t most[3])
{
	bool products = strcmp(op->name, "mac") == 0 || strcmp(op->name, "product") == 0;
	if (products && most[0] * most[1] > INT64_C(1) << 31)
		return false;
	return strcmp(op->name, "quotient") != 0 ||
	       (row->in1.mask == -1 && row->in2.mask == -1 && row->to.low < 0);
}

struct result {
	uint8_t out[LENGTH_MAX * 4 + GUARD];
	int64_t saturated, zeros;
};

static void execute(const struct op *op, struct row *row, int64_t n, struct result *result)
{
	memset(result, 0, sizeof(*result));
	memset(result->out, FILLER, sizeof(result->out));
	row->out = result->out;
	row->zeros = &result->zeros;
	op->run(row, n, &result->saturated);
	ck_assert_int_eq(result->out[(uint64_t)n * row->to.bytes], FILLER);
}

static void compare(const struct op *op, int64_t n, uint64_t *state)
{
	struct row row;
	struct result want, got;
	int64_t most[3];
	some_row(state, op, n, &row, most);
	for (int isa = ISA_SCALAR; isa < ISA_N && defined(op, &row, most); isa = isa_next(isa)) {
		choose(op, &row, (enum isa)isa, most);
		execute(op, &row, n, isa == ISA_SCALAR ? &want : &got);
		if (isa > ISA_SCALAR)
			ck_assert_msg(!memcmp(&want, &got, sizeof(want)),
				      "%s of %d elements, shift %d, differs under %s", op->name, (int)n,
				      (int)row.to.shift, isa_name(isa));
	}
	free((void *)row.in1.data);
	free((void *)row.in2.data);
	free((void *)row.acc.data);
}

static void compare_in_place(const struct op *op, int64_t n, enum isa isa, uint64_t *state)
{
	int dtype = pick(state, 0, 1) ? NPUMEM_FX8 : NPUMEM_FX16;
	int64_t most = row_magnitude(dtype), shift = op->run == row_slope || op->run == row_product ? 5 : 0;
	struct row row = {.in1 = row_source(dtype), .in2 = row_source(dtype), .sign = 1};
	int16_t first[LENGTH_MAX], second[LENGTH_MAX];
	struct result apart = {.saturated = 0};
	int64_t saturated = 0;
	for (int i = 0; i < LENGTH_MAX; i++) {
		first[i] = (int16_t)oracle_random(state);
		second[i] = (int16_t)oracle_random(state);
	}
	row.in1.data = first;
	row.in2.data = second;
	requantize_init(&row.to, dtype, shift, NPUMEM_CONVERGENT);
	row.to.limit_low = pick(state, row.to.low, 10);
	row.to.limit_high = pick(state, row.to.limit_low, row.to.high);
	choose(op, &row, isa, (int64_t[]){most, most, most});
	row.out = apart.out;
	op->run(&row, n, &apart.saturated);
	row.out = pick(state, 0, 1) || op->run == row_requantize ? first : second;
	op->run(&row, n, &saturated);
	ck_assert_msg(!memcmp(row.out, apart.out, (size_t)n * row.to.bytes) && saturated == apart.saturated,
		      "%s of %d elements in place differs under %s", op->name, (int)n, isa_name(isa));
}

TEST(every_tail)
{
	uint64_t state = 7;
	for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]); i++)
		for (int64_t n = 1; n <= LENGTH_MAX; n++)
			for (int round = 0; round < 40; round++)
				compare(&ops[i], n, &state);
}

/* Rows whose result is one of their operands, whole and in vectors that overlap. */
TEST(in_place)
{
	static const char *const names[] = {"requantize", "sum", "product", "smaller", "larger", "slope"};
	uint64_t state = 11;
	for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]); i++) {
		bool is_meant = false;
		for (size_t k = 0; k < sizeof(names) / sizeof(names[0]); k++)
			is_meant = is_meant || !strcmp(ops[i].name, names[k]);
		for (int64_t n = 1; is_meant && n <= LENGTH_MAX; n++)
			for (int isa = ISA_SCALAR; isa < ISA_N; isa = isa_next(isa))
				compare_in_place(&ops[i], n, (enum isa)isa, &state);
	}
}

/* Small coarse terms, half of which are ties, and what is far finer and decides them: against exact integers. */
TEST(far_terms)
{
	static const int64_t aparts[] = {15, 16, 17, 30, 31, 32, 35, 36, 37, 38, 52, 53, 60, 80, 126};
	enum { N = 49 };
	int16_t coarse[N], fine[N];
	for (int i = 0; i < N; i++) {
		coarse[i] = (int16_t)(i / 7 - 3);
		fine[i] = (int16_t)(i % 7 < 3	 ? i % 7 - 3
				    : i % 7 == 3 ? 0
				    : i % 7 == 4 ? 1
				    : i % 7 == 5 ? INT16_MAX
						 : INT16_MIN);
	}
	for (int isa = ISA_SCALAR; isa < ISA_N; isa = isa_next(isa))
		for (size_t a = 0; a < sizeof(aparts) / sizeof(aparts[0]); a++)
			for (int k = 0; k < 12; k++) {
				int mode = k % 3 + 1, sign = k / 3 % 2 ? -1 : 1;
				bool swap = k / 6;
				struct row row = {.in1 = row_source(NPUMEM_FX16),
						  .in2 = row_source(NPUMEM_FX16),
						  .sign = sign};
				int16_t out[N];
				int64_t saturated = 0, want_saturated = 0, first = swap ? 1 + aparts[a] : 1,
					second = swap ? 1 : 1 + aparts[a];
				row.in1.data = swap ? fine : coarse;
				row.in2.data = swap ? coarse : fine;
				row.out = out;
				align_init(&row.align, first, second);
				requantize_init(&row.to, NPUMEM_FX16, row.align.frac_bits,
						(enum npumem_rounding)mode);
				row_init_sum(&row, (enum isa)isa, row_magnitude(NPUMEM_FX16),
					     row_magnitude(NPUMEM_FX16));
				row_sum(&row, N, &saturated);
				for (int i = 0; i < N; i++) {
					struct oracle x =
						oracle_double(oracle_of(coarse[i] * (swap ? sign : 1)), aparts[a]);
					x = oracle_add(x, oracle_of(fine[i] * (swap ? 1 : sign)));
					int64_t want = oracle_result(x, 1 + aparts[a], mode, INT16_MIN, INT16_MAX,
								     &want_saturated);
					ck_assert_msg(out[i] == want,
						      "%s, %d apart, mode %d: %d and %d is %d, not %d",
						      isa_name(isa), (int)aparts[a], mode, coarse[i], fine[i],
						      out[i], (int)want);
				}
				ck_assert_int_eq(saturated, want_saturated);
			}
}
