/* Contenders by turns. Short runs are timed several at once, so that the clock itself does not count. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/bench/support/bench.h"
#include "tests/bench/support/peer.h"

enum { TIMES_MAX = 4096, LEAST_RUNS = 5, LEAST_NS = 20000 };

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

static double quantile(const double *values, unsigned n, double share)
{
	static double sorted[TIMES_MAX];
	memcpy(sorted, values, n * sizeof(*values));
	qsort(sorted, n, sizeof(*sorted), compare);
	return sorted[(unsigned)(share * (n - 1) + 0.5)];
}

static double now_ns(const struct bench_contender *contender)
{
	struct timespec t;
	clock_gettime(contender->time == BENCH_OWN ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static double run_ns(const struct bench_contender *contender, unsigned repeats)
{
	double from = now_ns(contender);
	for (unsigned i = 0; i < repeats; i++)
		contender->run(contender->context);
	return (now_ns(contender) - from) / repeats;
}

static double slice(const struct bench *bench, const struct bench_contender *contender)
{
	static double times[TIMES_MAX];
	double warm = run_ns(contender, 1), sum = 0;
	unsigned repeats = warm < LEAST_NS ? 1 + (unsigned)(LEAST_NS / (warm + 1)) : 1;
	unsigned n = 0, least = bench->quick ? 1 : LEAST_RUNS;
	uint64_t end = peer_now_ns() + (uint64_t)(bench->seconds * 1e9);
	do {
		times[n] = run_ns(contender, repeats);
		sum += times[n++];
	} while (n < TIMES_MAX && (n < least || peer_now_ns() < end));
	return (contender->time == BENCH_TYPICAL ? sum / n : quantile(times, n, 0.25)) / 1e9;
}

void bench_measure(const struct bench *bench, const struct bench_contender *contenders, unsigned n,
		   struct bench_measured *measured)
{
	*measured = (struct bench_measured){.contenders = contenders, .n = n, .rounds = bench->rounds};
	for (unsigned r = 0; r < bench->rounds; r++)
		for (unsigned i = 0; i < n; i++)
			if (contenders[i].run)
				measured->seconds[i][r] = slice(bench, &contenders[i]);
}

double bench_median(const double *values, unsigned n)
{
	return quantile(values, n, 0.5);
}

double bench_seconds(const struct bench_measured *measured, unsigned i)
{
	return quantile(measured->seconds[i], measured->rounds,
			measured->contenders[i].time == BENCH_TYPICAL ? 0.5 : 0);
}

double bench_speed(const struct bench_measured *measured, unsigned i)
{
	return measured->contenders[i].work / bench_seconds(measured, i);
}

double bench_ratio(const struct bench_measured *measured, unsigned i, unsigned j)
{
	return bench_speed(measured, i) / bench_speed(measured, j);
}
