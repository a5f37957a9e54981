/* Shapes next to fast ones that take many times as long: bench_cliffs [options] [part of a family's name ...].
 *
 * A family is one kernel's call with a place for what varies, and points of about the same kind of work. All run
 * in this process, by turns. A point's cost is its time divided by its work: the elements of all operands and, of
 * kernels with weights, a sixteenth of the products. A point that costs more than CLIFF times as much as the
 * family's cheapest one is listed again at the end, with the reason from cliffs.def. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/bench/support/bench.h"
#include "tests/bench/support/inside.h"
#include "tests/bench/support/peer.h"

enum { POINTS_MAX = 12, VALUES_MAX = 4, TEXT_BYTES = 1024, PRODUCTS = 16, CLIFFS_MAX = 256 };
static const double CLIFF = 4;

/* $1 ... $4 in a call stand for the values of a point, which are separated by blanks; points by bars. */
static const struct family {
	const char *name, *call, *points;
} families[] = {
#define FAMILY(name, call, points) {name, call, points},
#define WHY(point, why)
#include "tests/bench/cliffs.def"
#undef FAMILY
#undef WHY
};

/* What makes a point dear, where that is known and stays. */
static const struct {
	const char *point, *why;
} reasons[] = {
#define FAMILY(name, call, points)
#define WHY(point, why) {point, why},
#include "tests/bench/cliffs.def"
#undef FAMILY
#undef WHY
};

static const char *why(const char *point)
{
	for (unsigned i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++)
		if (!strncmp(point, reasons[i].point, strlen(reasons[i].point)))
			return reasons[i].why;
	return "not explained";
}

struct cliff {
	char name[BENCH_NAME_BYTES];
	double us, ratio;
};

static struct cliff cliffs[CLIFFS_MAX];
static unsigned n_cliffs;

/* Splits `text`, which changes, at each `mark`. Returns the number of parts. */
static unsigned split(char *text, const char *mark, char **parts, unsigned most)
{
	unsigned n = 0;
	char *rest;
	for (char *part = strtok_r(text, mark, &rest); part && n < most; part = strtok_r(NULL, mark, &rest))
		parts[n++] = part;
	return n;
}

static void fill_in(const char *call, char *point, char *text)
{
	char *values[VALUES_MAX], *end = text + TEXT_BYTES - 1;
	unsigned n = split(point, " ", values, VALUES_MAX);
	for (; *call && text < end; call++) {
		if (*call != '$') {
			*text++ = *call;
			continue;
		}
		unsigned number = (unsigned)(*++call - '1');
		if (number >= n)
			peer_die("cliffs.def: a point has too few values");
		text += snprintf(text, (size_t)(end - text), "%s", values[number]);
	}
	*text = '\0';
}

static double work_of(const struct call *call)
{
	double work = call_macs(call) / PRODUCTS;
	for (unsigned i = 0; i < call->n_tensors; i++)
		work += (double)call->tensors[i].bytes / npumem_dtype_bytes(call->tensors[i].spec.dtype);
	return work;
}

static void list(const struct family *family, char **names, const struct bench_measured *m)
{
	double best = 0;
	for (unsigned i = 0; i < m->n; i++)
		best = bench_speed(m, i) > best ? bench_speed(m, i) : best;
	for (unsigned i = 0; i < m->n; i++) {
		struct cliff cliff = {.us = bench_seconds(m, i) * 1e6, .ratio = best / bench_speed(m, i)};
		snprintf(cliff.name, sizeof(cliff.name), "%s: %s", family->name, names[i]);
		printf("%-64s %10.1f us %8.1f x\n", cliff.name, cliff.us, cliff.ratio);
		if (cliff.ratio > CLIFF && n_cliffs < CLIFFS_MAX)
			cliffs[n_cliffs++] = cliff;
	}
	fflush(stdout);
}

static void run(const struct bench *bench, const struct family *family)
{
	char *points = strdup(family->points), *names[POINTS_MAX], text[TEXT_BYTES], point[TEXT_BYTES];
	struct bench_contender contenders[POINTS_MAX];
	struct inside_op ops[POINTS_MAX];
	struct bench_measured measured;
	struct inside inside[POINTS_MAX];
	unsigned n = split(points, "|", names, POINTS_MAX);
	if (n > BENCH_CONTENDERS_MAX)
		peer_die("cliffs.def: a family has too many points");
	for (unsigned i = 0; i < n; i++) {
		struct call call;
		snprintf(point, sizeof(point), "%s", names[i]);
		fill_in(family->call, point, text);
		call_parse(&call, text);
		inside_open(&inside[i], bench->isa);
		inside_place(&inside[i], &call, NULL, &ops[i]);
		contenders[i] = (struct bench_contender){names[i], inside_run, &ops[i], work_of(&call), BENCH_OWN};
	}
	bench_measure(bench, contenders, n, &measured);
	list(family, names, &measured);
	for (unsigned i = 0; i < n; i++) {
		inside_drop(&ops[i]);
		inside_close(&inside[i]);
	}
	free(points);
}

int main(int argc, char **argv)
{
	struct bench bench = {.name = "cliffs", .rounds = 5, .seconds = 0.01};
	bench_options(&bench, argc, argv);
	for (unsigned i = 0; i < sizeof(families) / sizeof(families[0]); i++)
		if (bench_wanted(&bench, families[i].name))
			run(&bench, &families[i]);
	printf("\n%u points cost more than %.0f times their family's cheapest\n", n_cliffs, CLIFF);
	for (unsigned i = 0; i < n_cliffs && !bench.quick; i++)
		printf("  %-50s %9.1f us %6.1f x  %s\n", cliffs[i].name, cliffs[i].us, cliffs[i].ratio,
		       why(cliffs[i].name));
	return 0;
}
