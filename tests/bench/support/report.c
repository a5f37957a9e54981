/* Owns the rows told so far, until the end of the bench. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/bench/support/bench.h"
#include "tests/bench/support/peer.h"

enum { ROWS_MAX = 512, MISSING_MAX = 8, MISSING_BYTES = 128 };

struct kept {
	struct bench_row row;
	char name[BENCH_NAME_BYTES], unit[16], peer[BENCH_NAME_BYTES];
};

static struct kept rows[ROWS_MAX];
static char missing[MISSING_MAX][MISSING_BYTES];
static unsigned n_rows, n_missing;

static bool met(const struct bench_row *row)
{
	if (row->kind == BENCH_VALUE_AT_MOST)
		return row->value <= row->goal;
	return row->kind == BENCH_RATIO_AT_MOST ? row->ratio <= row->goal : row->ratio >= row->goal;
}

static const char *goal_text(const struct bench_row *row, char text[32])
{
	static const char *const forms[] = {"", ">= %.3g%s", "<= %.3g%s", "value <= %.3g%s"};
	snprintf(text, 32, forms[row->kind], row->goal, met(row) ? "" : " !");
	return text;
}

void bench_tell(const struct bench *bench, const struct bench_row *row)
{
	char goal[32], ratio[16] = "", peer_value[16] = "";
	if (n_rows == ROWS_MAX)
		peer_die("too many rows");
	if (n_rows == 0)
		printf("%-66s %9s %-7s | %-39s %9s | %7s %s\n", bench->name, "", "", "beside", "", "ratio",
		       "goal");
	struct kept *kept = &rows[n_rows++];
	kept->row = *row;
	snprintf(kept->name, sizeof(kept->name), "%s", row->name);
	snprintf(kept->unit, sizeof(kept->unit), "%s", row->unit);
	snprintf(kept->peer, sizeof(kept->peer), "%s", row->peer ? row->peer : "");
	if (row->ratio > 0)
		snprintf(ratio, sizeof(ratio), "%.3f", row->ratio);
	if (row->peer)
		snprintf(peer_value, sizeof(peer_value), "%.4g", row->peer_value);
	printf("%-66s %9.4g %-7s | %-39s %9s | %7s %s\n", kept->name, row->value, kept->unit, kept->peer,
	       peer_value, ratio, goal_text(row, goal));
	fflush(stdout);
}

void bench_compare(const struct bench *bench, const char *name, const struct bench_measured *measured, unsigned i,
		   unsigned j, const char *unit, double scale, double goal)
{
	const struct bench_row row = {
		.name = name,
		.value = bench_speed(measured, i) * scale,
		.unit = unit,
		.peer = measured->contenders[j].name,
		.peer_value = bench_speed(measured, j) * scale,
		.ratio = bench_ratio(measured, i, j),
		.kind = goal > 0 ? BENCH_RATIO_AT_LEAST : BENCH_NO_GOAL,
		.goal = goal,
	};
	bench_tell(bench, &row);
}

void bench_missing(const char *peer, const char *package)
{
	char text[MISSING_BYTES];
	snprintf(text, sizeof(text), "%s: not there, and no rows beside it (%s)", peer, package);
	for (unsigned i = 0; i < n_missing; i++)
		if (!strcmp(missing[i], text))
			return;
	if (n_missing < MISSING_MAX)
		strcpy(missing[n_missing++], text);
}

static void print_json(const struct bench *bench, const struct kept *kept)
{
	static const char *const kinds[] = {"", "ratio at least", "ratio at most", "value at most"};
	const struct bench_row *row = &kept->row;
	printf("{\"bench\":\"%s\",\"case\":\"%s\",\"value\":%.6g,\"unit\":\"%s\"", bench->name, kept->name,
	       row->value, kept->unit);
	if (kept->peer[0])
		printf(",\"peer\":\"%s\",\"peer_value\":%.6g", kept->peer, row->peer_value);
	if (row->ratio > 0)
		printf(",\"ratio\":%.4f", row->ratio);
	if (row->kind)
		printf(",\"goal\":%.6g,\"goal_is\":\"%s\",\"met\":%s", row->goal, kinds[row->kind],
		       met(row) ? "true" : "false");
	printf("}\n");
}

void bench_end(const struct bench *bench)
{
	unsigned goals = 0, n_met = 0;
	for (unsigned i = 0; i < n_rows; i++) {
		goals += rows[i].row.kind != BENCH_NO_GOAL;
		n_met += rows[i].row.kind != BENCH_NO_GOAL && met(&rows[i].row);
	}
	for (unsigned i = 0; i < n_missing; i++)
		printf("%s\n", missing[i]);
	printf("%s: %u rows, %u of %u goals met%s\n", bench->name, n_rows, n_met, goals,
	       bench->quick ? " (--quick: figures mean nothing)" : "");
	for (unsigned i = 0; bench->json && i < n_rows; i++)
		print_json(bench, &rows[i]);
}
