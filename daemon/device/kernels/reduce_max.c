/* Maxima along axes, rounded to out's format. */
#include "daemon/device/kernel_support/reduce.h"

static int64_t larger(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

static void fold(int64_t *accumulators, int64_t step, const int32_t *values, int64_t n)
{
	if (step == 0) {
		int32_t most = values[0];
		for (int64_t i = 1; i < n; i++)
			most = values[i] > most ? values[i] : most;
		accumulators[0] = larger(accumulators[0], most);
	} else {
		for (int64_t i = 0; i < n; i++)
			accumulators[i] = larger(accumulators[i], values[i]);
	}
}

static const struct reduce_rule maximum = {.start = INT64_MIN, .fold = fold};

static void run(struct kernel_call *call)
{
	reduce_run(call, &maximum);
}

const struct kernel kernel_reduce_max = {
	.number = NPUMEM_KERNEL_REDUCE_MAX,
	.check = reduce_check,
	.run = run,
};
