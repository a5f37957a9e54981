/* Opening and closing connections, and the calls that fit them into an event loop. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "client/lib/address.h"
#include "client/lib/call.h"
#include "client/lib/connection.h"
#include "client/lib/engine.h"
#include "client/lib/spawn.h"

int connection_new(const struct memory *memory, int fd, struct npumem **out, struct npumem_error *error)
{
	if (engine_new(memory, fd, out))
		return npumem_error_set(error, NPUMEM_UNAVAILABLE, "no memory in this process for a connection");
	return 0;
}

/* A private daemon is asked once before anybody relies on it: it may have refused its options. */
static int open_spawn(const char *options, struct npumem **out, struct npumem_error *error)
{
	struct spawned spawned;
	struct npumem *npumem;
	struct npumem_info info;
	struct npumem_error why;
	char last[256];
	int status = spawn_start(&memory_libc, options, &spawned, error);
	if (status)
		return status == NPUMEM_INVALID ? status : NPUMEM_UNAVAILABLE;
	status = connection_new(&memory_libc, spawned.fd, &npumem, error);
	if (status) {
		spawn_reap(spawned.pid);
		if (spawned.log >= 0)
			close(spawned.log);
		return status;
	}
	npumem->child = spawned.pid;
	npumem->child_log = spawned.log;
	if (!npumem_info(npumem, &info, &why)) {
		*out = npumem;
		return 0;
	}
	/* Once it is gone it has said all it had to say. */
	npumem->child = 0;
	npumem->child_log = -1;
	npumem_close(npumem);
	spawn_reap(spawned.pid);
	spawn_last_words(spawned.log, last, sizeof(last));
	if (spawned.log >= 0)
		close(spawned.log);
	return npumem_error_set(error, NPUMEM_UNAVAILABLE, "the private daemon did not start: %s",
				last[0] ? last : why.message);
}

int npumem_open(const char *address, struct npumem **out, struct npumem_error *error)
{
	struct address parsed;
	int fd;
	call_clear(error);
	*out = NULL;
	int status = address_parse(address, &parsed, error);
	if (status)
		return status;
	if (parsed.spawn)
		return open_spawn(parsed.options, out, error);
	status = address_connect(&parsed, &fd, error);
	return status ? status : connection_new(&memory_libc, fd, out, error);
}

int npumem_open_fd(int fd, struct npumem **out, struct npumem_error *error)
{
	call_clear(error);
	*out = NULL;
	return connection_new(&memory_libc, fd, out, error);
}

void npumem_close(struct npumem *npumem)
{
	if (!npumem)
		return;
	pid_t child = npumem->child;
	int log = npumem->child_log;
	engine_free(npumem);
	if (child > 0)
		spawn_reap(child);
	if (log >= 0)
		close(log);
}

int npumem_fd(const struct npumem *npumem)
{
	return npumem->fd;
}

bool npumem_wants_write(const struct npumem *npumem)
{
	return buffer_used(&npumem->out) && !npumem->no_more_writes;
}

int npumem_process(struct npumem *npumem, struct npumem_error *error)
{
	call_clear(error);
	return engine_turn(npumem, error);
}

unsigned npumem_in_flight(const struct npumem *npumem)
{
	return npumem->pending.used;
}

int npumem_flush(struct npumem *npumem, struct npumem_error *error)
{
	int status = 0;
	call_clear(error);
	while (!status && npumem->pending.used)
		status = engine_wait(npumem, error);
	return status;
}
