/* Threads for long operations, shared between uids.
 * A task runs while it has one of the slots, of which there are as many as processors. Uids take turns: who sends
 * a thousand kernels makes others wait for a part of one of them, not for all. A uid alone may have all slots, but
 * not the last one while others have work, or had some a moment ago: they find it free. Work is also what the loop
 * does for others, which needs a processor as well. A task that gives way keeps its thread, so there are more
 * threads than slots; where they are all taken, new tasks wait. */
#ifndef SERVER_WORKERS_H
#define SERVER_WORKERS_H

#include <stdatomic.h>
#include <stdbool.h>

#include <uv.h>

#include "daemon/device/memory/heap.h"
#include "daemon/rpc/calls/executor.h"
#include "daemon/server/loop/turns.h"

enum {
	WORKERS_SPARE = 14, /* threads for tasks that gave way, besides as many as there are slots */
	WORKERS_THREADS_MAX = 1024,
};

struct workers_line;
struct workers_task;

/* Until when a uid that had work is waited for. Changes under the lock; who looks without it may see half of a
 * change, and be wrong once. */
struct workers_activity {
	_Atomic uint32_t uid;
	_Atomic uint64_t until_ns; /* 0: there was none */
};

struct workers {
	const struct heap *heap;
	unsigned n_slots, threads_max;
	/* The loop's. */
	struct turns *turns;
	struct turns_entry turn; /* `done` is to be emptied */
	uv_async_t ended;	 /* wakes it for what is in `done`; keeps it alive while there are tasks */
	unsigned n_tasks;	 /* whose done was not called yet */
	bool is_open;

	uv_mutex_t lock;			/* of what follows */
	uv_cond_t work;				/* there is something in `granted`, or the end */
	struct workers_line *lines;		/* of uids with tasks, whose turn is next first */
	struct workers_task *granted;		/* have a slot, and wait for a thread to take them up */
	struct workers_task *done, **done_end;	/* have run; the loop is to be told */
	struct workers_activity latest, before; /* of the two uids that were active last */
	unsigned n_idle, n_threads;
	/* That a slot stays free for who had a task, or sent something. */
	uint64_t moment_ns, heard_moment_ns;
	bool is_closing;
	uv_thread_t threads[WORKERS_THREADS_MAX];
	atomic_uint n_running, n_waiting; /* tasks with and without a slot; for a look without the lock */
};

/* `n_slots` 0: one for each processor, two at least. `workers` outlives what it runs. 0 or -errno: nothing is
 * open. */
int workers_open(struct workers *workers, uv_loop_t *loop, struct turns *turns, const struct heap *heap,
		 unsigned n_slots);
/* When no task is left, which is so where the loop has ended; ends the threads and closes the loop's handle. Also
 * where it is not open: nothing. */
void workers_close(struct workers *workers);
struct executor workers_executor(struct workers *workers);
/* `workers`, called by work between its parts: lets another uid's task go on first where one waits, and returns
 * when it is this one's turn again. Cheap where nobody waits; nothing where what calls it is no task. */
void workers_give_way(void *workers);
/* Something has come from a client of this uid. On the loop's thread. */
void workers_hear(struct workers *workers, uint32_t uid);
/* Whose task calls this; UINT32_MAX: what calls is none. */
uint32_t workers_uid(void);
/* Whether `n` threads may help this uid at this moment: so many slots are free beside what others are to find, and
 * nobody waits for one. On any thread. */
bool workers_have_room(const struct workers *workers, uint32_t uid, unsigned n);

#endif
