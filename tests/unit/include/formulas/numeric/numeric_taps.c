/* Taps against counting all of them, on axes small enough for it. */
#include "tests/support/test.h"

#include "include/formulas/numeric/numeric_taps.h"

static int64_t slide_by_counting(const struct numeric_taps *axis)
{
	int64_t most = 0, padded = axis->in + axis->before + axis->after;
	for (int64_t at = 0; at + numeric_taps_span(axis) <= padded; at += axis->stride) {
		int64_t taps = 0;
		for (int64_t k = 0; k < axis->kernel; k++) {
			int64_t i = at + k * axis->dilation - axis->before;
			taps += i >= 0 && i < axis->in;
		}
		most = taps > most ? taps : most;
	}
	return most;
}

static int64_t scatter_by_counting(const struct numeric_taps *axis)
{
	int64_t most = 0;
	for (int64_t out = 0; out < numeric_taps_scattered(axis); out++) {
		int64_t taps = 0;
		for (int64_t i = 0; i < axis->in; i++) {
			int64_t k = out + axis->before - i * axis->stride;
			taps += k >= 0 && k < axis->kernel;
		}
		most = taps > most ? taps : most;
	}
	return most;
}

TEST(small_axes)
{
	unsigned slid = 0, scattered = 0;
	struct numeric_taps axis;
	for (axis.in = 1; axis.in <= 7; axis.in++)
		for (axis.kernel = 1; axis.kernel <= 5; axis.kernel++)
			for (axis.stride = 1; axis.stride <= 4; axis.stride++)
				for (axis.dilation = 1; axis.dilation <= 4; axis.dilation++)
					for (axis.before = 0; axis.before < numeric_taps_span(&axis);
					     axis.before++)
						for (axis.after = 0; axis.after < numeric_taps_span(&axis);
						     axis.after++) {
							int64_t span = numeric_taps_span(&axis);
							if (span <= axis.in + axis.before + axis.after) {
								ck_assert_int_eq(numeric_taps_slide(&axis),
										 slide_by_counting(&axis));
								slid++;
							}
							if (axis.dilation == 1 &&
							    numeric_taps_scattered(&axis) > 0) {
								ck_assert_int_eq(numeric_taps_scatter(&axis),
										 scatter_by_counting(&axis));
								scattered++;
							}
						}
	ck_assert_uint_gt(slid, 10000);
	ck_assert_uint_gt(scattered, 1000);
}

/* Nothing leaves 64 bits or takes long. */
TEST(large_axes)
{
	const int64_t most = INT64_C(0x7fffffff);
	struct numeric_taps axis = {.in = most, .kernel = most, .stride = 1, .dilation = 1};
	ck_assert_int_eq(numeric_taps_slide(&axis), most);
	ck_assert_int_eq(numeric_taps_scatter(&axis), most);
	axis.before = axis.after = most - 1;
	ck_assert_int_eq(numeric_taps_slide(&axis), most);
	ck_assert_int_eq(numeric_taps_scatter(&axis), most);
	axis = (struct numeric_taps){
		.in = 3, .kernel = 3, .stride = 1, .dilation = most, .before = most, .after = most};
	ck_assert_int_eq(numeric_taps_slide(&axis), 1);
	axis = (struct numeric_taps){
		.in = most, .kernel = 7, .stride = most, .dilation = most, .before = most, .after = most};
	ck_assert_int_ge(6 * most + 1, axis.in + axis.before + axis.after); /* would not fit: span only */
	axis.kernel = 3;
	ck_assert_int_eq(numeric_taps_slide(&axis), 1);
}
