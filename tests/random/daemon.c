/* Owns a device, a service and an rpc over them. Invariant: a task in the list was submitted and is not yet done.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* memfd_create */
#endif
#include "tests/random/daemon.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "daemon/rpc/rpc.h"
#include "daemon/service/kept/persist.h"
#include "daemon/service/service.h"
#include "proto/frame.h"

enum { PEERS_MAX = 8, TASKS_MAX = 1024, FILES_MAX = 8, PACK_BYTES = 1 << 20 };

struct task {
	void (*work)(void *arg);
	void (*done)(void *arg);
	void *arg;
	bool worked;
};

struct peer {
	struct daemon *daemon;
	unsigned number;
	bool is_open, is_drained;
	struct session session;
	struct rpc_peer rpc;
};

/* In front of what is allocated, as a process that is killed gives all of it back. */
struct piece {
	struct piece *next, *prev;
};

struct file {
	const char *name;
	int fd;
};

struct daemon {
	struct daemon_options options;
	struct piece pieces;	      /* the head of a ring */
	struct file files[FILES_MAX]; /* that its state is in */
	unsigned n_files;
	struct store *store;
	struct heap heap;
	size_t n_alive;
	void *memory, *own_memory;
	size_t memory_bytes;
	struct device *device;
	struct service service;
	struct rpc rpc;
	struct peer peers[PEERS_MAX];
	struct task tasks[TASKS_MAX];
	unsigned n_tasks;
	bool has_turn; /* among the tasks */
	uint64_t alarm_ns;
	char wrong[256];
};

static uint64_t clock_ns;

static uint64_t now_ns(void)
{
	return clock_ns;
}

static void *count_alloc(void *ctx, size_t bytes)
{
	struct daemon *daemon = ctx;
	struct piece *piece = malloc(sizeof(*piece) + bytes);

	if (!piece)
		abort();
	*piece = (struct piece){daemon->pieces.next, &daemon->pieces};
	piece->next->prev = daemon->pieces.next = piece;
	daemon->n_alive++;
	return piece + 1;
}

static void count_release(void *ctx, void *memory)
{
	struct piece *piece = memory;

	if (!memory)
		return;
	piece--;
	piece->next->prev = piece->prev;
	piece->prev->next = piece->next;
	((struct daemon *)ctx)->n_alive--;
	free(piece);
}

static void set_alarm(void *ctx, uint64_t at_ns)
{
	((struct daemon *)ctx)->alarm_ns = at_ns;
}

static int submit(void *ctx, struct limits_user *user, bool waits, void (*work)(void *arg),
		  void (*done)(void *arg), void *arg)
{
	struct daemon *daemon = ctx;

	(void)user;
	(void)waits;
	if (daemon->n_tasks == TASKS_MAX - 1)
		return -EAGAIN;
	daemon->tasks[daemon->n_tasks++] = (struct task){work, done, arg, false};
	return 0;
}

static void nothing(void *arg)
{
	(void)arg;
}

static void turn(void *arg)
{
	struct daemon *daemon = arg;
	struct fair_queue *queue = &daemon->service.queue;
	struct fair_work *work = fair_queue_take(queue);

	daemon->has_turn = false;
	if (work)
		work->run(work);
	rpc_settle(&daemon->rpc);
	if (!fair_queue_is_empty(queue))
		queue->wake(daemon);
}

/* Another turn comes at random, like the end of a task. */
static void wake(void *ctx)
{
	struct daemon *daemon = ctx;

	if (daemon->has_turn)
		return;
	if (daemon->n_tasks == TASKS_MAX)
		abort();
	daemon->has_turn = true;
	daemon->tasks[daemon->n_tasks++] = (struct task){nothing, turn, daemon, false};
}

static bool withdraw(void *ctx, struct limits_user *user, void *arg)
{
	struct daemon *daemon = ctx;

	(void)user;
	for (unsigned i = 0; i < daemon->n_tasks; i++) {
		if (daemon->tasks[i].arg != arg || daemon->tasks[i].worked)
			continue;
		memmove(&daemon->tasks[i], &daemon->tasks[i + 1],
			(--daemon->n_tasks - i) * sizeof(daemon->tasks[0]));
		return true;
	}
	return false;
}

/* ---- its life ---- */

static int open_file(void *ctx, const char *name)
{
	struct daemon *daemon = ctx;
	unsigned i = 0;

	while (i < daemon->n_files && strcmp(daemon->files[i].name, name) != 0)
		i++;
	if (i == FILES_MAX)
		abort();
	if (i == daemon->n_files)
		daemon->files[daemon->n_files++] = (struct file){name, memfd_create(name, MFD_CLOEXEC)};
	return dup(daemon->files[i].fd);
}

static int no_chance(void *to, size_t bytes)
{
	static uint64_t state;
	uint8_t *at = to;

	/* Nobody guesses here. */
	for (size_t i = 0; i < bytes; i++)
		at[i] = (uint8_t)((state += 0x9e3779b97f4a7c15) >> 56);
	return 0;
}

static void say(void *ctx, bool is_loss, const char *line)
{
	struct daemon *daemon = ctx;

	if (is_loss && !strstr(line, "that were written when it ended"))
		snprintf(daemon->wrong, sizeof(daemon->wrong), "recovery says: %.200s", line);
}

static void *begin_memory(struct daemon *daemon, const struct npumem_geometry *geometry,
			  struct store_report *found)
{
	size_t bytes = (device_memory_bytes(geometry) + 63) & ~(size_t)63;
	struct store_options to = {.open = open_file,
				   .ctx = daemon,
				   .geometry = geometry,
				   .geometry_bytes = sizeof(*geometry),
				   .geometry_text = "of the random test",
				   .memory_bytes = bytes,
				   .boot_id = "0123456789abcdef0123456789abcdef",
				   .heap = &daemon->heap};
	char error[STORE_ERROR_BYTES];

	daemon->memory_bytes = bytes;
	if (daemon->options.keeps_state) {
		if (store_open(&to, &daemon->store, found, error)) {
			fprintf(stderr, "%s\n", error);
			abort();
		}
		return store_memory(daemon->store);
	}
	if (daemon->options.memory)
		return daemon->options.memory;
	daemon->own_memory = aligned_alloc(64, bytes);
	if (!daemon->own_memory)
		abort();
	return memset(daemon->own_memory, 0, bytes);
}

static void recover_state(struct daemon *daemon, const struct store_report *found)
{
	struct persist *persist = &daemon->service.persist;
	struct npumem_error error;

	npumem_error_clear(&error);
	persist->store = daemon->store;
	persist->resume_seconds = 3600;
	persist->random = no_chance;
	if (persist_begin(&daemon->service, &error) || rpc_recover(&daemon->rpc, found, say, daemon))
		abort();
}

/* Without memory for it nothing is left behind. */
static bool make(struct daemon *daemon, const struct device_options *options)
{
	if (device_new(options, &daemon->heap, daemon->memory, &daemon->device))
		return false;
	if (!service_init(&daemon->service, daemon->device, &daemon->heap, 500, 4711))
		return true;
	device_free(daemon->device);
	return false;
}

static void unmake(struct daemon *daemon)
{
	rpc_deinit(&daemon->rpc);
	service_deinit(&daemon->service);
	device_free(daemon->device);
}

static void drop(struct daemon *daemon)
{
	for (unsigned i = 0; i < daemon->n_files; i++)
		close(daemon->files[i].fd);
	free(daemon->own_memory);
	free(daemon);
}

/* From nothing, or from its state. False: it cannot, and nothing of it is there. */
static bool begin(struct daemon *daemon)
{
	static struct store_report found;
	struct device_options device = {
		.geometry = {.n_npus = daemon->options.n_npus,
			     .npu_bytes = daemon->options.npu_bytes,
			     .n_banks = 8,
			     .eu_bytes = 128},
		.allow_unchecked = true,
		.isa = (enum isa)daemon->options.isa,
		.pack_bytes = PACK_BYTES,
	};

	daemon->alarm_ns = UINT64_MAX;
	daemon->pieces.next = daemon->pieces.prev = &daemon->pieces;
	daemon->heap =
		daemon->options.heap ? *daemon->options.heap : (struct heap){count_alloc, count_release, daemon};
	daemon->memory = begin_memory(daemon, &device.geometry, &found);
	if (!make(daemon, &device))
		return false;
	rpc_init(&daemon->rpc, &daemon->service, &daemon->heap);
	daemon->rpc.now_ns = daemon->service.events.now_ns = now_ns;
	daemon->rpc.set_alarm = set_alarm;
	daemon->rpc.ctx = daemon;
	/* What is refused for the time or the users that there are is not the same in another order. */
	daemon->service.limits.stop_percent = 100;
	daemon->service.limits.any_pins = true;
	if (daemon->options.threads) {
		daemon->rpc.executor =
			(struct rpc_executor){.submit = submit, .withdraw = withdraw, .ctx = daemon};
		daemon->service.queue.wake = wake;
		daemon->service.queue.ctx = daemon;
	}
	if (daemon->store)
		recover_state(daemon, &found);
	if (!daemon->options.go_on || daemon->options.go_on(daemon->options.ctx, &daemon->rpc))
		return true;
	unmake(daemon);
	return false;
}

struct daemon *daemon_new(const struct daemon_options *options)
{
	struct daemon *daemon = calloc(1, sizeof(*daemon));

	if (!daemon)
		abort();
	daemon->options = *options;
	clock_ns = UINT64_C(1000000000);
	if (begin(daemon))
		return daemon;
	drop(daemon);
	return NULL;
}

void daemon_crash(struct daemon *daemon)
{
	store_close(daemon->store, false);
	while (daemon->pieces.next != &daemon->pieces)
		count_release(daemon, daemon->pieces.next + 1);
	memset(&daemon->service, 0, sizeof(daemon->service));
	memset(&daemon->rpc, 0, sizeof(daemon->rpc));
	for (unsigned i = 0; i < PEERS_MAX; i++)
		daemon->peers[i] = (struct peer){.is_drained = !daemon->peers[i].is_open};
	daemon->n_tasks = 0;
	daemon->has_turn = false;
	if (!begin(daemon))
		abort();
}

/* ---- clients ---- */

static void take(struct peer *peer, struct buffer *buffer)
{
	struct daemon *daemon = peer->daemon;
	size_t at = 0, header, body;

	while (at < buffer->used) {
		if (frame_parse(buffer->bytes + at, buffer->used - at, FRAME_BYTES_MAX, &header, &body) !=
		    FRAME_COMPLETE) {
			snprintf(daemon->wrong, sizeof(daemon->wrong), "a reply that is no frame");
			break;
		}
		daemon->options.answered(daemon->options.ctx, peer->number, buffer->bytes + at + header, body);
		at += header + body;
	}
	buffer->used = 0;
}

static void deliver(void *ctx, struct buffer *reply)
{
	struct peer *peer = ctx;

	if (peer->rpc.is_closing)
		snprintf(peer->daemon->wrong, sizeof(peer->daemon->wrong), "a reply to who is gone");
	take(peer, reply);
}

static void drained(void *ctx)
{
	struct peer *peer = ctx;

	if (peer->is_drained || !peer->rpc.is_closing)
		snprintf(peer->daemon->wrong, sizeof(peer->daemon->wrong), "drained twice, or not at the end");
	peer->is_drained = true;
	session_deinit(&peer->session);
}

int daemon_open(struct daemon *daemon, unsigned peer, uint32_t uid)
{
	struct peer *to = &daemon->peers[peer];
	struct npumem_error error;
	int status;

	npumem_error_clear(&error);
	*to = (struct peer){.daemon = daemon, .number = peer};
	status = session_init(&to->session, &daemon->service, uid, 0, &error);
	if (status && !daemon->options.heap)
		abort();
	to->is_open = !status;
	to->rpc = (struct rpc_peer){.session = &to->session, .deliver = deliver, .drained = drained, .ctx = to};
	return status;
}

int daemon_send(struct daemon *daemon, unsigned peer, const uint8_t *message, size_t bytes)
{
	int status = rpc_receive(&daemon->rpc, &daemon->peers[peer].rpc, message, bytes);

	if (status && !daemon->options.heap)
		snprintf(daemon->wrong, sizeof(daemon->wrong), "rpc_receive failed");
	return status;
}

void daemon_close(struct daemon *daemon, unsigned peer)
{
	daemon->peers[peer].is_open = false;
	rpc_peer_close(&daemon->rpc, &daemon->peers[peer].rpc);
}

bool daemon_is_drained(const struct daemon *daemon, unsigned peer)
{
	return daemon->peers[peer].is_drained;
}

struct rpc *daemon_rpc(struct daemon *daemon)
{
	return &daemon->rpc;
}

struct session *daemon_session(struct daemon *daemon, unsigned peer)
{
	return daemon->peers[peer].is_open ? &daemon->peers[peer].session : NULL;
}

const uint8_t *daemon_memory(const struct daemon *daemon, size_t *bytes)
{
	*bytes = daemon->memory_bytes;
	return daemon->memory;
}

/* ---- threads and time ---- */

unsigned daemon_tasks(const struct daemon *daemon)
{
	return daemon->n_tasks;
}

void daemon_work(struct daemon *daemon, unsigned i)
{
	if (!daemon->tasks[i].worked)
		daemon->tasks[i].work(daemon->tasks[i].arg);
	daemon->tasks[i].worked = true;
}

void daemon_done(struct daemon *daemon, unsigned i)
{
	struct task task;

	daemon_work(daemon, i);
	task = daemon->tasks[i];
	daemon->n_tasks--;
	memmove(&daemon->tasks[i], &daemon->tasks[i + 1], (daemon->n_tasks - i) * sizeof(task));
	task.done(task.arg);
}

uint64_t daemon_now_ns(const struct daemon *daemon)
{
	(void)daemon;
	return clock_ns;
}

void daemon_clock(struct daemon *daemon, uint64_t at_ns)
{
	/* An alarm for nothing may come again at once. */
	enum { TICKS_MAX = 10000 };

	for (unsigned i = 0; i < TICKS_MAX && daemon->alarm_ns <= at_ns; i++) {
		if (daemon->alarm_ns > clock_ns)
			clock_ns = daemon->alarm_ns;
		daemon->alarm_ns = UINT64_MAX;
		rpc_tick(&daemon->rpc);
	}
	if (daemon->alarm_ns <= at_ns)
		snprintf(daemon->wrong, sizeof(daemon->wrong), "an alarm that never ends");
	clock_ns = at_ns;
}

/* ---- what must hold ---- */

static const char *check_charges(struct daemon *daemon)
{
	struct limits_table *limits = &daemon->service.limits;
	uint64_t sums[LIMITS_N] = {0}, n_open = 0;

	for (const struct limits_user *user = limits->users; user; user = user->next)
		for (unsigned key = 0; key < LIMITS_N; key++)
			sums[key] += user->now[key];
	for (unsigned i = 0; i < PEERS_MAX; i++)
		n_open += daemon->peers[i].is_open;
	for (unsigned key = 0; key < LIMITS_N; key++) {
		uint64_t due = key == LIMITS_SESSIONS ? n_open : 0;

		if (sums[key] != limits->now[key])
			snprintf(daemon->wrong, sizeof(daemon->wrong), "%s: %llu of all uids, %llu in all",
				 limits_name(key), (unsigned long long)sums[key],
				 (unsigned long long)limits->now[key]);
		if (key != LIMITS_TENSORS && key != LIMITS_VIEWS && key != LIMITS_DEVICE_BYTES &&
		    key != LIMITS_HOST_BYTES && key != LIMITS_FOLLOWERS && sums[key] != due)
			snprintf(daemon->wrong, sizeof(daemon->wrong), "%s: %llu are charged, not %llu",
				 limits_name(key), (unsigned long long)sums[key], (unsigned long long)due);
	}
	return daemon->wrong[0] ? daemon->wrong : NULL;
}

/* What is charged for tensors is what they take. */
static const char *check_tensors(struct daemon *daemon)
{
	uint64_t n = 0, n_views = 0, bytes = 0, host = 0;

	for (struct tensor *tensor = device_next(daemon->device, NULL); tensor;
	     tensor = device_next(daemon->device, tensor)) {
		n++;
		n_views += tensor->base != NULL;
		host += record_of(tensor)->host_bytes;
		if (!tensor->base)
			bytes += (uint64_t)(tensor_place(tensor).bytes_per_npu * daemon->options.n_npus);
	}
	if (n != daemon->service.limits.now[LIMITS_TENSORS] ||
	    n_views != daemon->service.limits.now[LIMITS_VIEWS] ||
	    bytes != daemon->service.limits.now[LIMITS_DEVICE_BYTES] ||
	    host != daemon->service.limits.now[LIMITS_HOST_BYTES])
		return "tensors are not charged as what there is";
	return NULL;
}

const char *daemon_check(struct daemon *daemon)
{
	const char *wrong = device_check(daemon->device);

	if (!wrong && daemon->wrong[0])
		wrong = daemon->wrong;
	if (!wrong && daemon->service.scheduler.first)
		wrong = "something is still in the order of operations";
	if (!wrong)
		wrong = check_charges(daemon);
	return wrong ? wrong : check_tensors(daemon);
}

const char *daemon_free(struct daemon *daemon)
{
	static char text[256];
	const char *wrong = daemon_check(daemon);

	snprintf(text, sizeof(text), "%s", wrong ? wrong : "");
	if (!wrong && !daemon->options.memory && device_next(daemon->device, NULL))
		snprintf(text, sizeof(text), "tensors are left at the end");
	if (!text[0] && daemon->service.limits.now[LIMITS_FOLLOWERS])
		snprintf(text, sizeof(text), "a follower of events is charged who is gone");
	unmake(daemon);
	if (store_close(daemon->store, true))
		snprintf(text, sizeof(text), "its state cannot be closed");
	if (!text[0] && daemon->n_alive)
		snprintf(text, sizeof(text), "%zu pieces of host memory are left", daemon->n_alive);
	drop(daemon);
	return text[0] ? text : NULL;
}
