/* What all benches have in common: their options, contenders that run by turns, and rows of results. */
#ifndef BENCH_BENCH_H
#define BENCH_BENCH_H

#include <stdbool.h>

enum { BENCH_CONTENDERS_MAX = 8, BENCH_ROUNDS_MAX = 101, BENCH_NAME_BYTES = 96 };

struct bench {
	const char *name; /* of its rows: "kernels" */
	bool json;	  /* after the table, a line of JSON for each row */
	bool quick;	  /* as little as shows that everything runs: figures mean nothing */
	unsigned rounds;
	double seconds;	 /* of a slice: one contender, one round */
	const char *isa; /* the widest instructions that npumem and its peers may use; NULL: the best */
	char **words;	 /* rows whose name has one of them; none: all */
	int n_words;
};

/* Parses [--json] [--quick] [--rounds N] [--seconds S] [--isa NAME] [part of a case's name ...]; `bench` has the
 * defaults of rounds and seconds. What is wrong ends the bench. */
void bench_options(struct bench *bench, int argc, char **argv);
bool bench_wanted(const struct bench *bench, const char *name);

/* ---- measuring ---- */

/* What counts as the time of a run. Of the first two what another load on the machine does to it is left out: the
 * lower quartile of a slice's runs counts, and the best slice. */
enum bench_time {
	BENCH_OWN,     /* processor time of this thread, which does all of it */
	BENCH_CLOCK,   /* as others work for it */
	BENCH_TYPICAL, /* the clock, with all that disturbs it: the mean of a slice, the median of the slices */
};

struct bench_contender {
	const char *name;
	void (*run)(void *context); /* NULL: not there, and nothing is to be asked of it afterwards */
	void *context;
	double work; /* of one run, in the unit that rows tell per second */
	enum bench_time time;
};

struct bench_measured {
	const struct bench_contender *contenders;
	unsigned n, rounds;
	double seconds[BENCH_CONTENDERS_MAX][BENCH_ROUNDS_MAX]; /* of one run */
};

/* Runs all by turns, `rounds` slices of each; every slice begins with a run that is not counted. */
void bench_measure(const struct bench *bench, const struct bench_contender *contenders, unsigned n,
		   struct bench_measured *measured);
/* Of n <= BENCH_ROUNDS_MAX. */
double bench_median(const double *values, unsigned n);
/* Of one run: seconds, and work per second. */
double bench_seconds(const struct bench_measured *measured, unsigned i);
double bench_speed(const struct bench_measured *measured, unsigned i);
/* i's speed as a multiple of j's. */
double bench_ratio(const struct bench_measured *measured, unsigned i, unsigned j);

/* ---- results ---- */

enum bench_goal {
	BENCH_NO_GOAL,
	BENCH_RATIO_AT_LEAST,
	BENCH_RATIO_AT_MOST,
	BENCH_VALUE_AT_MOST,
};

struct bench_row {
	const char *name; /* of the case */
	double value;
	const char *unit;
	const char *peer; /* NULL: none */
	double peer_value;
	double ratio; /* the value as a multiple of the peer's; 0: none */
	enum bench_goal kind;
	double goal;
};

/* Prints a row, the head of the table before the first. */
void bench_tell(const struct bench *bench, const struct bench_row *row);
/* The row of contenders i and j, in work per second times `scale`. */
void bench_compare(const struct bench *bench, const char *name, const struct bench_measured *measured, unsigned i,
		   unsigned j, const char *unit, double scale, double goal);
/* Remembers that a peer is not there, and what would bring it. */
void bench_missing(const char *peer, const char *package);
/* The end of the table: what was missing, how many goals are met, and the JSON. */
void bench_end(const struct bench *bench);

#endif
