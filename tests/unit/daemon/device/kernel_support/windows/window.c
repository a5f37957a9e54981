/* Taps and outputs of windows against a walk over all pairs. */

#include "daemon/device/kernel_support/windows/window.h"
#include "tests/support/oracle.h"
#include "tests/support/test.h"

/* True where window_taps, window_outputs and window_pairs say what a walk over all pairs says. */
static bool agrees(const struct window_axis *axis)
{
	int64_t pairs = 0;
	bool good = true;
	for (int64_t out = 0; out < axis->out; out++) {
		int64_t first_tap, end_tap;
		window_taps(axis, out, &first_tap, &end_tap);
		good &= first_tap >= 0 && first_tap <= end_tap && end_tap <= axis->kernel;
		for (int64_t tap = 0; tap < axis->kernel; tap++) {
			int64_t first, end, at = out * axis->stride + tap * axis->dilation - axis->before;
			window_outputs(axis, tap, &first, &end);
			bool meets = at >= 0 && at < axis->in;
			good &= first >= 0 && first <= end && end <= axis->out;
			good &= window_at(axis, out, tap) == at;
			good &= (tap >= first_tap && tap < end_tap) == meets;
			good &= (out >= first && out < end) == meets;
			pairs += meets;
		}
	}
	return good && window_pairs(axis) == pairs;
}

TEST(all_small_windows)
{
	for (int64_t in = 1; in <= 6; in++)
		for (int64_t kernel = 1; kernel <= 4; kernel++)
			for (int64_t dilation = 1; dilation <= 3; dilation++)
				for (int64_t stride = 1; stride <= 4; stride++) {
					int64_t window = (kernel - 1) * dilation + 1;
					for (int64_t before = 0; before < window; before++)
						for (int64_t after = 0; after < window; after++) {
							int64_t room = in + before + after - window;
							if (room < 0)
								continue;
							const struct window_axis axis = {
								in,	  room / stride + 1,
								kernel,	  stride,
								dilation, before,
								after,	  0,
								0};
							if (!agrees(&axis))
								ck_abort_msg(
									"in %lld, kernel %lld, dilation %lld, "
									"stride %lld, padding %lld %lld",
									(long long)in, (long long)kernel,
									(long long)dilation, (long long)stride,
									(long long)before, (long long)after);
						}
				}
}

/* Numbers at the limit of the parameters stay inside 64 bits. */
TEST(extremes)
{
	const struct window_axis axis = {
		INT64_C(1) << 30, 1, WINDOW_LIMIT, WINDOW_LIMIT, WINDOW_LIMIT, WINDOW_LIMIT, 0, 0, 0};
	int64_t first, end;
	window_taps(&axis, 0, &first, &end);
	ck_assert_int_eq(first, 1);
	ck_assert_int_eq(end, 2);
	window_outputs(&axis, WINDOW_LIMIT - 1, &first, &end);
	ck_assert_int_eq(first, end);
}

/* In no time: a kernel looks at nothing while it counts them. Of 2^29 outputs and taps each. */
TEST(many_pairs)
{
	const int64_t n = INT64_C(1) << 29;
	const struct window_axis axis = {2 * n - 1, n, n, 1, 1, 0, 0, 0, 0};
	ck_assert_int_eq(window_pairs(&axis), n * n);
	const struct window_axis padded = {1, n, n, 1, 1, n - 1, n - 1, 0, 0};
	ck_assert_int_eq(window_pairs(&padded), n);
	/* A phase of a transposed convolution that begins behind the first input. */
	const struct window_axis behind = {9, 4, 3, 1, 1, -2, 0, 0, 0};
	ck_assert(agrees(&behind));
}
