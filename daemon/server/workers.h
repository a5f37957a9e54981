/* Threads for long operations: libuv's pool, one thread for each processor. */
#ifndef SERVER_WORKERS_H
#define SERVER_WORKERS_H

#include <uv.h>

#include "daemon/device/heap.h"
#include "daemon/rpc/executor.h"

struct workers {
	uv_loop_t *loop;
	const struct heap *heap;
};

/* Before anything else uses the pool. `workers` outlives what it runs. */
void workers_init(struct workers *workers, uv_loop_t *loop, const struct heap *heap);
struct executor workers_executor(struct workers *workers);

#endif
