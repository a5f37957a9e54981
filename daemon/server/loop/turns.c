/* Invariant: the loop does not wait for input while the queue or the ring of the last has work. */
#include "daemon/server/loop/turns.h"

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>

/* Short, as no input is read meanwhile. One piece of work is run in any case. */
enum { TURN_NS = 25000 };

static void init(struct turns_entry *head)
{
	head->next = head->prev = head;
}

static bool is_empty(const struct turns_entry *head)
{
	return head->next == head;
}

static void append(struct turns_entry *head, struct turns_entry *entry)
{
	entry->prev = head->prev;
	entry->next = head;
	head->prev->next = entry;
	head->prev = entry;
}

void turns_remove(struct turns_entry *entry)
{
	if (!entry->next)
		return;
	entry->prev->next = entry->next;
	entry->next->prev = entry->prev;
	entry->next = entry->prev = NULL;
}

static void run_first(struct turns_entry *head)
{
	struct turns_entry *entry = head->next;

	turns_remove(entry);
	entry->run(entry);
}

static void serve(struct turns *turns)
{
	struct fair_queue *queue = turns->queue;
	uint64_t now = turns->woken_ns, end_ns = now + turns->most_ns;
	struct fair_work *work;

	if (fair_queue_is_empty(queue))
		return;
	do {
		uint64_t began_ns = now;

		work = fair_queue_take(queue);
		work->run(work);
		now = uv_hrtime();
		fair_queue_charge(queue, now - began_ns);
	} while (!fair_queue_is_empty(queue) && now < end_ns);
	if (turns->settle)
		turns->settle(turns->ctx);
}

/* Runs the entries that are queued now; entries that they add are for the next turn. */
static void finish(struct turns *turns)
{
	struct turns_entry *last = &turns->last, mark = {.run = NULL};

	append(last, &mark);
	while (last->next != &mark)
		run_first(last);
	turns_remove(&mark);
}

static void on_prepare(uv_prepare_t *prepare)
{
	struct turns *turns = prepare->data;

	serve(turns);
	finish(turns);
	turns->latest_ns = turns->woken_ns;
	turns->woken_ns = 0;
	if (fair_queue_is_empty(turns->queue) && is_empty(&turns->last))
		uv_idle_stop(&turns->more);
	else
		turns_wake(turns);
}

static void on_more(uv_idle_t *idle)
{
	/* An active idle handle keeps the loop from waiting. */
	(void)idle;
}

static void wake(void *ctx)
{
	struct turns *turns = ctx;

	turns_wake(turns);
	uv_idle_start(&turns->more, on_more);
}

void turns_open(struct turns *turns, uv_loop_t *loop, struct fair_queue *queue)
{
	bool has_work = !fair_queue_is_empty(queue);

	init(&turns->last);
	turns->queue = queue;
	queue->wake = wake;
	queue->ctx = turns;
	turns->most_ns = TURN_NS;
	turns->woken_ns = turns->latest_ns = turns->spun_ns = 0;
	turns->prepare.data = turns;
	/* Neither can fail. */
	uv_idle_init(loop, &turns->more);
	uv_prepare_init(loop, &turns->prepare);
	uv_prepare_start(&turns->prepare, on_prepare);
	uv_unref((uv_handle_t *)&turns->prepare);
	if (has_work)
		wake(turns);
}

void turns_close(struct turns *turns)
{
	assert(fair_queue_is_empty(turns->queue) && is_empty(&turns->last));
	turns->queue->wake = NULL;
	uv_close((uv_handle_t *)&turns->prepare, NULL);
	uv_close((uv_handle_t *)&turns->more, NULL);
}

void turns_add_last(struct turns *turns, struct turns_entry *entry)
{
	if (entry->next)
		return;
	wake(turns);
	append(&turns->last, entry);
}
