/* Two rings with a head each. Invariant: the loop does not wait while somebody is in one of them. */
#include "daemon/server/loop/turns.h"

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>

/* Short, as nobody else is heard meanwhile: two shares of the shortest requests. One entry runs in any case. */
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

static void run_first(struct turns *turns, struct turns_entry *head)
{
	struct turns_entry *entry = head->next;

	turns_remove(entry);
	turns->n_run++;
	entry->run(entry);
}

static void serve(struct turns *turns)
{
	struct turns_entry *ready = &turns->ready;
	uint64_t end_ns = turns->woken_ns + turns->most_ns;

	if (is_empty(ready))
		return;
	do
		run_first(turns, ready);
	while (!is_empty(ready) && uv_hrtime() < end_ns);
}

/* Those that are there now: what follows from them is for the next turn. */
static void finish(struct turns *turns)
{
	struct turns_entry *last = &turns->last, mark = {.run = NULL};

	append(last, &mark);
	while (last->next != &mark)
		run_first(turns, last);
	turns_remove(&mark);
}

static void on_prepare(uv_prepare_t *prepare)
{
	struct turns *turns = prepare->data;

	serve(turns);
	finish(turns);
	turns->latest_ns = turns->woken_ns;
	turns->woken_ns = 0;
	if (is_empty(&turns->ready) && is_empty(&turns->last))
		uv_idle_stop(&turns->more);
	else
		turns_wake(turns);
}

void turns_open(struct turns *turns, uv_loop_t *loop)
{
	init(&turns->ready);
	init(&turns->last);
	turns->n_run = 0;
	turns->most_ns = TURN_NS;
	turns->woken_ns = turns->latest_ns = turns->spun_ns = 0;
	turns->prepare.data = turns;
	/* Neither can fail. */
	uv_idle_init(loop, &turns->more);
	uv_prepare_init(loop, &turns->prepare);
	uv_prepare_start(&turns->prepare, on_prepare);
	uv_unref((uv_handle_t *)&turns->prepare);
}

void turns_close(struct turns *turns)
{
	assert(is_empty(&turns->ready) && is_empty(&turns->last));
	uv_close((uv_handle_t *)&turns->prepare, NULL);
	uv_close((uv_handle_t *)&turns->more, NULL);
}

static void on_more(uv_idle_t *idle)
{
	/* That it is there keeps the loop from waiting. */
	(void)idle;
}

static void add(struct turns *turns, struct turns_entry *head, struct turns_entry *entry)
{
	if (entry->next)
		return;
	turns_wake(turns);
	append(head, entry);
	uv_idle_start(&turns->more, on_more);
}

void turns_add(struct turns *turns, struct turns_entry *entry)
{
	add(turns, &turns->ready, entry);
}

void turns_add_last(struct turns *turns, struct turns_entry *entry)
{
	add(turns, &turns->last, entry);
}
