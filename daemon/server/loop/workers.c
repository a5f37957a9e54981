/* Invariant: no more tasks run than there are slots, and each that was given one has a thread of its own or a
 * thread that is on its way to it. Tasks and lines are taken and given back on the loop's thread only. */
#include "daemon/server/loop/workers.h"

#include <assert.h>
#include <errno.h>
#include <stddef.h>
#include <utlist.h>

enum {
	NS_PER_US = 1000,
	NS_PER_MS = 1000000,
	RUN_NS = NS_PER_MS, /* that a task runs, where others wait, before it gives way */
	MOMENT_NS = 100 * NS_PER_MS,
	HEARD_MOMENT_NS = 5 * NS_PER_MS, /* from one request to the next */
	SHARE_NS = 100 * NS_PER_US,	 /* of ends that are told before others get their turn */
};

struct workers_task {
	struct workers_line *line;
	void (*work)(void *arg);
	void (*done)(void *arg);
	void *arg;
	struct workers_task *next; /* in the one list that it is in */
	uv_cond_t *resume;	   /* of one that gave way, until it goes on; NULL: it was not begun, or runs */
	bool has_slot;
	uint64_t since_ns; /* that it runs, or found nobody to give way to */
};

/* The tasks of a uid. */
struct workers_line {
	uint32_t uid;
	struct workers_task *first, **end; /* without a slot, what gave way before what was not begun */
	unsigned n_tasks, n_running;
	struct workers_line *next;
};

static _Thread_local struct workers_task *running;

/* ---- whose turn it is ---- */

static void note_activity(struct workers *workers, uint32_t uid, uint64_t moment_ns)
{
	struct workers_activity *latest = &workers->latest, *before = &workers->before;
	uint64_t now = uv_hrtime(), until_ns = moment_ns < UINT64_MAX - now ? now + moment_ns : UINT64_MAX;

	if (latest->uid != uid || !latest->until_ns) {
		before->uid = latest->uid;
		before->until_ns = latest->until_ns;
		latest->uid = uid;
		latest->until_ns = until_ns;
	} else if (latest->until_ns < until_ns) {
		latest->until_ns = until_ns;
	}
}

/* Whether another uid had work a moment ago. */
static bool had_company(const struct workers *workers, uint32_t uid)
{
	const struct workers_activity *other = workers->latest.uid == uid ? &workers->before : &workers->latest;

	return other->until_ns && uv_hrtime() < other->until_ns;
}

/* Whether another uid has work, or had some a moment ago. */
static bool has_company(const struct workers *workers, const struct workers_line *line)
{
	return workers->lines->next || had_company(workers, line->uid);
}

void workers_hear(struct workers *workers, uint32_t uid)
{
	/* There is nobody who were to step back. */
	if (!atomic_load_explicit(&workers->n_running, memory_order_relaxed))
		return;
	uv_mutex_lock(&workers->lock);
	note_activity(workers, uid, workers->heard_moment_ns);
	uv_mutex_unlock(&workers->lock);
}

static void run_thread(void *arg);

static bool has_thread(struct workers *workers, const struct workers_task *task)
{
	if (task->resume || workers->n_idle)
		return true;
	if (workers->n_threads == workers->threads_max)
		return false;
	if (uv_thread_create(&workers->threads[workers->n_threads], run_thread, workers)) {
		/* The process may have no more: these are all. */
		workers->threads_max = workers->n_threads;
		return false;
	}
	workers->n_threads++;
	workers->n_idle++;
	return true;
}

static bool may_run(struct workers *workers, const struct workers_line *line)
{
	return line->first && (line->n_running + 1 < workers->n_slots || !has_company(workers, line)) &&
	       has_thread(workers, line->first);
}

/* Of those that may go on the one that has the fewest slots, and of these the one that waits longest; NULL: none.
 */
static struct workers_line *next_line(struct workers *workers)
{
	struct workers_line *next = NULL;

	for (struct workers_line *line = workers->lines; line; line = line->next)
		if ((!next || line->n_running < next->n_running) && may_run(workers, line))
			next = line;
	return next;
}

static void push(struct workers_line *line, struct workers_task *task, bool in_front)
{
	struct workers_task **at = in_front ? &line->first : line->end;

	task->next = *at;
	*at = task;
	if (!task->next)
		line->end = &task->next;
}

/* A slot for the first task of a line that may run. */
static void grant(struct workers *workers, struct workers_line *line)
{
	struct workers_task *task = line->first;

	line->first = task->next;
	if (!line->first)
		line->end = &line->first;
	atomic_fetch_sub_explicit(&workers->n_waiting, 1, memory_order_relaxed);
	line->n_running++;
	workers->n_running++;
	LL_DELETE(workers->lines, line);
	LL_APPEND(workers->lines, line);
	task->has_slot = true;
	if (task->resume) {
		uv_cond_signal(task->resume);
		return;
	}
	workers->n_idle--;
	task->next = workers->granted;
	workers->granted = task;
	uv_cond_signal(&workers->work);
}

static void fill_slots(struct workers *workers)
{
	struct workers_line *line;

	while (workers->n_running < workers->n_slots && (line = next_line(workers)))
		grant(workers, line);
}

static void take_slot(struct workers *workers, struct workers_task *task)
{
	task->has_slot = false;
	task->line->n_running--;
	workers->n_running--;
}

/* ---- on the threads ---- */

/* `next` NULL: nobody goes on instead. */
static void pause_task(struct workers *workers, struct workers_task *task, struct workers_line *next)
{
	uv_cond_t resume;

	if (uv_cond_init(&resume))
		return;
	task->resume = &resume;
	take_slot(workers, task);
	push(task->line, task, true);
	atomic_fetch_add_explicit(&workers->n_waiting, 1, memory_order_relaxed);
	if (next)
		grant(workers, next);
	while (!task->has_slot)
		uv_cond_wait(&resume, &workers->lock);
	task->resume = NULL;
	/* From here on, not from when it was given the slot: it may have waited for a processor. */
	task->since_ns = uv_hrtime();
	uv_cond_destroy(&resume);
}

static bool is_full(const struct workers *workers)
{
	return atomic_load_explicit(&workers->n_running, memory_order_relaxed) >= workers->n_slots;
}

void workers_give_way(void *ctx)
{
	struct workers *workers = ctx;
	struct workers_task *task = running;
	struct workers_line *next;
	uint64_t now;

	if (!task || (!atomic_load_explicit(&workers->n_waiting, memory_order_relaxed) && !is_full(workers)))
		return;
	now = uv_hrtime();
	if (now - task->since_ns < RUN_NS)
		return;
	task->since_ns = now;
	uv_mutex_lock(&workers->lock);
	/* One may have stayed free for others, whose moment is over. */
	fill_slots(workers);
	next = next_line(workers);
	if (next && next->n_running < task->line->n_running)
		pause_task(workers, task, next);
	else if (task->line->n_running == workers->n_slots && has_company(workers, task->line))
		pause_task(workers, task, NULL);
	uv_mutex_unlock(&workers->lock);
}

uint32_t workers_uid(void)
{
	return running ? running->line->uid : UINT32_MAX;
}

bool workers_have_room(const struct workers *workers, uint32_t uid, unsigned n)
{
	unsigned n_running = atomic_load_explicit(&workers->n_running, memory_order_relaxed);

	return n_running + n <= workers->n_slots &&
	       !atomic_load_explicit(&workers->n_waiting, memory_order_relaxed) &&
	       (n_running + n < workers->n_slots || !had_company(workers, uid));
}

static void end_task(struct workers *workers, struct workers_task *task)
{
	take_slot(workers, task);
	note_activity(workers, task->line->uid, workers->moment_ns);
	task->next = NULL;
	*workers->done_end = task;
	workers->done_end = &task->next;
	workers->n_idle++;
	fill_slots(workers);
	uv_async_send(&workers->ended);
}

static void run_thread(void *arg)
{
	struct workers *workers = arg;

	uv_mutex_lock(&workers->lock);
	for (;;) {
		while (!workers->granted && !workers->is_closing)
			uv_cond_wait(&workers->work, &workers->lock);
		if (!workers->granted)
			break;
		running = workers->granted;
		workers->granted = running->next;
		uv_mutex_unlock(&workers->lock);
		running->since_ns = uv_hrtime();
		running->work(running->arg);
		uv_mutex_lock(&workers->lock);
		end_task(workers, running);
		running = NULL;
	}
	uv_mutex_unlock(&workers->lock);
}

/* ---- on the loop's thread ---- */

static void leave_line(struct workers *workers, struct workers_line *line)
{
	if (--line->n_tasks)
		return;
	LL_DELETE(workers->lines, line);
	heap_free(workers->heap, line);
}

static struct workers_task *take_done(struct workers *workers)
{
	struct workers_task *task;

	uv_mutex_lock(&workers->lock);
	task = workers->done;
	if (task) {
		workers->done = task->next;
		if (!workers->done)
			workers->done_end = &workers->done;
		leave_line(workers, task->line);
	}
	uv_mutex_unlock(&workers->lock);
	return task;
}

static void tell(struct workers *workers, struct workers_task *task)
{
	void (*done)(void *arg) = task->done;
	void *arg = task->arg;

	heap_free(workers->heap, task);
	if (!--workers->n_tasks)
		uv_unref((uv_handle_t *)&workers->ended);
	done(arg);
}

/* What does not end in one's share of a turn is told in another. */
static void run_turn(struct turns_entry *entry)
{
	struct workers *workers = (struct workers *)((char *)entry - offsetof(struct workers, turn));
	uint64_t end_ns = uv_hrtime() + SHARE_NS;
	struct workers_task *task;

	while ((task = take_done(workers))) {
		tell(workers, task);
		if (uv_hrtime() < end_ns)
			continue;
		turns_add(workers->turns, entry);
		return;
	}
}

static void on_ended(uv_async_t *async)
{
	struct workers *workers = async->data;

	turns_add(workers->turns, &workers->turn);
}

/* The line of a uid, which is made where there is none. */
static struct workers_line *line_of(struct workers *workers, uint32_t uid)
{
	struct workers_line *line;

	LL_SEARCH_SCALAR(workers->lines, line, uid, uid);
	if (line)
		return line;
	line = heap_zalloc(workers->heap, 1, sizeof(*line));
	if (!line)
		return NULL;
	line->uid = uid;
	line->end = &line->first;
	LL_APPEND(workers->lines, line);
	return line;
}

static int enlist(struct workers *workers, uint32_t uid, struct workers_task *task)
{
	struct workers_line *line = line_of(workers, uid);

	if (!line)
		return -ENOMEM;
	line->n_tasks++;
	if (!workers->n_threads && !has_thread(workers, task)) {
		leave_line(workers, line);
		return -EAGAIN;
	}
	task->line = line;
	push(line, task, false);
	atomic_fetch_add_explicit(&workers->n_waiting, 1, memory_order_relaxed);
	note_activity(workers, uid, workers->moment_ns);
	fill_slots(workers);
	return 0;
}

static int submit(void *ctx, uint32_t uid, void (*work)(void *arg), void (*done)(void *arg), void *arg)
{
	struct workers *workers = ctx;
	struct workers_task *task = heap_alloc(workers->heap, sizeof(*task));
	int status;

	if (!task)
		return -ENOMEM;
	*task = (struct workers_task){.work = work, .done = done, .arg = arg};
	uv_mutex_lock(&workers->lock);
	status = enlist(workers, uid, task);
	uv_mutex_unlock(&workers->lock);
	if (status)
		heap_free(workers->heap, task);
	else if (!workers->n_tasks++)
		uv_ref((uv_handle_t *)&workers->ended);
	return status;
}

/* The task with this arg out of its line; NULL where none waits to be begun. */
static struct workers_task *unlink_task(struct workers *workers, struct workers_line *line, const void *arg)
{
	struct workers_task **at = &line->first, *task;

	while ((task = *at) && (task->resume || task->arg != arg))
		at = &task->next;
	if (!task)
		return NULL;
	*at = task->next;
	if (!*at)
		line->end = at;
	atomic_fetch_sub_explicit(&workers->n_waiting, 1, memory_order_relaxed);
	leave_line(workers, line);
	return task;
}

static bool withdraw(void *ctx, uint32_t uid, void *arg)
{
	struct workers *workers = ctx;
	struct workers_line *line;
	struct workers_task *task;

	uv_mutex_lock(&workers->lock);
	LL_SEARCH_SCALAR(workers->lines, line, uid, uid);
	task = line ? unlink_task(workers, line, arg) : NULL;
	uv_mutex_unlock(&workers->lock);
	if (!task)
		return false;
	heap_free(workers->heap, task);
	if (!--workers->n_tasks)
		uv_unref((uv_handle_t *)&workers->ended);
	return true;
}

struct executor workers_executor(struct workers *workers)
{
	return (struct executor){submit, withdraw, workers};
}

int workers_open(struct workers *workers, uv_loop_t *loop, struct turns *turns, const struct heap *heap,
		 unsigned n_slots)
{
	enum { LEAST = 2, MOST = (WORKERS_THREADS_MAX - WORKERS_SPARE) / 2 };
	int status;

	/* Two at least: a kernel must not keep the DMA of its own group from running beside it. */
	*workers = (struct workers){.heap = heap,
				    .turns = turns,
				    .turn = {.run = run_turn},
				    .n_slots = n_slots ? n_slots : uv_available_parallelism()};
	if (workers->n_slots < LEAST)
		workers->n_slots = LEAST;
	if (workers->n_slots > MOST)
		workers->n_slots = MOST;
	workers->threads_max = 2 * workers->n_slots + WORKERS_SPARE;
	workers->moment_ns = MOMENT_NS;
	workers->heard_moment_ns = HEARD_MOMENT_NS;
	workers->done_end = &workers->done;
	status = uv_mutex_init(&workers->lock);
	if (status)
		return status;
	status = uv_cond_init(&workers->work);
	if (!status && (status = uv_async_init(loop, &workers->ended, on_ended)))
		uv_cond_destroy(&workers->work);
	if (status) {
		uv_mutex_destroy(&workers->lock);
		return status;
	}
	workers->ended.data = workers;
	uv_unref((uv_handle_t *)&workers->ended);
	workers->is_open = true;
	return 0;
}

void workers_close(struct workers *workers)
{
	if (!workers->is_open)
		return;
	assert(!workers->n_tasks);
	uv_mutex_lock(&workers->lock);
	workers->is_closing = true;
	uv_cond_broadcast(&workers->work);
	uv_mutex_unlock(&workers->lock);
	for (unsigned i = 0; i < workers->n_threads; i++)
		uv_thread_join(&workers->threads[i]);
	uv_close((uv_handle_t *)&workers->ended, NULL);
	uv_cond_destroy(&workers->work);
	uv_mutex_destroy(&workers->lock);
	workers->is_open = false;
}
