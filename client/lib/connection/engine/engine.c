/* The engine of a connection: what is sent, received and handed out when. Invariant: see engine.h.
 * The peer is a process like any other: whatever it sends, the worst that comes of it is UNAVAILABLE.
 * Does not know what a request means. */
#include "client/lib/connection/engine/engine.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "client/lib/addresses/address.h"
#include "client/lib/connection/clock.h"

/* ---- beginning and end ---- */

static void *budget_take(void *ctx, size_t bytes)
{
	return memory_alloc(((struct npumem *)ctx)->memory, bytes);
}

static void budget_release(void *ctx, void *memory)
{
	memory_free(((struct npumem *)ctx)->memory, memory);
}

int engine_new(const struct memory *memory, int fd, const struct npumem_options *options, struct npumem **out)
{
	struct npumem *npumem = memory_alloc(memory, sizeof(*npumem));
	if (!npumem) {
		close(fd);
		return -ENOMEM;
	}
	*npumem = (struct npumem){.memory = memory, .fd = fd, .child_log = -1, .next_deadline = CLOCK_NEVER};
	npumem->call_ms = options->call_ms;
	npumem->watch = WATCH_INIT;
	npumem->resume.limit = CLOCK_NEVER;
	spin_init(&npumem->spin, spin_most_ns(options->spin_us));
	budget_init(&npumem->budget, budget_take, budget_release, npumem);
	*out = npumem;
	return 0;
}

/* Tells every waiting request why there will be no answer. Callbacks may try to send, and are refused. */
static void abandon(struct npumem *npumem)
{
	npumem->dispatching = true;
	while (npumem->first_request)
		request_fail(npumem->first_request, &npumem->broken);
	npumem->dispatching = false;
}

static void destroy(struct npumem *npumem)
{
	const struct memory *memory = npumem->memory;
	pid_t child = npumem->child;
	int log = npumem->child_log;
	bool is_stuck = address_is_remote(&npumem->remote) && npumem->broken.status;
	npumem->closing = true;
	if (!npumem->broken.status)
		npumem_error_set(&npumem->broken, NPUMEM_CANCELLED, "the connection was closed by its user");
	abandon(npumem);
	resume_part(npumem);
	resume_forget(npumem);
	watch_close(&npumem->watch);
	if (npumem->fd >= 0)
		close(npumem->fd);
	result_end_all(&npumem->results);
	staged_deinit(&npumem->staged, memory);
	while (npumem->free_requests) {
		struct npumem_request *request = npumem->free_requests;
		npumem->free_requests = request->next;
		memory_free(memory, request);
	}
	budget_deinit(&npumem->budget);
	pending_deinit(&npumem->pending, memory);
	outbox_deinit(&npumem->out, memory);
	inbox_deinit(&npumem->in, memory);
	memory_free(memory, npumem);
	if (child > 0)
		(is_stuck ? spawn_kill : spawn_reap)(child);
	if (log >= 0)
		close(log);
}

void engine_close(struct npumem *npumem)
{
	npumem->closing = true;
	if (!npumem->dispatching)
		destroy(npumem);
}

int engine_break(struct npumem *npumem, const char *format, ...)
{
	if (npumem->broken.status)
		return NPUMEM_UNAVAILABLE;
	char why[NPUMEM_MESSAGE_BYTES / 2];
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(why, sizeof(why), format, arguments);
	va_end(arguments);
	return npumem_error_set(&npumem->broken, NPUMEM_UNAVAILABLE, "%s", why);
}

void engine_hang_up(struct npumem *npumem)
{
	watch_replace(&npumem->watch, -1);
	close(npumem->fd);
	npumem->fd = -1;
	if (address_is_remote(&npumem->remote)) {
		if (npumem->child > 0)
			spawn_kill(npumem->child);
		if (npumem->child_log >= 0)
			close(npumem->child_log);
		npumem->child = 0;
		npumem->child_log = -1;
		npumem->is_greeted = false;
		npumem->said = 0;
	}
	outbox_deinit(&npumem->out, npumem->memory);
	inbox_deinit(&npumem->in, npumem->memory);
	npumem->in = (struct inbox){.cut = 0};
	npumem->no_more_writes = false;
	npumem_error_clear(&npumem->ending);
}

int engine_connected(struct npumem *npumem, int fd)
{
	int err = watch_replace(&npumem->watch, fd);
	if (!err)
		npumem->fd = fd;
	return err;
}

int engine_error(const struct npumem *npumem, struct npumem_error *error)
{
	if (error)
		*error = npumem->broken;
	return npumem->broken.status;
}

/* ---- turns ---- */

static int step(struct npumem *npumem, bool *any, struct npumem_error *error)
{
	*any = false;
	if (npumem->dispatching)
		return npumem_error_set(error, NPUMEM_INVALID, "a callback may send, but not wait or process");
	if (!npumem->broken.status)
		resume_turn(npumem);
	if (!npumem->broken.status && npumem->fd >= 0) {
		engine_write(npumem);
		engine_receive(npumem, any);
		watch_write(&npumem->watch, engine_wants_write(npumem) && npumem->watch.wants_write);
	}
	watch_timer(&npumem->watch, resume_due(&npumem->resume));
	if (npumem->next_deadline != CLOCK_NEVER && !npumem->broken.status && !npumem->closing) {
		npumem->dispatching = true;
		request_expire(npumem);
		npumem->dispatching = false;
	}
	if (npumem->broken.status && !npumem->closing)
		abandon(npumem);
	if (!npumem->closing)
		return npumem->broken.status ? engine_error(npumem, error) : 0;
	destroy(npumem);
	return npumem_error_set(error, NPUMEM_CANCELLED, "a callback has closed the connection");
}

int64_t engine_due(const struct npumem *npumem)
{
	int64_t due = resume_due(&npumem->resume);
	return due < npumem->next_deadline ? due : npumem->next_deadline;
}

int engine_turn(struct npumem *npumem, struct npumem_error *error)
{
	bool any;
	return step(npumem, &any, error);
}

/* One look for an answer. `npumem` may be gone when it has a status. */
struct look {
	struct npumem *npumem;
	struct npumem_error *error;
	unsigned live; /* requests before: one whose time is over ends the look as an answer does */
	int status;
};

static bool has_come(void *ctx)
{
	struct look *look = ctx;
	bool any;
	look->status = step(look->npumem, &any, look->error);
	return look->status || any || look->npumem->n_requests != look->live;
}

int engine_wait(struct npumem *npumem, struct npumem_error *error)
{
	bool any;
	unsigned live = npumem->n_requests;
	int status = step(npumem, &any, error);
	if (status || any || npumem->n_requests != live)
		return status;
	struct look look = {npumem, error, live, 0};
	/* What is learned is known before the first look, after which there may be no connection. */
	bool came = npumem->fd >= 0 && spin_look(&npumem->spin, has_come, &look);
	if (came)
		return look.status;
	struct pollfd pollfd = {.fd = npumem->fd, .events = POLLIN};
	if (engine_wants_write(npumem))
		pollfd.events |= POLLOUT;
	if (poll(&pollfd, 1, clock_left(engine_due(npumem))) < 0 && errno != EINTR)
		engine_break(npumem, "waiting for the daemon failed: %s", strerror(errno));
	return engine_turn(npumem, error);
}
