#include "daemon/server/workers.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

struct task {
	uv_work_t request;
	const struct heap *heap;
	void (*work)(void *arg);
	void (*done)(void *arg);
	void *arg;
};

void workers_init(struct workers *workers, uv_loop_t *loop, const struct heap *heap)
{
	char n[16];

	/* Two at least: a kernel must not keep the DMA of its own group from running beside it. */
	snprintf(n, sizeof(n), "%u", uv_available_parallelism() > 2 ? uv_available_parallelism() : 2);
	setenv("UV_THREADPOOL_SIZE", n, 0);
	*workers = (struct workers){loop, heap};
}

static void on_work(uv_work_t *request)
{
	struct task *task = request->data;

	task->work(task->arg);
}

static void on_done(uv_work_t *request, int status)
{
	struct task *task = request->data;
	void (*done)(void *arg) = task->done;
	void *arg = task->arg;

	(void)status; /* never cancelled */
	heap_free(task->heap, task);
	done(arg);
}

static int submit(void *ctx, void (*work)(void *arg), void (*done)(void *arg), void *arg)
{
	struct workers *workers = ctx;
	struct task *task = heap_alloc(workers->heap, sizeof(*task));

	if (!task)
		return -ENOMEM;
	*task = (struct task){.heap = workers->heap, .work = work, .done = done, .arg = arg};
	task->request.data = task;
	if (uv_queue_work(workers->loop, &task->request, on_work, on_done)) {
		heap_free(workers->heap, task);
		return -EAGAIN;
	}
	return 0;
}

struct executor workers_executor(struct workers *workers)
{
	return (struct executor){submit, workers};
}
