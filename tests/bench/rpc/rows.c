/* A contender owns its connection and its load. Tensors are unnamed, and go with the connection. */
#include "tests/bench/rpc/rows.h"

#include <npumem/client.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/bench/rpc/requests.h"

enum {
	SMALL_W = 16,
	BULK_BYTES = 1 << 20,
	CHANNELS = 8,
	SPIN_NS = 50000,
	WARM_UP = 20,
	LIBRARY_BATCH = 16,
	TENSORS_MAX = 128
};

/* ---- the parts of which rows are made ---- */

static struct contender *add(struct contender *contenders, const char *name, const struct peer *peer)
{
	struct contender *contender = contenders;
	while (contender->peer)
		contender++;
	if (!peer->pid)
		return NULL;
	*contender = (struct contender){.name = name, .peer = peer, .fd = -1};
	return contender;
}

static struct contender *add_daemon(struct contender *contenders, const char *name, const struct peer *peer,
				    int64_t w)
{
	struct contender *contender = add(contenders, name, peer);
	contender->fd = peer_connect(peer);
	contender->handle = w ? requests_tensor(contender->fd, w, 0) : 0;
	contender->load.n_batches = 1;
	return contender;
}

/* Both kinds, of what the first contender sends. */
static void add_floors(const struct servers *servers, struct contender *contenders)
{
	for (unsigned flat = 2; flat-- > 0;) {
		struct contender *floor =
			add(contenders, flat ? "floor" : "floor, same messages", &servers->floor);
		if (!floor)
			return;
		floor->fd = peer_connect(floor->peer);
		requests_floor(&contenders->load, contenders->fd, flat, &floor->load, floor->fd);
		spin_init(&floor->load.spin, 0);
	}
}

/* What redis answers without doing anything. */
static void add_redis(const struct servers *servers, struct contender *contenders, unsigned n)
{
	static const char ping[] = "PING\r\n", pong[] = "+PONG\r\n";
	struct contender *redis = add(contenders, "redis PING", &servers->redis);
	if (!redis)
		return;
	redis->fd = peer_connect(redis->peer);
	redis->load = (struct load){.n_batches = 1, .counts = n, .reply_bytes = sizeof(pong) - 1};
	struct batch *batch = &redis->load.batches[0];
	batch->n_frames = n;
	batch->n_bytes = n * (sizeof(ping) - 1);
	batch->bytes = malloc(batch->n_bytes);
	for (unsigned i = 0; batch->bytes && i < n; i++)
		memcpy(batch->bytes + i * (sizeof(ping) - 1), ping, sizeof(ping) - 1);
	if (!batch->bytes)
		peer_die("no memory");
}

/* Pipelined, of so many tensors by turns. */
static void fills(struct contender *contender, unsigned n_tensors, unsigned n)
{
	uint64_t handles[TENSORS_MAX] = {contender->handle};
	for (unsigned i = 1; i < n_tensors; i++)
		handles[i] = requests_tensor(contender->fd, SMALL_W, 0);
	for (unsigned i = 0; i < n; i++)
		requests_fill(&contender->load.batches[0], handles[i % n_tensors]);
	contender->load.counts = n;
}

/* ---- a stream socket that moves the same bytes ---- */

struct stream {
	size_t request_bytes;
	struct batch reply;
};

static void move_bytes(int fd, void *context)
{
	const struct stream *stream = context;
	uint8_t *bytes = malloc(stream->request_bytes);
	for (size_t have = 0; bytes;) {
		ssize_t n = read(fd, bytes + have, stream->request_bytes - have);
		if (n <= 0)
			return;
		have += (size_t)n;
		if (have < stream->request_bytes)
			continue;
		have = 0;
		for (size_t sent = 0; sent < stream->reply.n_bytes; sent += (size_t)n) {
			n = write(fd, stream->reply.bytes + sent, stream->reply.n_bytes - sent);
			if (n <= 0)
				return;
		}
	}
}

static void add_stream(struct contender *contenders)
{
	struct contender *first = contenders, *second = contenders + 1;
	const struct batch *batch = &first->load.batches[0];
	struct stream stream = {.request_bytes = batch->n_bytes / batch->n_frames};
	struct batch frame = {batch->bytes, stream.request_bytes, 1};
	size_t n_bytes;
	uint8_t *message = load_ask(first->fd, &frame, &n_bytes);
	load_add(&stream.reply, message, n_bytes);
	free(message);
	*second = (struct contender){.name = "stream socket", .peer = &second->own, .load = first->load};
	load_copy(batch, &second->load.batches[0]);
	second->fd = peer_fork(&second->own, move_bytes, &stream);
	free(stream.reply.bytes);
}

/* ---- rows ---- */

static void make_fills(const struct row *row, const struct servers *servers, struct contender *contenders)
{
	fills(add_daemon(contenders, "daemon", &servers->daemon, SMALL_W), 1, row->n);
	add_floors(servers, contenders);
	add_redis(servers, contenders, row->n);
}

static void make_allocs(const struct row *row, const struct servers *servers, struct contender *contenders)
{
	struct contender *daemon = add_daemon(contenders, "daemon", &servers->daemon, 0);
	enum { HANDLE = 0x5a5a5a5a };
	for (unsigned i = 0; i < row->n; i++) {
		requests_alloc(&daemon->load.batches[0], SMALL_W);
		requests_free(&daemon->load.batches[1], HANDLE);
	}
	daemon->load.n_batches = 2;
	daemon->load.counts = 2 * row->n;
	daemon->load.handle_off = requests_handle_off(&daemon->load.batches[1], HANDLE);
	add_floors(servers, contenders);
}

static void compare_submit(const struct servers *servers, struct contender *contenders, unsigned n_tensors,
			   unsigned n)
{
	struct contender *submit = add_daemon(contenders, "one submit", &servers->daemon, SMALL_W);
	uint64_t handles[TENSORS_MAX] = {submit->handle};
	for (unsigned i = 1; i < n_tensors; i++)
		handles[i] = requests_tensor(submit->fd, SMALL_W, 0);
	requests_submit(&submit->load.batches[0], handles, n_tensors, n);
	submit->load.counts = n;
	fills(add_daemon(contenders, "pipelined", &servers->daemon, SMALL_W), n_tensors, n);
}

static void make_submit(const struct row *row, const struct servers *servers, struct contender *contenders)
{
	compare_submit(servers, contenders, 1, row->n);
}

static void make_submit_many(const struct row *row, const struct servers *servers, struct contender *contenders)
{
	compare_submit(servers, contenders, row->n, row->n);
}

static void make_writes(const struct row *row, const struct servers *servers, struct contender *contenders)
{
	struct contender *daemon = add_daemon(contenders, "daemon", &servers->daemon, BULK_BYTES / CHANNELS);
	for (unsigned i = 0; i < row->n; i++)
		requests_write(&daemon->load.batches[0], daemon->handle, BULK_BYTES);
	daemon->load.counts = row->n;
	add_stream(contenders);
}

static void make_reads(const struct row *row, const struct servers *servers, struct contender *contenders)
{
	struct contender *daemon = add_daemon(contenders, "daemon", &servers->daemon, BULK_BYTES / CHANNELS);
	struct load written = {.n_batches = 1, .counts = 1};
	requests_write(&written.batches[0], daemon->handle, BULK_BYTES);
	load_repeat(&written, daemon->fd, 1);
	load_free(&written);
	for (unsigned i = 0; i < row->n; i++)
		requests_read(&daemon->load.batches[0], daemon->handle, BULK_BYTES);
	daemon->load.counts = row->n;
	add_stream(contenders);
}

/* Of the floor nobody spins. */
static void make_spinning(const struct row *row, const struct servers *servers, struct contender *contenders)
{
	const struct peer *peer = servers->spinning.pid ? &servers->spinning : &servers->daemon;
	struct contender *daemon = add_daemon(contenders, "daemon", peer, SMALL_W);
	fills(daemon, 1, row->n);
	spin_init(&daemon->load.spin, SPIN_NS);
	add_floors(servers, contenders);
	fills(add_daemon(contenders, "sleeping", &servers->daemon, SMALL_W), 1, row->n);
}

static void make_library(const struct row *row, const struct servers *servers, struct contender *contenders)
{
	struct npumem_error error;
	struct contender *daemon = add_daemon(contenders, "daemon", &servers->daemon, SMALL_W);
	fills(daemon, 1, row->n);
	add_floors(servers, contenders);
	if (npumem_open_fd(daemon->fd, NULL, &daemon->library, &error))
		peer_die(error.message);
}

const struct row rows[] = {
	{"fill, one at a time", PEER_SAME, 0.95, 1.2, make_fills, 1, false},
	{"fill, 32 in flight", PEER_SAME, 0.80, 0, make_fills, 32, false},
	{"fill, 128 in flight", PEER_SAME, 0, 1.2, make_fills, 128, false},
	{"alloc and free, one at a time", PEER_SAME, 0.95, 0, make_allocs, 1, false},
	{"alloc and free, 32 in flight", PEER_SAME, 0.80, 0, make_allocs, 32, false},
	{"a fill in a submit of 100, one tensor", PEER_SAME, 2.0, 0.5, make_submit, 100, false},
	{"a fill in a submit of 100, 100 tensors", PEER_SAME, 2.0, 0.5, make_submit_many, 100, false},
	{"inline write of 1 MiB", PEER_SAME, 0.90, 0, make_writes, 1, false},
	{"inline write of 1 MiB, 4 in flight", PEER_SAME, 0.90, 0, make_writes, 4, false},
	{"inline read of 1 MiB", PEER_SAME, 0.90, 0, make_reads, 1, false},
	{"inline read of 1 MiB, 4 in flight", PEER_SAME, 0.90, 0, make_reads, 4, false},
	{"inline write of 1 MiB, 4 in flight", PEER_SPLIT, 0, 0, make_writes, 4, false},
	{"inline read of 1 MiB, 4 in flight", PEER_SPLIT, 0, 0, make_reads, 4, false},
	{"the library's blocking fill", PEER_SAME, 0, 0, make_library, 1, false},
	{"the library's blocking fill", PEER_FREE, 0, 0, make_library, 1, false},
	{"fill, one at a time", PEER_FREE, 0, 0, make_fills, 1, false},
	{"fill, 32 in flight", PEER_FREE, 0, 0, make_fills, 32, false},
	{"fill, one at a time, spinning", PEER_SPLIT, 5.0, 0, make_spinning, 1, false},
	{"fill, one at a time, spinning", PEER_FREE, 0, 0, make_spinning, 1, false},
	{"fill, one at a time, spinning, busy neighbour", PEER_FREE, 0.95, 0, make_spinning, 1, true},
};
const unsigned n_rows = sizeof(rows) / sizeof(rows[0]);

/* ---- measuring ---- */

static void measure_library(struct contender *contender, double seconds, struct sample *sample)
{
	struct npumem_error error;
	uint64_t cpu = peer_cpu_ns(contender->peer), from = peer_now_ns(), now, n = 0;
	do {
		for (unsigned i = 0; i < LIBRARY_BATCH; i++, n++)
			if (npumem_fill(contender->library, contender->handle, 1, &error))
				peer_die(error.message);
		now = peer_now_ns();
	} while (now < from + (uint64_t)(seconds * 1e9));
	sample->us = (double)(now - from) / 1e3 / (double)n;
	sample->cpu_us = (double)(peer_cpu_ns(contender->peer) - cpu) / 1e3 / (double)n;
}

void rows_begin(const struct row *row, const struct servers *servers, struct contender *contenders)
{
	memset(contenders, 0, ROWS_CONTENDERS_MAX * sizeof(*contenders));
	row->make(row, servers, contenders);
	for (unsigned i = 0; i < ROWS_CONTENDERS_MAX && contenders[i].peer; i++) {
		peer_pin(contenders[i].peer, row->pin);
		load_repeat(&contenders[i].load, contenders[i].fd, WARM_UP);
	}
}

void rows_measure(struct contender *contender, double seconds, struct sample *sample)
{
	if (contender->library)
		measure_library(contender, seconds, sample);
	else
		load_run(&contender->load, contender->fd, contender->peer, seconds, sample);
}

void rows_end(struct contender *contenders)
{
	for (unsigned i = 0; i < ROWS_CONTENDERS_MAX && contenders[i].peer; i++) {
		if (contenders[i].library)
			npumem_close(contenders[i].library);
		else
			close(contenders[i].fd);
		load_free(&contenders[i].load);
		peer_end(&contenders[i].own);
	}
}
