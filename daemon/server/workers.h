/* Threads for long operations: libuv's pool, one thread for each processor.
 * No more is given to the pool than it has threads; the rest waits here, where uids take turns: who sends a
 * thousand kernels makes others wait for one of them, not for all. */
#ifndef SERVER_WORKERS_H
#define SERVER_WORKERS_H

#include <uv.h>

#include "daemon/device/memory/heap.h"
#include "daemon/rpc/executor.h"

struct workers_line;

struct workers {
	uv_loop_t *loop;
	const struct heap *heap;
	unsigned n_threads, n_busy;
	struct workers_line *lines; /* of uids with waiting tasks, whose turn is next first */
};

/* Before anything else uses the pool. `workers` outlives what it runs. */
void workers_init(struct workers *workers, uv_loop_t *loop, const struct heap *heap);
struct executor workers_executor(struct workers *workers);

#endif
