/* Invariant: tasks wait only while all threads are busy. A line is there only while it has tasks. */
#include "daemon/server/workers.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

struct task {
	uv_work_t request;
	struct workers *workers;
	void (*work)(void *arg);
	void (*done)(void *arg);
	void *arg;
	struct task *next; /* in its line */
};

struct workers_line {
	uint32_t uid;
	struct task *first, *last;
	struct workers_line *next;
};

void workers_init(struct workers *workers, uv_loop_t *loop, const struct heap *heap)
{
	char n[16];

	/* Two at least: a kernel must not keep the DMA of its own group from running beside it. */
	*workers = (struct workers){.loop = loop, .heap = heap, .n_threads = uv_available_parallelism()};
	if (workers->n_threads < 2)
		workers->n_threads = 2;
	snprintf(n, sizeof(n), "%u", workers->n_threads);
	setenv("UV_THREADPOOL_SIZE", n, 1);
}

static void on_work(uv_work_t *request)
{
	struct task *task = request->data;

	task->work(task->arg);
}

static void start_next(struct workers *workers);

static void on_done(uv_work_t *request, int status)
{
	struct task *task = request->data;
	struct workers *workers = task->workers;
	void (*done)(void *arg) = task->done;
	void *arg = task->arg;

	(void)status; /* never cancelled */
	heap_free(workers->heap, task);
	workers->n_busy--;
	start_next(workers);
	done(arg);
}

static int start(struct workers *workers, struct task *task)
{
	task->request.data = task;
	if (uv_queue_work(workers->loop, &task->request, on_work, on_done))
		return -EAGAIN;
	workers->n_busy++;
	return 0;
}

/* Takes the first task of the line whose turn it is; the line goes to the end. */
static struct task *take(struct workers *workers)
{
	struct workers_line *line = workers->lines, **end = &workers->lines;
	struct task *task = line->first;

	line->first = task->next;
	workers->lines = line->next;
	line->next = NULL;
	if (!line->first) {
		heap_free(workers->heap, line);
		return task;
	}
	while (*end)
		end = &(*end)->next;
	*end = line;
	return task;
}

static void start_next(struct workers *workers)
{
	while (workers->lines && workers->n_busy < workers->n_threads) {
		struct task *task = take(workers);

		/* The pool cannot refuse what it was made for; if it ever does, the work is still done. */
		if (start(workers, task)) {
			void (*done)(void *arg) = task->done;
			void *arg = task->arg;

			task->work(arg);
			heap_free(workers->heap, task);
			done(arg);
		}
	}
}

static int wait_in_line(struct workers *workers, uint32_t uid, struct task *task)
{
	struct workers_line **at = &workers->lines;

	while (*at && (*at)->uid != uid)
		at = &(*at)->next;
	if (!*at) {
		*at = heap_zalloc(workers->heap, 1, sizeof(**at));
		if (!*at)
			return -ENOMEM;
		(*at)->uid = uid;
		(*at)->first = task;
	} else {
		(*at)->last->next = task;
	}
	(*at)->last = task;
	return 0;
}

static int submit(void *ctx, uint32_t uid, void (*work)(void *arg), void (*done)(void *arg), void *arg)
{
	struct workers *workers = ctx;
	struct task *task = heap_alloc(workers->heap, sizeof(*task));
	int status;

	if (!task)
		return -ENOMEM;
	*task = (struct task){.workers = workers, .work = work, .done = done, .arg = arg};
	status = workers->n_busy < workers->n_threads ? start(workers, task) : wait_in_line(workers, uid, task);
	if (status)
		heap_free(workers->heap, task);
	return status;
}

struct executor workers_executor(struct workers *workers)
{
	return (struct executor){submit, workers};
}
