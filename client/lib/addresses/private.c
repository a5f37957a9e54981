/* Private daemons: for one connection (spawn:), or at a path, for this process and those that it tells. Each was
 * asked once, and has answered, before anybody relies on it. */
#include "client/lib/addresses/private.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "client/lib/addresses/address.h"
#include "client/lib/connection/clock.h"
#include "client/lib/connection/connection.h"
#include "client/lib/connection/engine.h"
#include "client/lib/addresses/spawn.h"

/* A private daemon is asked once before anybody relies on it: it may have refused its options. */
static int ask_once(struct npumem *npumem, const struct npumem_options *options, struct npumem_error *why)
{
	int status;
	npumem->call_ms = options->connect_ms;
	status = npumem_info(npumem, NULL, why);
	npumem->call_ms = options->call_ms;
	return status;
}

int private_open(const char *words, const struct npumem_options *options, struct npumem **out,
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
	request_clear(error);
	request_clear(&why);
	*pid = -1;
	int status = connection_options(given, &options, error);
	if (!status)
		status = address_parse(path, &address, error);
	if (!status && (address.spawn || address_is_remote(&address)))
		status = npumem_error_set(error, NPUMEM_INVALID, "\"%.100s\" is no path of a socket", path);
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
