/* Sums of more than 2^24 elements, which the accumulator no longer holds: avepool and reduce_sum. Too large for
 * cases.py. */
#include "tests/unit/daemon/device/kernels/calls.h"

TEST(avepool, .is_slow = true)
{
	for (int64_t more = 0; more <= 1; more++) {
		struct calls c;
		calls_init(&c, NPUMEM_KERNEL_AVEPOOL);
		int8_t *in = calls_add(&c, "in", NPUMEM_FX8, 0, 1, 1, 4096, 4096 + more);
		int8_t *out = calls_add(&c, "out", NPUMEM_FX8, 0, 1, 1, 1, 1);
		memset(in, -128, (size_t)(4096 * (4096 + more)));
		calls_param(&c, NPUMEM_PARAM_KERNEL, 2, 4096, 4096 + more, 0, 0);
		calls_run(&c);
		ck_assert_int_eq(c.call.counts.wrapped, more);
		ck_assert_int_eq(out[0], more ? 127 : -128);
		calls_free(&c);
	}
}

TEST(reduce_sum, .is_slow = true)
{
	for (int dtype = NPUMEM_FX8; dtype <= NPUMEM_FX16; dtype++)
		for (int64_t more = 0; more <= 1; more++) {
			struct calls c;
			int64_t n = (INT64_C(1) << 24) + more;
			calls_init(&c, NPUMEM_KERNEL_REDUCE_SUM);
			uint8_t *in = calls_add(&c, "in", dtype, 50, 1, 1, 1, n);
			calls_add(&c, "out", dtype, 24, 1, 1, 1, 1);
			for (int64_t i = 0; dtype == NPUMEM_FX16 && i < n; i++)
				in[2 * i + 1] = 0x80;
			if (dtype == NPUMEM_FX8)
				memset(in, 0x80, (size_t)n);
			calls_run(&c);
			/* -2^31 / 2^26 and (2^31 - 2^7) / 2^26; for fx16 2^8 times as much. */
			int64_t exact = dtype == NPUMEM_FX8 ? 32 : 8192;
			ck_assert_int_eq(calls_get(&c, 1, 0), more ? exact : -exact);
			ck_assert_int_eq(c.call.counts.wrapped, more);
			ck_assert_int_eq(c.call.counts.saturated, 0);
			calls_free(&c);
		}
}
