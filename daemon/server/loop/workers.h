/* Threads for long operations, shared between users by a fair queue.
 * A task runs while it has one of the slots, of which there are as many as processors, 47 at most. A user that
 * sends a thousand kernels delays the others by a part of one of them, not by all. A user that is alone may have
 * all slots. While other users have work, or had some a moment ago, it does not get the last slot, so that they
 * find it free; work is also what the loop does for them, as that needs a processor as well. A task that gives way
 * keeps its thread, so there are more threads than slots. Each user that has tasks has one thread for its tasks
 * alone. Users that have several tasks begun share `further_max` more threads. So a task never waits for the end
 * of another user's task. If the process may have no more threads, a user without tasks is refused its first one.
 * Exception: a task that waits for a thread (rpc_executor) waits for the common thread, which runs one task at a
 * time. Such tasks are short, and it is there from the beginning. */
#ifndef SERVER_WORKERS_H
#define SERVER_WORKERS_H

#include <stdatomic.h>
#include <stdbool.h>

#include <uv.h>

#include "daemon/device/memory/heap.h"
#include "daemon/rpc/rpc.h"
#include "daemon/service/limits.h"
#include "daemon/store/store.h"

enum {
	WORKERS_SPARE = 14, /* threads for further tasks that gave way, besides two for each slot */
	/* Each running task and the loop find a free note of a running request. */
	WORKERS_SLOTS_MAX = STORE_RUNS_MAX - 1,
	WORKERS_FURTHER_MAX = 2 * WORKERS_SLOTS_MAX + WORKERS_SPARE,
	WORKERS_USERS_MAX = 1024, /* that have tasks at the same time, at least */
	WORKERS_COMMON = 1,
	WORKERS_THREADS_MAX = WORKERS_USERS_MAX + WORKERS_FURTHER_MAX + WORKERS_COMMON,
};

struct workers_task;

/* Until when a slot stays free for a user that had work. Changes under the lock; a reader without the lock may see
 * half of a change, and decide wrongly once. */
struct workers_activity {
	_Atomic(const struct limits_user *) user; /* only compared: it may have gone */
	_Atomic uint64_t until_ns;		  /* 0: there was none */
};

struct workers {
	const struct heap *heap;
	unsigned n_slots, further_max;
	/* The loop's. */
	struct fair_queue *loop_queue;
	void (*on_pause)(bool is_paused); /* on a task's thread, while it has a slot; NULL: nobody asks */
	uv_async_t ended;		  /* wakes the loop for `done`; keeps it alive while there are tasks */
	unsigned n_tasks;		  /* tasks whose `done` was not called yet */
	bool is_open;

	uv_mutex_t lock;			/* of the members below */
	uv_sem_t work;				/* as high as `granted` is long; higher: the end */
	struct fair_queue queue;		/* tasks that wait for a slot */
	unsigned n_users;			/* that have tasks */
	struct workers_task *granted;		/* have a slot, and wait for a thread to take them up */
	struct workers_task *resumed;		/* gave way, and have a slot again: unlock wakes them, */
	unsigned n_granted;			/* and threads for so many of `granted` */
	struct workers_task *done, **done_end;	/* have run; the loop calls their `done` */
	struct workers_activity latest, before; /* of the two users that were active last */
	unsigned n_threads;
	unsigned n_own;	    /* threads for the tasks of one user alone */
	unsigned n_further; /* begun tasks, beyond one for each user that has some */
	bool is_common_busy;
	/* Times for which a slot stays free for a user that had a task, or sent something. */
	uint64_t moment_ns, heard_moment_ns;
	uv_thread_t threads[WORKERS_THREADS_MAX];
	atomic_uint n_running, n_waiting; /* tasks with and without a slot; also read without the lock */
};

/* `n_slots` 0: one for each processor, two at least. The ends of tasks are queued in `loop_queue`. `workers`
 * outlives its tasks. 0 or -errno: nothing is open. */
int workers_open(struct workers *workers, uv_loop_t *loop, struct fair_queue *loop_queue, const struct heap *heap,
		 unsigned n_slots);
/* Ends the threads and closes the loop's handle; no task may be left, as when the loop has ended. No effect if it
 * is not open. */
void workers_close(struct workers *workers);
/* Its submit refuses by -ENOMEM without a thread, too. */
struct rpc_executor workers_executor(struct workers *workers);
/* Called by a task between its parts: lets a waiting task of another user go on first, and returns when it is this
 * one's turn again. Cheap if none waits; no effect if the caller is no task. */
void workers_give_way(void *workers);
/* Bytes have come from a client of this user. On the loop's thread. */
void workers_hear(struct workers *workers, const struct limits_user *user);
/* The user of the task that calls this; NULL: the caller is no task. */
const struct limits_user *workers_user(void);
/* Whether `n` threads may help this user at this moment: so many slots are free beside the one kept for others,
 * and no task waits for one. On any thread. */
bool workers_have_room(const struct workers *workers, const struct limits_user *user, unsigned n);

#endif
