/* Opening connections: to a path, to another host, to a private daemon (spawn:); and starting a daemon at a path,
 * for several processes. */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "client/lib/addresses/address.h"
#include "client/lib/connection/clock.h"
#include "client/lib/connection/connection.h"
#include "client/lib/connection/engine/engine.h"

/* ---- private daemons ---- */

/* A private daemon must answer one request before the open succeeds: it may have refused its options. */
static int ask_once(struct npumem *npumem, const struct npumem_options *options, struct npumem_error *why)
{
	int status;
	npumem->call_ms = options->connect_ms;
	status = npumem_info(npumem, NULL, why);
	npumem->call_ms = options->call_ms;
	return status;
}

static int open_private(const char *words, const struct npumem_options *options, struct npumem **out,
			struct npumem_error *error)
{
	struct spawned spawned;
	struct npumem *npumem;
	struct npumem_error why;
	int ends[2];
	request_clear(&why);
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends))
		return npumem_error_set(error, NPUMEM_UNAVAILABLE, "cannot make a socket: %s", strerror(errno));
	int status = spawn_start(&memory_libc, words, ends[1], &spawned, error);
	if (status) {
		close(ends[0]);
		return status == NPUMEM_INVALID ? status : NPUMEM_UNAVAILABLE;
	}
	if (engine_new(&memory_libc, ends[0], options, &npumem)) {
		spawn_bury(&spawned);
		return npumem_error_set(error, NPUMEM_UNAVAILABLE, "no memory in this process for a connection");
	}
	if (ask_once(npumem, options, &why)) {
		engine_close(npumem);
		return spawn_failed(&spawned, &why, error);
	}
	npumem->child = spawned.pid;
	npumem->child_log = spawned.log;
	*out = npumem;
	return 0;
}

/* ---- other hosts ---- */

static int refused(const struct address *address, const struct spawned *spawned, const struct npumem_error *why,
		   struct npumem_error *error)
{
	bool late = why->status == NPUMEM_DEADLINE_EXCEEDED;
	char last[256];
	const char *text = why->message;
	/* What ssh said last is in the reason of an end that it caused. */
	if (late)
		remote_last_words(spawned->log, 0, last, sizeof(last));
	if (late && last[0])
		text = last;
	if (spawned->pid > 0)
		spawn_kill(spawned->pid);
	if (spawned->log >= 0)
		close(spawned->log);
	return npumem_error_set(error, late ? why->status : NPUMEM_UNAVAILABLE, "cannot reach %.80s: %.350s",
				address->host, text);
}

static int open_remote(const struct address *address, const struct npumem_options *given, struct npumem **out,
		       struct npumem_error *error)
{
	struct npumem_options options = *given;
	struct npumem_error why;
	struct spawned spawned;
	struct npumem *npumem;
	int fd, err = remote_start(address, false, &spawned, &fd);
	if (err)
		return npumem_error_set(error, NPUMEM_UNAVAILABLE, "cannot reach %.80s: $NPUMEM_SSH or ssh: %s",
					address->host, strerror(-err));
	/* An answer over ssh takes longer than polling is worth. */
	options.spin_us = NPUMEM_NO_SPIN;
	options.call_ms = options.connect_ms;
	request_clear(&why);
	int status = connection_at(&memory_libc, address, fd, &options, &npumem, &why);
	if (status)
		return refused(address, &spawned, &why, error);
	npumem->child = spawned.pid;
	npumem->child_log = spawned.log;
	status = npumem_info(npumem, NULL, &why);
	npumem->call_ms = given->call_ms;
	if (!status) {
		*out = npumem;
		return 0;
	}
	spawned = (struct spawned){npumem->child, npumem->child_log};
	npumem->child = 0;
	npumem->child_log = -1;
	engine_close(npumem);
	return refused(address, &spawned, &why, error);
}

/* ---- addresses ---- */

int npumem_open(const char *address, const struct npumem_options *given, struct npumem **out,
		struct npumem_error *error)
{
	struct npumem_options options;
	struct address parsed;
	int fd;
	request_clear(error);
	*out = NULL;
	int status = connection_options(given, &options, error);
	if (!status)
		status = address_parse(address, &parsed, error);
	if (status)
		return status;
	if (parsed.spawn)
		return open_private(parsed.options, &options, out, error);
	if (address_is_remote(&parsed))
		return open_remote(&parsed, &options, out, error);
	status = address_connect(&parsed, clock_after(options.connect_ms), &fd, error);
	return status ? status : connection_at(&memory_libc, &parsed, fd, &options, out, error);
}

/* Of what takes paths alone. Clears `error`. */
static int parse_path(const char *text, const struct npumem_options *given, struct address *address,
		      struct npumem_options *options, struct npumem_error *error)
{
	request_clear(error);
	int status = connection_options(given, options, error);
	if (!status)
		status = address_parse(text, address, error);
	if (!status && (address->spawn || address_is_remote(address)))
		status = npumem_error_set(error, NPUMEM_INVALID, "\"%.100s\" is not a path of a socket",
					  text ? text : "$NPUMEM_SOCKET");
	return status;
}

int npumem_dial(const char *address, const struct npumem_options *given, int *fd, struct npumem_error *error)
{
	struct npumem_options options;
	struct address parsed;
	*fd = -1;
	int status = parse_path(address, given, &parsed, &options, error);
	return status ? status : address_connect(&parsed, clock_after(options.connect_ms), fd, error);
}

int npumem_open_fd(int fd, const struct npumem_options *options, struct npumem **out, struct npumem_error *error)
{
	request_clear(error);
	return connection_new(&memory_libc, fd, options, out, error);
}

/* ---- private daemons at a path ---- */

static int ask_at(const struct address *address, const struct npumem_options *options, struct npumem_error *why)
{
	struct npumem *npumem;
	int fd, status = address_connect(address, clock_after(options->connect_ms), &fd, why);
	if (!status)
		status = connection_new(&memory_libc, fd, options, &npumem, why);
	if (status)
		return status;
	status = ask_once(npumem, options, why);
	engine_close(npumem);
	return status;
}

int npumem_spawn(const char *path, const char *words, const struct npumem_options *given, int *pid,
		 struct npumem_error *error)
{
	struct npumem_options options;
	struct npumem_error why;
	struct address address;
	struct spawned spawned;
	int fd;
	request_clear(&why);
	*pid = -1;
	int status = parse_path(path, given, &address, &options, error);
	if (!status)
		status = address_listen(&address, &fd, error);
	if (status)
		return status;
	status = spawn_start(&memory_libc, words ? words : "", fd, &spawned, error);
	if (!status && ask_at(&address, &options, &why))
		status = spawn_failed(&spawned, &why, error);
	if (status) {
		unlink(address.path);
		return status;
	}
	if (spawned.log >= 0)
		close(spawned.log);
	*pid = spawned.pid;
	return 0;
}

void npumem_spawn_end(const char *path, int pid)
{
	struct address address;
	kill(pid, SIGTERM);
	spawn_reap(pid);
	if (!address_parse(path, &address, NULL) && !address.spawn && !address_is_remote(&address))
		unlink(address.path);
}
