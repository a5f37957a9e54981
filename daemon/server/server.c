/* Puts the layers together, and takes them apart in the other order. */
#include "daemon/server/server.h"

#include <errno.h>
#include <malloc.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "daemon/rpc/calls/perform.h"
#include "daemon/server/connections/activate.h"
#include "daemon/server/process/background.h"
#include "daemon/server/process/blocks.h"
#include "daemon/server/process/fault.h"
#include "daemon/server/process/holes.h"
#include "daemon/server/process/set_limits.h"
#include "daemon/server/process/log.h"
#include "daemon/server/core.h"
#include "daemon/server/loop/spin.h"
#include "daemon/server/stopping.h"
#include "daemon/service/service.h"

enum { MS_PER_SECOND = 1000, SWEEP_MS = 1000 };

/* ---- connections ---- */

static void on_taken(void *ctx, int fd)
{
	struct server *server = ctx;
	int status;

	turns_wake(&server->turns);
	status = connections_open(&server->connections, fd);
	if (status)
		log_line(LOG_LEVEL_WARNING, "cannot serve a connection: %s", uv_strerror(status));
}

static bool may_take(void *ctx)
{
	return closer_may_turn_away(&((const struct server *)ctx)->closer);
}

static void on_refused(void *ctx, int fd)
{
	connections_refuse(&((struct server *)ctx)->connections, fd, NPUMEM_RESOURCE_EXHAUSTED,
			   "the daemon has no file descriptor left for this connection");
}

static void on_sweep(uv_timer_t *timer)
{
	struct server *server = timer->data;

	stopwatch_refresh(&server->stopwatch);
	turns_wake(&server->turns);
	accounts_refresh(&server->accounts);
	connections_sweep(&server->connections);
}

static void on_answered(const struct rpc_answer *answer)
{
	log_session(LOG_LEVEL_DEBUG, answer->session,
		    "%s: %s, %" PRIu64 " bytes in, %" PRIu64 " out, %" PRIu64 " us%s%s", answer->call,
		    npumem_status_name(answer->status), answer->bytes_in, answer->bytes_out, answer->ns / 1000,
		    *answer->message ? ": " : "", answer->message);
}

/* ---- the clock ---- */

static void on_alarm(uv_timer_t *timer)
{
	struct server *server = timer->data;

	turns_wake(&server->turns);
	rpc_tick(&server->rpc);
}

static void set_alarm(void *ctx, uint64_t at_ns)
{
	enum { NS_PER_MS = 1000000 };
	struct server *server = ctx;
	uint64_t now = uv_hrtime();

	if (server->is_stopping)
		return;
	if (at_ns == UINT64_MAX) {
		uv_timer_stop(&server->alarm);
		return;
	}
	uv_update_time(&server->loop);
	/* Rounded up, as a timer that is early would only be set again. */
	uv_timer_start(&server->alarm, on_alarm, at_ns > now ? (at_ns - now) / NS_PER_MS + 1 : 0, 0);
}

static void on_waited(uv_check_t *check)
{
	rpc_clock_passed(&((struct server *)check->data)->rpc);
}

/* Neither can fail. */
static void open_waited(struct server *server)
{
	server->waited.data = server;
	uv_check_init(&server->loop, &server->waited);
	uv_check_start(&server->waited, on_waited);
	uv_unref((uv_handle_t *)&server->waited);
}

static void settle(void *ctx)
{
	rpc_settle(&((struct server *)ctx)->rpc);
}

static void say_ended(void *ctx, const struct session *session)
{
	const struct server *server = ctx;

	log_session(LOG_LEVEL_WARNING, session,
		    "ends with its connection, though it was to linger: %" PRIu64
		    " sessions of its user wait for their "
		    "clients, as many as --limit sessions allows",
		    limits_most(&server->service.limits, session->user, LIMITS_SESSIONS));
}

static void hang_up(void *ctx, struct session *session)
{
	(void)ctx;
	connections_hang_up(session);
}

/* ---- the beginning ---- */

static int fail(char *error, const char *what, int status)
{
	snprintf(error, ADDRESS_ERROR_BYTES, "%s: %s", what, uv_strerror(status));
	return status;
}

/* After an error it is unknown what the disk has, and no reply may be sent any more: the next daemon finds out. */
static void on_synced(void *ctx)
{
	struct server *server = ctx;
	int status = store_failed(server->state.store);

	turns_wake(&server->turns);
	if (status && !server->connections.has_lost_state) {
		log_line(LOG_LEVEL_ERROR, "the state cannot be written: %s; the daemon ends", uv_strerror(status));
		server->connections.has_lost_state = true;
		turns_add_last(&server->turns, &server->shutdown);
	}
	rpc_synced(&server->rpc);
	connection_all_synced(&server->connections);
}

static void open_connections(struct server *server)
{
	struct connection_host *host = &server->connections;

	host->loop = &server->loop;
	host->heap = server->heap;
	host->service = &server->service;
	host->rpc = &server->rpc;
	host->turns = &server->turns;
	host->workers = &server->workers;
	host->closer = &server->closer;
	host->frame_ms = (uint64_t)server->options->frame_seconds * MS_PER_SECOND;
	host->drain_ms = (uint64_t)server->options->drain_seconds * MS_PER_SECOND;
	host->store = server->state.store && store_is_durable(server->state.store) ? server->state.store : NULL;
	host->gone = stopping_client_gone;
	host->ctx = server;
	if (!server->is_private) {
		identity_init(&server->identity);
		host->identity = &server->identity;
	}
}

/* Before the limits of single users are set. */
static int open_accounts(struct server *server, char *error)
{
	const char *path = server->options->subuid;
	int status = server->is_private ? 0 : accounts_open(&server->accounts, path, geteuid());

	if (status)
		snprintf(error, ADDRESS_ERROR_BYTES, "cannot read %.120s (--subuid): %s", path,
			 uv_strerror(status));
	if (status || server->is_private)
		return status;
	server->service.limits.accounts = &server->accounts;
	server->service.limits.account = accounts_of;
	return 0;
}

static int open_device(struct server *server, char *error)
{
	struct device_options options = server->options->device;
	struct kernel_crew crew;
	uint64_t seed;
	int status = blocks_open();

	if (status)
		return fail(error, "cannot make a thread that gives memory back", status);
	status = state_open(&server->state, server->options, &server->notify, server->heap, error,
			    ADDRESS_ERROR_BYTES);
	if (status)
		return status;
	if (getrandom(&seed, sizeof(seed), 0) != sizeof(seed))
		return fail(error, "no random seed", -errno);
	if (server->state.store && store_is_on_disk(server->state.store))
		options.are_there = store_are_there;
	if (device_new(&options, server->heap, server->state.memory, &server->device))
		return fail(error, "cannot make the device", UV_ENOMEM);
	if (service_init(&server->service, server->device, server->heap, geteuid(), seed))
		return fail(error, "cannot make the service", UV_ENOMEM);
	status = open_accounts(server, error);
	if (status)
		return status;
	if (set_limits(&server->service.limits, server->options))
		return fail(error, "cannot set the limits", UV_ENOMEM);
	status = closer_open(&server->closer, &server->loop, server->heap, &server->service.limits);
	if (status)
		return fail(error, "cannot make a thread that closes what clients have passed", status);
	rpc_init(&server->rpc, &server->service, server->heap);
	if (workers_open(&server->workers, &server->loop, &server->service.queue, server->heap, 0))
		return fail(error, "cannot make worker threads", UV_ENOMEM);
	server->workers.on_pause = perform_note_pause;
	server->rpc.executor = workers_executor(&server->workers);
	device_give_way_by(server->device, workers_give_way, &server->workers);
	share_open(&server->share, &server->workers);
	crew = share_crew(&server->share);
	device_help_by(server->device, &crew);
	server->rpc.now_ns = uv_hrtime;
	server->rpc.began_ns = uv_hrtime();
	server->rpc.keeps_clock = true;
	server->service.events.now_ns = uv_hrtime;
	server->rpc.set_alarm = set_alarm;
	server->rpc.answered = log_is_on(LOG_LEVEL_DEBUG) ? on_answered : NULL;
	server->rpc.shut_down = stopping_requested;
	server->rpc.hang_up = hang_up;
	server->rpc.not_kept = say_ended;
	server->shutdown.run = stopping_run;
	server->rpc.ctx = server;
	open_connections(server);
	status = state_recover(&server->state, server->options, &server->rpc, error, ADDRESS_ERROR_BYTES);
	if (!status && disk_open(&server->disk, &server->loop, server->state.store, on_synced, server))
		return fail(error, "cannot make a thread for the disk", UV_ENOMEM);
	return status;
}

static int close_device(struct server *server)
{
	outbox_pool_deinit(&server->connections.pool);
	if (server->service.device) {
		rpc_deinit(&server->rpc);
		service_deinit(&server->service);
	}
	accounts_close(&server->accounts);
	device_free(server->device);
	return state_close(&server->state, server->has_served && !server->connections.has_lost_state);
}

static int open_one(struct server *server, char *error)
{
	const struct device_options *device = &server->options->device;
	int status = connections_open(&server->connections, (int)server->options->fd);
	if (status) {
		snprintf(error, ADDRESS_ERROR_BYTES, "fd %d is not a connected socket: %s",
			 (int)server->options->fd, uv_strerror(status));
		return status;
	}
	log_line(LOG_LEVEL_INFO, "%lld NPUs x %lld bytes on fd %d", (long long)device->geometry.n_npus,
		 (long long)device->geometry.npu_bytes, (int)server->options->fd);
	return 0;
}

/* The socket that was passed, or else one of the daemon's own. */
static int open_address(struct server *server, char *error)
{
	const struct options *options = server->options;
	int fd = (int)options->fd, status;

	status = fd >= 0 ? activate_prepare(fd, error) : activate_take(&fd, error);
	if (status)
		return status;
	if (fd < 0)
		return address_open(&server->address, options->socket, (mode_t)options->mode, options->users,
				    error);
	address_adopt(&server->address, fd);
	return 0;
}

static int open_socket(struct server *server, char *error)
{
	const struct options *options = server->options;
	const struct device_options *device = &options->device;
	char line[160];
	int status = open_address(server, error);

	if (status)
		return status;
	status = accept_start(&server->accept, &server->loop, server->address.fd, may_take, on_taken, on_refused,
			      server);
	if (status)
		return fail(error, "cannot watch the socket", status);
	snprintf(line, sizeof(line), "%lld NPUs x %lld bytes on %s", (long long)device->geometry.n_npus,
		 (long long)device->geometry.npu_bytes, server->address.path);
	server->rpc.socket = server->address.path;
	background_ready(line, server->address.path);
	log_line(LOG_LEVEL_INFO, "%s", line);
	notify_ready(&server->notify, line);
	return 0;
}

static void open_timers(struct server *server)
{
	uv_timer_init(&server->loop, &server->deadline);
	uv_timer_init(&server->loop, &server->sweep);
	uv_timer_init(&server->loop, &server->alarm);
	server->deadline.data = server->alarm.data = server->sweep.data = server;
	uv_timer_start(&server->sweep, on_sweep, SWEEP_MS, SWEEP_MS);
}

/* Behind the threads that every daemon has. A daemon of one client ends with the process that started it, even if
 * that forgets to close its connection. */
static int open_signals(struct server *server, char *error)
{
	int status;

	server->signals.stop = stopping_on_signal;
	server->signals.ctx = server;
	status = signals_open(&server->signals, &server->loop, server->options->fd >= 0);
	return status ? fail(error, "cannot watch for signals", status) : 0;
}

static int run(struct server *server, char *error)
{
	int status;

	open_timers(server);
	/* Not of a private daemon: the environment it has inherited is its client's. */
	if (server->options->fd < 0)
		notify_open(&server->notify, &server->loop);
	status = open_device(server, error);
	if (!status)
		status = open_signals(server, error);
	if (status)
		return status;
	stopwatch_open(&server->stopwatch, &server->turns, &server->loop, &server->service.metrics);
	turns_open(&server->turns, &server->loop, &server->service.queue);
	server->turns.settle = settle;
	server->turns.ctx = server;
	open_waited(server);
	status = server->is_private ? open_one(server, error) : open_socket(server, error);
	if (status)
		return status;
	server->has_served = true;
	spin_run(&server->loop, &server->turns, (unsigned)server->options->spin_us);
	turns_close(&server->turns);
	uv_close((uv_handle_t *)&server->waited, NULL);
	log_line(LOG_LEVEL_INFO, "stopped");
	return 0;
}

static void close_leftover(uv_handle_t *handle, void *ctx)
{
	(void)ctx;
	if (!uv_is_closing(handle))
		uv_close(handle, NULL);
}

/* The free of a large block is an munmap, which blocks.h leaves to a thread. Smaller blocks are kept: given back
 * to the kernel each time, and taken again page by page, they would keep the loop for a millisecond. */
static void keep_memory(void)
{
	enum { MIB = 1 << 20 };

	mallopt(M_ARENA_MAX, 1);
	mallopt(M_MMAP_THRESHOLD, BLOCKS_LARGE_BYTES);
	mallopt(M_TRIM_THRESHOLD, 128 * MIB);
	/* Else a large block joins all small ones that were freed since the last one, which may be thousands. */
	mallopt(M_MXFAST, 0);
}

int server_run(const struct options *options, char error[ADDRESS_ERROR_BYTES])
{
	/* Its input and scratch buffers are large, and most of their pages are never touched. */
	static struct server server;
	int status;

	signal(SIGPIPE, SIG_IGN);
	keep_memory();
	server.options = options;
	server.heap = &blocks_heap;
	server.address.fd = server.notify.fd = -1;
	server.is_private = options->fd >= 0 && !activate_listens((int)options->fd);
	fault_open();
	if (!server.is_private)
		holes_open(options->refuse_holes);
	status = uv_loop_init(&server.loop);
	if (status)
		return fail(error, "cannot make a loop", status);
	status = run(&server, error);
	notify_close(&server.notify);
	stopwatch_close(&server.stopwatch);
	share_close(&server.share);
	workers_close(&server.workers);
	closer_close(&server.closer);
	disk_close(&server.disk);
	if (status) {
		/* It never ran: handles that were opened are closed without callbacks. */
		address_close(&server.address);
		uv_walk(&server.loop, close_leftover, NULL);
	}
	uv_run(&server.loop, UV_RUN_DEFAULT);
	uv_loop_close(&server.loop);
	int closed = close_device(&server);
	blocks_close();
	/* Exits with an error, so that the service manager starts it again. */
	if (!status && server.connections.has_lost_state)
		return fail(error, "ended", -EIO);
	return !status && closed ? fail(error, "the state was not closed", closed) : status;
}
