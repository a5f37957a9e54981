/* Invariants: no more tasks run than there are slots. A begun task keeps one thread until it ends. There are at
 * least as many threads as users that have one of their own, plus the further begun tasks of each user, plus the
 * common thread: so one is idle for a user that has its own and no begun task, and, unless the common one is busy,
 * for one that has none. Tasks are taken and given back on the loop's thread only. */
#include "daemon/server/loop/workers.h"

#include <assert.h>
#include <errno.h>
#include <stddef.h>
#include <utlist.h>

enum {
	NS_PER_US = 1000,
	NS_PER_MS = 1000000,
	RUN_NS = NS_PER_MS, /* for which a task runs before it gives way to waiting ones */
	MOMENT_NS = 100 * NS_PER_MS,
	HEARD_MOMENT_NS = 5 * NS_PER_MS, /* from one request to the next */
	/* Kernels use less than 64 KiB of it, and sanitizers more. In less than 2 MiB no huge page fits, which
	 * would be the cost of an idle thread. */
	STACK_BYTES = 1 << 20,
};

struct workers_task {
	struct fair_work turn; /* first: while it waits for a slot, and then for the loop, which calls `done` */
	struct workers *workers;
	struct limits_user *user;
	void (*work)(void *arg);
	void (*done)(void *arg);
	void *arg;
	struct workers_task *next; /* in `granted`, `resumed` or `done` */
	uv_sem_t *resume;	   /* a task that gave way waits for it; NULL: the task has not begun, or runs */
	bool is_common;		   /* begun on the common thread */
	uint64_t granted_ns;	   /* when it was given its slot */
	uint64_t since_ns;	   /* that it runs, or found no other user to give way to */
};

static _Thread_local struct workers_task *running;

/* The lock is not held while a thread is woken: the kernel may give the waking thread's processor to it, or to the
 * loop, which needs the lock in each turn. */
static void unlock(struct workers *workers)
{
	struct workers_task *resumed = workers->resumed, *next;
	unsigned n = workers->n_granted;

	workers->resumed = NULL;
	workers->n_granted = 0;
	uv_mutex_unlock(&workers->lock);
	while (n--)
		uv_sem_post(&workers->work);
	for (; resumed; resumed = next) {
		next = resumed->next;
		uv_sem_post(resumed->resume);
	}
}

/* ---- whose turn it is ---- */

static void note_activity(struct workers *workers, const struct limits_user *user, uint64_t moment_ns)
{
	struct workers_activity *latest = &workers->latest, *before = &workers->before;
	uint64_t now = uv_hrtime(), until_ns = moment_ns < UINT64_MAX - now ? now + moment_ns : UINT64_MAX;

	if (latest->user != user || !latest->until_ns) {
		before->user = latest->user;
		before->until_ns = latest->until_ns;
		latest->user = user;
		latest->until_ns = until_ns;
	} else if (latest->until_ns < until_ns) {
		latest->until_ns = until_ns;
	}
}

/* Whether another user had work a moment ago. */
static bool others_were_active(const struct workers *workers, const struct limits_user *user)
{
	const struct workers_activity *other = workers->latest.user == user ? &workers->before : &workers->latest;

	return other->until_ns && uv_hrtime() < other->until_ns;
}

/* Whether another user has work, or had some a moment ago, beside one that has. */
static bool others_are_active(const struct workers *workers, const struct limits_user *user)
{
	return workers->n_users > 1 || others_were_active(workers, user);
}

void workers_hear(struct workers *workers, const struct limits_user *user)
{
	/* Unless a task runs, none could have to give way. */
	if (!atomic_load_explicit(&workers->n_running, memory_order_relaxed))
		return;
	/* Nor does the loop wait for a thread that has lost its processor while it holds the lock. */
	if (uv_mutex_trylock(&workers->lock))
		return;
	note_activity(workers, user, workers->heard_moment_ns);
	uv_mutex_unlock(&workers->lock);
}

static struct limits_user *user_of(const struct fair_user *tasks)
{
	return (struct limits_user *)((char *)tasks - offsetof(struct limits_user, tasks));
}

static struct workers_task *first_task(const struct fair_user *tasks)
{
	return (struct workers_task *)tasks->first;
}

/* ---- which task has a thread ---- */

static void run_thread(void *arg);

/* Ensures that there is one thread more than the common one, the users' own and those of the further tasks. False:
 * there is none, and the process may have no more. */
static bool ensure_spare_thread(struct workers *workers)
{
	const uv_thread_options_t options = {.flags = UV_THREAD_HAS_STACK_SIZE, .stack_size = STACK_BYTES};

	while (workers->n_threads <= WORKERS_COMMON + workers->n_own + workers->n_further) {
		if (workers->n_threads == WORKERS_THREADS_MAX ||
		    uv_thread_create_ex(&workers->threads[workers->n_threads], &options, run_thread, workers))
			return false;
		workers->n_threads++;
	}
	return true;
}

static bool ensure_own_thread(struct workers *workers, struct fair_user *tasks)
{
	if (!tasks->has_thread && ensure_spare_thread(workers)) {
		tasks->has_thread = true;
		workers->n_own++;
	}
	return tasks->has_thread;
}

/* Tasks that gave way are the first in their user's queue. */
static bool has_begun_task(const struct fair_user *tasks)
{
	return tasks->n_running || (tasks->first && first_task(tasks)->resume);
}

/* Whether the user's next task has a thread. A task that gave way has its own. A user without a begun task has the
 * thread that submit ensured, or the common one. Any other task is a further one: the user gets a thread for it
 * while the user has no more begun tasks than there are threads left for further tasks. */
static bool has_thread(struct workers *workers, const struct fair_user *tasks)
{
	if (first_task(tasks)->resume)
		return true;
	if (!tasks->has_thread)
		return !workers->is_common_busy;
	if (!tasks->n_running)
		return true;
	return tasks->n_running <= workers->further_max - workers->n_further && ensure_spare_thread(workers);
}

static bool may_run(struct workers *workers, const struct fair_user *tasks)
{
	return (tasks->n_running + 1 < workers->n_slots || !others_are_active(workers, user_of(tasks))) &&
	       has_thread(workers, tasks);
}

/* Whether `a` is to be given a slot before `b`. */
static bool goes_first(const struct fair_user *a, const struct fair_user *b)
{
	return a->n_running != b->n_running ? a->n_running < b->n_running : a->served_ns < b->served_ns;
}

/* Of the users whose task may go on the one with the fewest slots, and of these the one that was served least;
 * NULL: there is none. */
static struct fair_user *next_user(struct workers *workers)
{
	struct fair_user *next = NULL;

	for (struct fair_user *user = workers->queue.users; user; user = user->next)
		if ((!next || goes_first(user, next)) && may_run(workers, user))
			next = user;
	return next;
}

/* Gives a slot to the first task of a user. */
static void grant(struct workers *workers, struct fair_user *user)
{
	struct workers_task *task = (struct workers_task *)fair_queue_take_of(&workers->queue, user);

	atomic_fetch_sub_explicit(&workers->n_waiting, 1, memory_order_relaxed);
	user->n_running++;
	workers->n_running++;
	task->granted_ns = uv_hrtime();
	if (task->resume) {
		LL_PREPEND(workers->resumed, task);
		return;
	}
	task->is_common = !user->has_thread;
	workers->is_common_busy |= task->is_common;
	workers->n_further += user->n_running > 1;
	LL_PREPEND(workers->granted, task);
	workers->n_granted++;
}

static void fill_slots(struct workers *workers)
{
	struct fair_user *user;

	while (workers->n_running < workers->n_slots && (user = next_user(workers)))
		grant(workers, user);
}

static void take_slot(struct workers *workers, struct workers_task *task)
{
	struct fair_user *tasks = &task->user->tasks;

	tasks->n_running--;
	workers->n_running--;
	fair_user_charge(tasks, uv_hrtime() - task->granted_ns);
}

/* ---- on the threads ---- */

/* `next` NULL: no other task goes on instead. */
static void pause_task(struct workers *workers, struct workers_task *task, struct fair_user *next)
{
	uv_sem_t resume;

	if (uv_sem_init(&resume, 0))
		return;
	if (workers->on_pause)
		workers->on_pause(true);
	task->resume = &resume;
	take_slot(workers, task);
	fair_queue_add_first(&workers->queue, &task->user->tasks, &task->turn);
	atomic_fetch_add_explicit(&workers->n_waiting, 1, memory_order_relaxed);
	if (next)
		grant(workers, next);
	unlock(workers);
	uv_sem_wait(&resume);
	uv_mutex_lock(&workers->lock);
	task->resume = NULL;
	/* Not from the time of the slot: the thread may have waited for a processor since. */
	task->since_ns = uv_hrtime();
	uv_sem_destroy(&resume);
	if (workers->on_pause)
		workers->on_pause(false);
}

static bool is_full(const struct workers *workers)
{
	return atomic_load_explicit(&workers->n_running, memory_order_relaxed) >= workers->n_slots;
}

void workers_give_way(void *ctx)
{
	struct workers *workers = ctx;
	struct workers_task *task = running;
	struct fair_user *next;
	uint64_t now;

	if (!task || (!atomic_load_explicit(&workers->n_waiting, memory_order_relaxed) && !is_full(workers)))
		return;
	now = uv_hrtime();
	if (now - task->since_ns < RUN_NS)
		return;
	task->since_ns = now;
	uv_mutex_lock(&workers->lock);
	/* A slot may have been kept for other users, whose moment is over. */
	fill_slots(workers);
	next = next_user(workers);
	if (next && next->n_running < task->user->tasks.n_running)
		pause_task(workers, task, next);
	else if (task->user->tasks.n_running == workers->n_slots && others_are_active(workers, task->user))
		pause_task(workers, task, NULL);
	unlock(workers);
}

const struct limits_user *workers_user(void)
{
	return running ? running->user : NULL;
}

bool workers_have_room(const struct workers *workers, const struct limits_user *user, unsigned n)
{
	unsigned n_running = atomic_load_explicit(&workers->n_running, memory_order_relaxed);

	return n_running + n <= workers->n_slots &&
	       !atomic_load_explicit(&workers->n_waiting, memory_order_relaxed) &&
	       (n_running + n < workers->n_slots || !others_were_active(workers, user));
}

static void end_task(struct workers *workers, struct workers_task *task)
{
	take_slot(workers, task);
	note_activity(workers, task->user, workers->moment_ns);
	task->next = NULL;
	*workers->done_end = task;
	workers->done_end = &task->next;
	workers->is_common_busy &= !task->is_common;
	workers->n_further -= has_begun_task(&task->user->tasks);
	fill_slots(workers);
}

/* Waits for one. NULL: the end. */
static struct workers_task *take_granted(struct workers *workers)
{
	struct workers_task *task;

	uv_sem_wait(&workers->work);
	uv_mutex_lock(&workers->lock);
	task = workers->granted;
	if (task)
		LL_DELETE(workers->granted, task);
	uv_mutex_unlock(&workers->lock);
	return task;
}

static void run_thread(void *arg)
{
	struct workers *workers = arg;

	while ((running = take_granted(workers))) {
		running->since_ns = uv_hrtime();
		running->work(running->arg);
		uv_mutex_lock(&workers->lock);
		end_task(workers, running);
		running = NULL;
		unlock(workers);
		uv_async_send(&workers->ended);
	}
}

/* ---- on the loop's thread ---- */

static void leave(struct workers *workers, struct limits_user *user)
{
	struct fair_user *tasks = &user->tasks;

	if (--tasks->n_works)
		return;
	workers->n_users--;
	workers->n_own -= tasks->has_thread;
	tasks->has_thread = false;
}

static void forget(struct workers *workers, struct workers_task *task)
{
	heap_free(workers->heap, task);
	if (!--workers->n_tasks)
		uv_unref((uv_handle_t *)&workers->ended);
}

static void run_done(struct fair_work *turn)
{
	struct workers_task *task = (struct workers_task *)turn;
	void (*done)(void *arg) = task->done;
	void *arg = task->arg;

	forget(task->workers, task);
	done(arg);
}

/* Queues the ends of tasks as work of their users on the loop. */
static void on_ended(uv_async_t *async)
{
	struct workers *workers = async->data;
	struct workers_task *task, *next;

	uv_mutex_lock(&workers->lock);
	task = workers->done;
	workers->done = NULL;
	workers->done_end = &workers->done;
	for (struct workers_task *one = task; one; one = one->next)
		leave(workers, one->user);
	uv_mutex_unlock(&workers->lock);
	for (; task; task = next) {
		next = task->next;
		task->turn = (struct fair_work){.run = run_done};
		fair_queue_add(workers->loop_queue, &task->user->loop, &task->turn);
	}
}

static int enlist(struct workers *workers, struct limits_user *user, bool waits, struct workers_task *task)
{
	if (!ensure_own_thread(workers, &user->tasks) && !waits)
		return -ENOMEM;
	workers->n_users += !user->tasks.n_works++;
	fair_queue_add(&workers->queue, &user->tasks, &task->turn);
	atomic_fetch_add_explicit(&workers->n_waiting, 1, memory_order_relaxed);
	note_activity(workers, user, workers->moment_ns);
	fill_slots(workers);
	return 0;
}

static int submit(void *ctx, struct limits_user *user, bool waits, void (*work)(void *arg),
		  void (*done)(void *arg), void *arg)
{
	struct workers *workers = ctx;
	struct workers_task *task = heap_alloc(workers->heap, sizeof(*task));
	int status;

	if (!task)
		return -ENOMEM;
	*task = (struct workers_task){.workers = workers, .user = user, .work = work, .done = done, .arg = arg};
	uv_mutex_lock(&workers->lock);
	status = enlist(workers, user, waits, task);
	unlock(workers);
	if (status) {
		heap_free(workers->heap, task);
		return status;
	}
	if (!workers->n_tasks++)
		uv_ref((uv_handle_t *)&workers->ended);
	return 0;
}

/* The user's waiting task with this arg, not begun; NULL: there is none. */
static struct workers_task *find_waiting(const struct limits_user *user, const void *arg)
{
	struct fair_work *turn = user->tasks.first;

	while (turn && (((struct workers_task *)turn)->resume || ((struct workers_task *)turn)->arg != arg))
		turn = turn->next;
	return (struct workers_task *)turn;
}

static bool withdraw(void *ctx, struct limits_user *user, void *arg)
{
	struct workers *workers = ctx;
	struct workers_task *task;

	uv_mutex_lock(&workers->lock);
	task = find_waiting(user, arg);
	if (task) {
		fair_queue_remove(&task->turn);
		atomic_fetch_sub_explicit(&workers->n_waiting, 1, memory_order_relaxed);
		leave(workers, user);
	}
	uv_mutex_unlock(&workers->lock);
	if (task)
		forget(workers, task);
	return task;
}

struct rpc_executor workers_executor(struct workers *workers)
{
	return (struct rpc_executor){submit, withdraw, workers};
}

int workers_open(struct workers *workers, uv_loop_t *loop, struct fair_queue *loop_queue, const struct heap *heap,
		 unsigned n_slots)
{
	enum { LEAST = 2 };
	int status;

	/* Two at least: a kernel must not keep the DMA of its own group from running beside it. */
	*workers = (struct workers){
		.heap = heap, .loop_queue = loop_queue, .n_slots = n_slots ? n_slots : uv_available_parallelism()};
	if (workers->n_slots < LEAST)
		workers->n_slots = LEAST;
	if (workers->n_slots > WORKERS_SLOTS_MAX)
		workers->n_slots = WORKERS_SLOTS_MAX;
	workers->further_max = 2 * workers->n_slots + WORKERS_SPARE;
	workers->moment_ns = MOMENT_NS;
	workers->heard_moment_ns = HEARD_MOMENT_NS;
	workers->done_end = &workers->done;
	status = uv_mutex_init(&workers->lock);
	if (status)
		return status;
	status = uv_sem_init(&workers->work, 0);
	if (!status && (status = uv_async_init(loop, &workers->ended, on_ended)))
		uv_sem_destroy(&workers->work);
	if (status) {
		uv_mutex_destroy(&workers->lock);
		return status;
	}
	workers->ended.data = workers;
	uv_unref((uv_handle_t *)&workers->ended);
	workers->is_open = true;
	/* A user that is alone is never refused for want of a thread. */
	uv_mutex_lock(&workers->lock);
	status = ensure_spare_thread(workers) ? 0 : -EAGAIN;
	uv_mutex_unlock(&workers->lock);
	return status;
}

void workers_close(struct workers *workers)
{
	if (!workers->is_open)
		return;
	assert(!workers->n_tasks);
	for (unsigned i = 0; i < workers->n_threads; i++)
		uv_sem_post(&workers->work);
	for (unsigned i = 0; i < workers->n_threads; i++)
		uv_thread_join(&workers->threads[i]);
	uv_close((uv_handle_t *)&workers->ended, NULL);
	uv_sem_destroy(&workers->work);
	uv_mutex_destroy(&workers->lock);
	workers->is_open = false;
}
