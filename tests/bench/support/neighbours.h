/* Processes that keep all processors but the first busy. */
#ifndef BENCH_NEIGHBOURS_H
#define BENCH_NEIGHBOURS_H

#include <sys/types.h>

enum { NEIGHBOURS_MAX = 64 };

struct neighbours {
	pid_t pids[NEIGHBOURS_MAX];
	unsigned n;
};

void neighbours_start(struct neighbours *neighbours);
void neighbours_end(struct neighbours *neighbours);

#endif
