/* Puts the layers together, and takes them apart in the other order.
 * Invariant: the loop ends when the last handle is closed; only server_stop closes those that would keep it alive.
 */
#include "daemon/server/server.h"

#include <errno.h>
#include <malloc.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <unistd.h>

#include "daemon/server/activate.h"
#include "daemon/server/log.h"

enum { STOP_DEADLINE_MS = 2000, SESSIONS_MAX = 16384, FDS_APART = 64 };

/* ---- connections ---- */

static void on_taken(void *ctx, int fd)
{
	int status = connection_open(ctx, fd);

	if (status)
		log_line(LOG_LEVEL_WARNING, "cannot serve a connection: %s", uv_strerror(status));
}

static void close_timers(struct server *server)
{
	uv_close((uv_handle_t *)&server->deadline, NULL);
	uv_close((uv_handle_t *)&server->sweep, NULL);
	uv_close((uv_handle_t *)&server->turns, NULL);
}

void server_closed_one(struct server *server)
{
	if (server->connections)
		return;
	/* A daemon of one connection has nothing left to do; one that goes down was waiting for this. */
	if (server->is_stopping)
		close_timers(server);
	else if (server->options->fd >= 0)
		server_stop(server);
}

/* ---- turns ---- */

static void on_turn(uv_idle_t *idle)
{
	struct server *server = idle->data;
	struct connection *connection = server->ready;

	/* One of them, then whoever has become readable: what it leaves over goes to the end of the line. */
	if (connection) {
		server_remove_ready(server, connection);
		connection_turn(connection);
	}
	if (!server->ready)
		uv_idle_stop(idle);
}

void server_add_ready(struct server *server, struct connection *connection)
{
	struct connection **at = &server->ready;

	while (*at && *at != connection)
		at = &(*at)->next_ready;
	if (*at)
		return;
	*at = connection;
	connection->next_ready = NULL;
	uv_idle_start(&server->turns, on_turn);
}

void server_remove_ready(struct server *server, struct connection *connection)
{
	struct connection **at = &server->ready;

	while (*at && *at != connection)
		at = &(*at)->next_ready;
	if (*at)
		*at = connection->next_ready;
}

static void on_sweep(uv_timer_t *timer)
{
	struct server *server = timer->data;
	uint64_t timeout_ms = (uint64_t)server->options->reply_timeout_seconds * 1000;

	for (struct connection *connection = server->connections, *next; connection; connection = next) {
		next = connection->next;
		connection_sweep(connection, uv_now(&server->loop), timeout_ms);
	}
}

static void on_answered(const struct rpc_answer *answer)
{
	log_session(LOG_LEVEL_DEBUG, answer->session,
		    "%s: %s, %" PRIu64 " bytes in, %" PRIu64 " out, %" PRIu64 " us%s%s", answer->call,
		    npumem_status_name(answer->status), answer->bytes_in, answer->bytes_out, answer->ns / 1000,
		    *answer->message ? ": " : "", answer->message);
}

/* ---- the end ---- */

static void on_deadline(uv_timer_t *timer)
{
	struct server *server = timer->data;

	log_line(LOG_LEVEL_WARNING, "clients that do not read their replies are cut off");
	for (struct connection *connection = server->connections, *next; connection; connection = next) {
		next = connection->next;
		connection_close(connection);
	}
}

void server_stop(struct server *server)
{
	if (server->is_stopping)
		return;
	server->is_stopping = true;
	notify_stopping(&server->notify);
	if (server->address.fd >= 0) {
		accept_stop(&server->accept);
		address_close(&server->address);
	}
	uv_close((uv_handle_t *)&server->terminate, NULL);
	uv_close((uv_handle_t *)&server->interrupt, NULL);
	uv_close((uv_handle_t *)&server->alarm, NULL);
	if (!server->connections) {
		close_timers(server);
		return;
	}
	uv_timer_start(&server->deadline, on_deadline, STOP_DEADLINE_MS, 0);
	for (struct connection *connection = server->connections, *next; connection; connection = next) {
		next = connection->next;
		connection_end(connection);
	}
}

/* ---- the clock ---- */

static void on_alarm(uv_timer_t *timer)
{
	rpc_tick(&((struct server *)timer->data)->rpc);
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

static void on_signal(uv_signal_t *signal, int number)
{
	struct server *server = signal->data;

	log_line(LOG_LEVEL_INFO, "%s: finishing what runs", number == SIGTERM ? "terminated" : "interrupted");
	server_stop(server);
}

/* ---- the beginning ---- */

static int fail(char *error, const char *what, int status)
{
	snprintf(error, ADDRESS_ERROR_BYTES, "%s: %s", what, uv_strerror(status));
	return status;
}

/* As many sessions as there are fds for, with some left for the daemon's own and for shared memory on its way. */
static uint64_t most_sessions(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit))
		return 0;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
	getrlimit(RLIMIT_NOFILE, &limit);
	if (limit.rlim_cur == RLIM_INFINITY || limit.rlim_cur > SESSIONS_MAX)
		return SESSIONS_MAX;
	return limit.rlim_cur > 2 * FDS_APART ? limit.rlim_cur - FDS_APART : limit.rlim_cur / 2;
}

static int set_limits(struct server *server)
{
	struct limits_table *table = &server->service.limits;
	const struct options *options = server->options;

	table->all[LIMITS_SESSIONS] = most_sessions();
	if (options->share_device)
		table->all[LIMITS_DEVICE_BYTES] =
			(uint64_t)(options->device.geometry.n_npus * options->device.geometry.npu_bytes);
	for (int key = 0; key < LIMITS_N; key++) {
		if (!options->limits[key])
			continue;
		table->ordinary.most[key] = options->limits[key];
		/* What one may have there must be, but for sessions, of which there are no more than fds. */
		if (key != LIMITS_SESSIONS && table->all[key] && table->all[key] < options->limits[key])
			table->all[key] = options->limits[key];
	}
	for (unsigned i = 0; i < options->n_own_limits; i++)
		if (limits_set_own(table, options->own_limits[i].uid, (enum limits_key)options->own_limits[i].key,
				   options->own_limits[i].most))
			return -ENOMEM;
	return 0;
}

static int open_device(struct server *server, char *error)
{
	const struct device_options *options = &server->options->device;
	uint64_t seed, bytes = device_memory_bytes(&options->geometry);

	server->memory_bytes = bytes;
	server->memory =
		mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (server->memory == MAP_FAILED) {
		server->memory = NULL;
		return fail(error, "cannot map the device's memory", -errno);
	}
	if (getrandom(&seed, sizeof(seed), 0) != sizeof(seed))
		return fail(error, "no random seed", -errno);
	if (device_new(options, server->heap, server->memory, &server->device))
		return fail(error, "cannot make the device", UV_ENOMEM);
	if (service_init(&server->service, server->device, server->heap, geteuid(), seed))
		return fail(error, "cannot make the service", UV_ENOMEM);
	if (set_limits(server))
		return fail(error, "cannot set the limits", UV_ENOMEM);
	rpc_init(&server->rpc, &server->service, server->heap);
	if (workers_open(&server->workers, &server->loop, server->heap, 0))
		return fail(error, "cannot make worker threads", UV_ENOMEM);
	server->rpc.executor = workers_executor(&server->workers);
	device_give_way_by(server->device, workers_give_way, &server->workers);
	server->rpc.now_ns = uv_hrtime;
	server->service.events.now_ns = uv_hrtime;
	server->rpc.set_alarm = set_alarm;
	server->rpc.answered = log_is_on(LOG_LEVEL_DEBUG) ? on_answered : NULL;
	server->rpc.alarm_ctx = server;
	return 0;
}

static void close_device(struct server *server)
{
	buffer_deinit(&server->spare);
	if (server->service.device) {
		rpc_deinit(&server->rpc);
		service_deinit(&server->service);
	}
	device_free(server->device);
	if (server->memory)
		munmap(server->memory, server->memory_bytes);
}

/* The daemon of one client dies with it, even if that one forgets to close. */
static int open_one(struct server *server, char *error)
{
	const struct device_options *device = &server->options->device;
	int status;

	if (prctl(PR_SET_PDEATHSIG, SIGTERM))
		return fail(error, "no signal at the parent's end", -errno);
	status = connection_open(server, server->options->fd);
	if (status) {
		snprintf(error, ADDRESS_ERROR_BYTES, "fd %d is no connected socket: %s", server->options->fd,
			 uv_strerror(status));
		return status;
	}
	log_line(LOG_LEVEL_INFO, "%lld NPUs x %lld bytes on fd %d", (long long)device->geometry.n_npus,
		 (long long)device->geometry.npu_bytes, server->options->fd);
	return 0;
}

/* The socket that was passed, or else one of the daemon's own. */
static int open_address(struct server *server, char *error)
{
	const struct options *options = server->options;
	int fd, status = activate_take(&fd, error);

	if (status)
		return status;
	if (fd < 0)
		return address_open(&server->address, options->socket, options->mode, error);
	address_adopt(&server->address, fd);
	return 0;
}

static int open_socket(struct server *server, char *error)
{
	const struct device_options *device = &server->options->device;
	char line[160];
	int status = open_address(server, error);

	if (status)
		return status;
	status = accept_start(&server->accept, &server->loop, server->address.fd, on_taken, NULL, server);
	if (status)
		return fail(error, "cannot watch the socket", status);
	snprintf(line, sizeof(line), "%lld NPUs x %lld bytes on %s", (long long)device->geometry.n_npus,
		 (long long)device->geometry.npu_bytes, server->address.path);
	log_line(LOG_LEVEL_INFO, "%s", line);
	/* Not from a private daemon: the environment it has inherited is its client's. */
	notify_open(&server->notify, &server->loop);
	notify_ready(&server->notify, line);
	return 0;
}

static int open_loop(struct server *server, char *error)
{
	int status = uv_timer_init(&server->loop, &server->deadline);

	if (!status)
		status = uv_timer_init(&server->loop, &server->sweep);
	if (!status)
		status = uv_idle_init(&server->loop, &server->turns);
	if (!status)
		status = uv_timer_init(&server->loop, &server->alarm);
	if (!status)
		status = uv_signal_init(&server->loop, &server->terminate);
	if (!status)
		status = uv_signal_init(&server->loop, &server->interrupt);
	server->terminate.data = server->interrupt.data = server->deadline.data = server;
	server->alarm.data = server->sweep.data = server->turns.data = server;
	if (!status)
		status = uv_timer_start(&server->sweep, on_sweep, 1000, 1000);
	if (!status)
		status = uv_signal_start(&server->terminate, on_signal, SIGTERM);
	if (!status)
		status = uv_signal_start(&server->interrupt, on_signal, SIGINT);
	return status ? fail(error, "cannot watch for signals", status) : 0;
}

static int run(struct server *server, char *error)
{
	int status = open_loop(server, error);

	if (!status)
		status = open_device(server, error);
	if (!status)
		status = server->options->fd >= 0 ? open_one(server, error) : open_socket(server, error);
	if (status)
		return status;
	stopwatch_open(&server->stopwatch, &server->loop, &server->service.metrics);
	uv_run(&server->loop, UV_RUN_DEFAULT);
	log_line(LOG_LEVEL_INFO, "stopped");
	return 0;
}

static void close_leftover(uv_handle_t *handle, void *ctx)
{
	(void)ctx;
	if (!uv_is_closing(handle))
		uv_close(handle, NULL);
}

/* Megabytes of payload come and go with requests. Given back to the kernel each time, and taken again page by
 * page, they would keep the loop for a millisecond; so some are kept. */
static void keep_memory(void)
{
	enum { MIB = 1 << 20 };

	mallopt(M_ARENA_MAX, 1);
	mallopt(M_MMAP_THRESHOLD, 32 * MIB);
	mallopt(M_TRIM_THRESHOLD, 128 * MIB);
}

int server_run(const struct options *options, char error[ADDRESS_ERROR_BYTES])
{
	/* Its input and scratch buffers are large, and most of their pages are never touched. */
	static struct server server;
	int status;

	signal(SIGPIPE, SIG_IGN);
	keep_memory();
	server.options = options;
	server.heap = &heap_libc;
	server.address.fd = server.notify.fd = -1;
	buffer_init(&server.spare, server.heap);
	status = uv_loop_init(&server.loop);
	if (!status)
		status = uv_loop_configure(&server.loop, UV_METRICS_IDLE_TIME);
	if (status)
		return fail(error, "cannot make a loop", status);
	status = run(&server, error);
	notify_close(&server.notify);
	stopwatch_close(&server.stopwatch);
	workers_close(&server.workers);
	if (status) {
		/* It never ran: what was opened goes without being told. */
		address_close(&server.address);
		uv_walk(&server.loop, close_leftover, NULL);
	}
	uv_run(&server.loop, UV_RUN_DEFAULT);
	uv_loop_close(&server.loop);
	close_device(&server);
	return status;
}
