/* The rows of bench_rpc: what is measured against what. */
#ifndef BENCH_RPC_ROWS_H
#define BENCH_RPC_ROWS_H

#include "tests/bench/rpc/load.h"

enum { ROWS_CONTENDERS_MAX = 4 };

/* The servers of a run; those that are not there have pid 0. */
struct servers {
	struct peer daemon, spinning, floor, redis;
};

struct contender {
	const char *name;
	const struct peer *peer;
	struct peer own; /* a process of this row alone */
	int fd;
	struct load load;
	struct npumem *library; /* its blocking fill is measured instead of the load */
	uint64_t handle;	/* that it fills */
};

/* Ratios are to the second contender's. */
struct row {
	const char *name;
	enum peer_pin pin;
	double goal;	 /* at least: times as fast; 0: none */
	double cpu_goal; /* at most: times the processor time; 0: none */
	void (*make)(const struct row *row, const struct servers *servers, struct contender *contenders);
	unsigned n; /* in flight, or operations of one request */
	bool busy;  /* another process keeps the other processors busy */
};

extern const struct row rows[];
extern const unsigned n_rows;

/* ROWS_CONTENDERS_MAX contenders, in order; those that are not there have no peer. */
void rows_begin(const struct row *row, const struct servers *servers, struct contender *contenders);
void rows_measure(struct contender *contender, double seconds, struct sample *sample);
void rows_end(struct contender *contenders);

#endif
