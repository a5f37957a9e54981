/* The accumulators: their exact ends, biases of every shift, wraps and their count, and the safe product counts
 * 131,071 (fx8), 511 (fx16) and 131,071 (fx16 with fx8 weights). */

#include "daemon/device/fixed/accumulator.h"
#include "tests/support/oracle.h"
#include "tests/support/test.h"

static struct oracle exact(int64_t sum, int64_t bias, int64_t shift)
{
	return oracle_add(oracle_of(sum), oracle_double(oracle_of(bias), shift));
}

static void check_total(int64_t sum, int64_t bias, int64_t shift, unsigned bits)
{
	int64_t wrapped = 0, want_wrapped = 0, none = 0;
	int64_t got = accumulator_total(sum, bias, shift, bits, &wrapped);
	int64_t want = oracle_clamp(oracle_wrap(exact(sum, bias, shift), bits, &want_wrapped), INT64_MIN + 1,
				    INT64_MAX, &none);
	ck_assert_msg(got == want && wrapped == want_wrapped,
		      "%lld + %lld * 2^%lld in %u bits is %lld (wrapped %lld), not %lld (%lld)", (long long)sum,
		      (long long)bias, (long long)shift, bits, (long long)got, (long long)wrapped, (long long)want,
		      (long long)want_wrapped);
}

TEST(totals_at_the_ends)
{
	for (unsigned bits = 32; bits <= 40; bits += 8) {
		int64_t end = INT64_C(1) << (bits - 1);
		static const int64_t near[] = {-2, -1, 0, 1, 2};
		for (unsigned i = 0; i < 5; i++) {
			check_total(end + near[i], 0, 0, bits);
			check_total(-end + near[i], 0, 0, bits);
			check_total(end + near[i], -1, 1, bits);
			check_total(near[i], 1, bits - 1, bits);
			check_total(near[i], -1, bits - 1, bits);
		}
		/* A bias that has no bit in the accumulator, and a sum that it brings back into range. */
		check_total(2 * end + 5, -1, bits, bits);
		check_total(2 * end + 5, 0, bits, bits);
		check_total(-6 * end + 5, 3, bits, bits);
		check_total(5, 1, bits, bits);
		check_total(0, 1, 254, bits);
		check_total(0, 0, 254, bits);
		check_total(1, INT16_MIN, 254, bits);
		check_total(INT64_C(1) << 62, -1, 62, bits);
		check_total(INT64_C(1) << 62, INT16_MIN, 47, bits);
		check_total(-(INT64_C(1) << 62), INT16_MAX, 39, bits);
	}
}

TEST(totals_against_the_oracle)
{
	uint64_t state = 5;
	for (int i = 0; i < 4000; i++) {
		int64_t spread = (INT64_C(1) << 62) >> oracle_random(&state) % 62;
		int64_t sum = oracle_sample(&state, -spread, spread);
		int64_t bias = oracle_sample(&state, INT16_MIN, INT16_MAX);
		int64_t shift = i % 2 ? oracle_between(&state, 0, 64) : oracle_between(&state, 0, 254);
		/* Half of them such that the bias cancels most of the sum. */
		if (i % 4 < 2 && shift <= 46)
			sum = -bias * (INT64_C(1) << shift) + oracle_between(&state, -9, 9);
		check_total(sum, bias, shift, i % 8 < 4 ? 32 : 40);
	}
}

static struct requantize to_fx16(int64_t shift, enum npumem_rounding rounding)
{
	struct requantize requantize;
	requantize_init(&requantize, NPUMEM_FX16, shift, rounding);
	return requantize;
}

TEST(safe_product_counts)
{
	static const struct {
		unsigned data_bytes, weight_bytes, bits;
		int64_t safe;
	} rows[] = {{1, 1, 32, 131071}, {2, 2, 40, 511}, {2, 1, 40, 131071}};
	for (unsigned i = 0; i < 3; i++) {
		struct requantize result = to_fx16(0, NPUMEM_UP);
		struct accumulator a;
		accumulator_init(&a, rows[i].data_bytes, rows[i].weight_bytes, rows[i].safe, 0, &result);
		ck_assert_uint_eq(a.bits, rows[i].bits);
		ck_assert(a.cannot_wrap);
		ck_assert_uint_eq(a.sum_bytes, rows[i].data_bytes == 1 ? 4 : 8);
		accumulator_init(&a, rows[i].data_bytes, rows[i].weight_bytes, rows[i].safe + 1, 0, &result);
		ck_assert(!a.cannot_wrap);
		ck_assert_uint_eq(a.sum_bytes, 8);
	}
}

/* Finishes one row both ways (every count of products, so that sums are both widths and both paths are taken). */
static void check_finish(unsigned data_bytes, int64_t n_products, int64_t bias_shift, int64_t shift, int mode,
			 int64_t bias_step, uint64_t *state)
{
	enum { N = 270 };
	static int32_t sums32[N], bias[N];
	static int64_t sums64[N], sums[N];
	static int8_t out8[N];
	static int16_t out16[N];
	unsigned weight_bytes = data_bytes == 2 && oracle_random(state) % 2 ? 1 : data_bytes;
	int dtype = data_bytes == 1 ? NPUMEM_FX8 : NPUMEM_FX16;
	struct requantize result;
	requantize_init(&result, dtype, shift, (enum npumem_rounding)mode);
	struct accumulator a;
	accumulator_init(&a, data_bytes, weight_bytes, n_products, bias_shift, &result);
	int64_t end = n_products << (8 * (data_bytes + weight_bytes) - 2), bias_end = INT64_C(1)
										      << (8 * weight_bytes - 1);
	for (int i = 0; i < N; i++) {
		sums[i] = sums64[i] = oracle_sample(state, -end, end);
		sums32[i] = (int32_t)sums64[i];
		bias[i] = (int32_t)oracle_sample(state, -bias_end, bias_end - 1);
	}
	void *out = data_bytes == 1 ? (void *)out8 : (void *)out16;
	int64_t saturated = 0, wrapped = 0, want_saturated = 0, want_wrapped = 0;
	accumulator_finish(&a, a.sum_bytes == 4 ? (void *)sums32 : (void *)sums64, N, bias_step < 0 ? NULL : bias,
			   bias_step < 0 ? 0 : bias_step, out, &saturated, &wrapped);
	for (int i = 0; i < N; i++) {
		int64_t b = bias_step < 0 ? 0 : bias[i * bias_step];
		struct oracle held =
			oracle_wrap(exact(sums[i], b, bias_shift), data_bytes == 1 ? 32 : 40, &want_wrapped);
		int64_t want = oracle_result(held, shift, mode, result.low, result.high, &want_saturated);
		ck_assert_int_eq(data_bytes == 1 ? out8[i] : out16[i], want);
	}
	ck_assert_int_eq(saturated, want_saturated);
	ck_assert_int_eq(wrapped, want_wrapped);
}

TEST(rows_against_the_oracle)
{
	static const int64_t products[] = {1, 511, 512, 131071, 131072};
	static const int64_t bias_shifts[] = {0, 7, 15, 23, 24, 31, 32, 39, 40, 46, 254};
	static const int64_t shifts[] = {-9, 0, 4, 14, 31, 40, 64};
	uint64_t state = 6;
	int mode = 0;
	for (unsigned p = 0; p < 5; p++)
		for (unsigned b = 0; b < 11; b++) {
			mode = mode % 3 + 1;
			int64_t shift = shifts[(p + b) % 7];
			check_finish(1, products[p], bias_shifts[b], shift, mode, b % 2, &state);
			check_finish(2, products[p], bias_shifts[b], shift, mode, 1, &state);
			check_finish(1 + b % 2, products[p], 0, shift, mode, -1, &state);
		}
}
