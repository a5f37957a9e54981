/* Connections over sockets that are open, their end, and the calls that fit them into an event loop. */
#include "client/lib/connection/connection.h"

#include <stdlib.h>
#include <unistd.h>

#include "client/lib/connection/clock.h"
#include "client/lib/connection/engine/engine.h"
#include "client/lib/messages/payload.h"

enum {
	OPTIONS_FIRST = SIZED_UP_TO(struct npumem_options, spin_us),
	CONNECT_MS = 30000,
};

int connection_options(const struct npumem_options *given, struct npumem_options *options,
		       struct npumem_error *error)
{
	*options = (struct npumem_options)NPUMEM_OPTIONS_INIT;
	if (given) {
		int status = sized_check(given, 1, OPTIONS_FIRST, sizeof(*options), "options", error);
		if (status)
			return status;
		sized_get(given, 0, options, sizeof(*options));
	}
	if (!options->connect_ms)
		options->connect_ms = CONNECT_MS;
	else if (options->connect_ms == NPUMEM_FOREVER)
		options->connect_ms = 0;
	return 0;
}

int connection_new(const struct memory *memory, int fd, const struct npumem_options *given, struct npumem **out,
		   struct npumem_error *error)
{
	struct npumem_options options;
	int status = connection_options(given, &options, error);
	*out = NULL;
	if (status) {
		close(fd);
		return status;
	}
	if (engine_new(memory, fd, &options, out))
		return npumem_error_set(error, NPUMEM_UNAVAILABLE, "no memory in this process for a connection");
	return 0;
}

int connection_at(const struct memory *memory, const struct address *address, int fd,
		  const struct npumem_options *given, struct npumem **out, struct npumem_error *error)
{
	int status = connection_new(memory, fd, given, out, error);
	if (!status && address_is_remote(address))
		(*out)->remote = *address;
	uint64_t resume_ms = status || !given ? 0 : given->resume_ms;
	if (!status && resume_ms != NPUMEM_NO_RESUME)
		resume_ask(*out, address, resume_ms);
	return status;
}

void npumem_close(struct npumem *npumem)
{
	if (npumem && !npumem->closing)
		engine_close(npumem);
}

void npumem_set_timeout(struct npumem *npumem, uint32_t call_ms)
{
	npumem->call_ms = call_ms;
}

/* ---- event loops ---- */

int npumem_fd(const struct npumem *npumem)
{
	/* What is watched is no part of what a reader of the connection sees. */
	struct npumem *self = (struct npumem *)(uintptr_t)npumem;
	if (self->watch.fd < 0 && resume_keeps(&self->resume) && watch_open(&self->watch, self->fd))
		resume_forget(self);
	watch_timer(&self->watch, resume_due(&self->resume));
	return self->watch.fd >= 0 ? self->watch.fd : self->fd;
}

bool npumem_wants_write(const struct npumem *npumem)
{
	struct npumem *self = (struct npumem *)(uintptr_t)npumem;
	bool wants_write = engine_wants_write(npumem);
	watch_write(&self->watch, wants_write);
	return wants_write;
}

int npumem_timeout(const struct npumem *npumem)
{
	return npumem->broken.status && npumem->n_requests ? 0 : clock_left(engine_due(npumem));
}

int npumem_process(struct npumem *npumem, struct npumem_error *error)
{
	request_clear(error);
	return engine_turn(npumem, error);
}

unsigned npumem_in_flight(const struct npumem *npumem)
{
	return npumem->n_requests;
}

int npumem_flush(struct npumem *npumem, struct npumem_error *error)
{
	int status = 0;
	request_clear(error);
	while (!status && npumem->n_requests) {
		status = engine_wait(npumem, error);
		if (!status && npumem->interrupted)
			call_interrupt(npumem);
	}
	return status;
}
