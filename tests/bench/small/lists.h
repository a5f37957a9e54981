/* Lists of kernels: run by a daemon in one submit, and one after the other by a device in this process. */
#ifndef BENCH_SMALL_LISTS_H
#define BENCH_SMALL_LISTS_H

#include "tests/bench/support/bench.h"
#include "tests/bench/support/inside.h"
#include "tests/bench/support/remote.h"

enum { LISTS_OPS_MAX = 256 };

struct list {
	struct remote *remote;
	struct call calls[LISTS_OPS_MAX];
	struct inside_op inside[LISTS_OPS_MAX];
	struct remote_op ops[LISTS_OPS_MAX];
	struct npumem_operation operations[LISTS_OPS_MAX];
	unsigned n_placed, n; /* kernels with tensors; operations, which repeat them by turns */
};

/* Places `n_texts` calls. `chained`: each works on the output of the one before. */
void list_init(struct list *list, struct inside *inside, struct remote *remote, const char *const *texts,
	       unsigned n_texts, unsigned n, bool chained);
void list_deinit(struct list *list);
/* Contenders. */
void list_submit(void *list);
void list_inside(void *list);

/* The rows. */
void lists_small(const struct bench *bench, struct inside *inside, struct remote *remote);
void lists_network(const struct bench *bench, struct inside *inside, struct remote *remote);

#endif
