/* Requests to a daemon that keeps its state, in memory (/dev/shm) and on the disk, beside one that keeps nothing;
 * and a restart of a device of 1 GiB with 10 to 100,000 tensors, from the start of the process to its first
 * answer, and what a tensor takes of the disk and of the daemon's memory; and with --durable a fill of one client
 * beside an fdatasync of a file there, and fills of 32 clients beside those of one: bench_state [options] [part of
 * a row's name ...].
 *
 * Sessions have a token, ids rise, and each request says which answers have come, as the library does. The three
 * daemons take turns in short slices; told are medians of the ratios of neighbouring ones. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "proto/frame.h"
#include "proto/npumem.pb-c.h"
#include "tests/bench/support/bench.h"
#include "tests/bench/support/peer.h"
#include "tests/bench/support/remote.h"
#include "tests/bench/support/scratch.h"

enum { SIDES = 3, FRAME_MAX = 256, REPLY_MAX = 64 << 10, FLIGHT_MAX = 32, MANY = 100000 };

#define FIRST_ID ((uint64_t)1 << 28) /* five bytes, as all that follow */

struct frame {
	uint8_t bytes[FRAME_MAX];
	size_t n, id_at, below_at, handle_at;
};

struct side {
	const char *name;
	struct peer peer;
	char state[SCRATCH_PATH_BYTES];
	bool is_durable;
	int fd;
	uint64_t id;
	size_t told_at; /* of an allocation's handle in the reply */
	struct frame fill, alloc, free;
	uint8_t replies[REPLY_MAX];
};

static struct bench bench = {.name = "state", .rounds = 31, .seconds = 0.03};

/* ---- frames ---- */

static size_t find(const uint8_t *bytes, size_t n, const void *what, size_t n_what)
{
	for (size_t i = 0; i + n_what <= n; i++)
		if (!memcmp(bytes + i, what, n_what))
			return i;
	peer_die("a frame without its handle");
}

static void put_varint(uint8_t *to, uint64_t value)
{
	for (unsigned i = 0; i < 4; i++, value >>= 7)
		to[i] = (uint8_t)(value | 0x80);
	to[4] = (uint8_t)value;
}

static void pack(struct frame *frame, Npumem__V1__Request *request, const uint64_t *handle)
{
	size_t n, header;
	request->id = request->answered_below = FIRST_ID;
	n = npumem__v1__request__get_packed_size(request);
	if (n > FRAME_MAX - 10)
		peer_die("a long frame");
	header = n < 128 ? 1 : 2;
	frame->bytes[0] = (uint8_t)(header == 1 ? n : n | 0x80);
	frame->bytes[1] = (uint8_t)(n >> 7);
	npumem__v1__request__pack(request, frame->bytes + header);
	frame->n = header + n;
	frame->id_at = header + 1;
	frame->below_at = frame->n - 5;
	frame->handle_at = handle ? find(frame->bytes, frame->n, handle, sizeof(*handle)) : 0;
}

static void pack_alloc(struct frame *frame, const char *name)
{
	Npumem__V1__Request request = NPUMEM__V1__REQUEST__INIT;
	Npumem__V1__AllocRequest alloc = NPUMEM__V1__ALLOC_REQUEST__INIT;
	Npumem__V1__Allocation allocation = NPUMEM__V1__ALLOCATION__INIT, *allocations = &allocation;
	Npumem__V1__Spec spec = NPUMEM__V1__SPEC__INIT;
	Npumem__V1__Dims shape = {PROTOBUF_C_MESSAGE_INIT(&npumem__v1__dims__descriptor), 1, 8, 1, 16};
	spec.dtype = NPUMEM__V1__DTYPE__INT8;
	spec.shape = &shape;
	allocation.spec = &spec;
	allocation.name = (char *)(uintptr_t)name;
	alloc.n_tensors = 1;
	alloc.tensors = &allocations;
	request.call_case = NPUMEM__V1__REQUEST__CALL_ALLOC;
	request.alloc = &alloc;
	pack(frame, &request, NULL);
}

static void pack_fill(struct frame *frame, uint64_t handle)
{
	Npumem__V1__Request request = NPUMEM__V1__REQUEST__INIT;
	Npumem__V1__FillRequest fill = NPUMEM__V1__FILL_REQUEST__INIT;
	Npumem__V1__Ref ref = NPUMEM__V1__REF__INIT;
	ref.handle = handle;
	fill.tensor = &ref;
	fill.value_case = NPUMEM__V1__FILL_REQUEST__VALUE_INTEGER;
	fill.integer = 1;
	request.call_case = NPUMEM__V1__REQUEST__CALL_FILL;
	request.fill = &fill;
	pack(frame, &request, &handle);
}

static void pack_free(struct frame *frame)
{
	Npumem__V1__Request request = NPUMEM__V1__REQUEST__INIT;
	Npumem__V1__FreeRequest free = NPUMEM__V1__FREE_REQUEST__INIT;
	Npumem__V1__Ref ref = NPUMEM__V1__REF__INIT, *refs = &ref;
	uint64_t handle = UINT64_C(0x1122334455667788);
	ref.handle = handle;
	free.n_tensors = 1;
	free.tensors = &refs;
	request.call_case = NPUMEM__V1__REQUEST__CALL_FREE;
	request.free = &free;
	pack(frame, &request, &handle);
}

/* ---- talking ---- */

static size_t append(struct side *side, uint8_t *to, struct frame *frame, uint64_t below)
{
	put_varint(frame->bytes + frame->id_at, ++side->id);
	put_varint(frame->bytes + frame->below_at, below);
	memcpy(to, frame->bytes, frame->n);
	return frame->n;
}

/* Reads so many replies; returns the length of the first. */
static size_t receive(struct side *side, unsigned n_replies)
{
	size_t have = 0, done = 0, first = 0, header, message;
	while (n_replies) {
		ssize_t n;
		while (n_replies && frame_parse(side->replies + done, have - done, FRAME_BYTES_MAX, &header,
						&message) == FRAME_COMPLETE) {
			done += header + message;
			first = first ? first : done;
			n_replies--;
		}
		if (!n_replies)
			return first;
		n = read(side->fd, side->replies + have, REPLY_MAX - have);
		if (n <= 0)
			peer_die("a reply");
		have += (size_t)n;
	}
	return first;
}

static void send_all(struct side *side, const uint8_t *bytes, size_t n)
{
	if (write(side->fd, bytes, n) != (ssize_t)n)
		peer_die("a request");
}

static Npumem__V1__Response *answer(struct side *side, size_t n)
{
	size_t header, message;
	Npumem__V1__Response *response;
	if (frame_parse(side->replies, n, FRAME_BYTES_MAX, &header, &message) != FRAME_COMPLETE)
		peer_die("a reply");
	response = npumem__v1__response__unpack(NULL, message, side->replies + header);
	if (!response || response->status)
		peer_die(response ? response->message : "a reply");
	return response;
}

/* An allocation; where its handle is in the reply. */
static uint64_t allocate(struct side *side, struct frame *frame)
{
	uint8_t bytes[FRAME_MAX];
	Npumem__V1__Response *response;
	uint64_t handle;
	size_t n;
	send_all(side, bytes, append(side, bytes, frame, side->id));
	n = receive(side, 1);
	response = answer(side, n);
	handle = response->allocated->tensors[0]->handle;
	npumem__v1__response__free_unpacked(response, NULL);
	side->told_at = find(side->replies, n, &handle, sizeof(handle));
	return handle;
}

static void resume(struct side *side)
{
	const uint8_t ask[] = {5, 0x08, 1, 0xca, 0x03, 0}; /* id 1, resume {} */
	send_all(side, ask, sizeof(ask));
	npumem__v1__response__free_unpacked(answer(side, receive(side, 1)), NULL);
}

/* ---- loads ---- */

static void send_fill(struct side *side)
{
	uint8_t bytes[FRAME_MAX];
	size_t n = append(side, bytes, &side->fill, side->id + 1);
	send_all(side, bytes, n);
}

static unsigned fill_one(struct side *side)
{
	uint8_t bytes[FRAME_MAX];
	send_all(side, bytes, append(side, bytes, &side->fill, side->id + 1));
	receive(side, 1);
	return 1;
}

static unsigned fill_many(struct side *side)
{
	uint8_t bytes[FLIGHT_MAX * FRAME_MAX];
	uint64_t below = side->id + 1;
	size_t n = 0;
	for (unsigned i = 0; i < FLIGHT_MAX; i++)
		n += append(side, bytes + n, &side->fill, below);
	send_all(side, bytes, n);
	receive(side, FLIGHT_MAX);
	return FLIGHT_MAX;
}

static unsigned alloc_and_free(struct side *side)
{
	uint8_t bytes[FRAME_MAX];
	send_all(side, bytes, append(side, bytes, &side->alloc, side->id + 1));
	receive(side, 1);
	memcpy(side->free.bytes + side->free.handle_at, side->replies + side->told_at, sizeof(uint64_t));
	send_all(side, bytes, append(side, bytes, &side->free, side->id + 1));
	receive(side, 1);
	return 1;
}

struct sample {
	double us, cpu_us;
};

static void measure(struct side *side, unsigned (*load)(struct side *), struct sample *sample)
{
	uint64_t from, cpu, now;
	double n = 0;
	load(side);
	from = peer_now_ns();
	cpu = peer_cpu_ns(&side->peer);
	do {
		n += load(side);
		now = peer_now_ns();
	} while ((double)(now - from) < bench.seconds * 1e9);
	sample->us = (double)(now - from) / n / 1e3;
	sample->cpu_us = (double)(peer_cpu_ns(&side->peer) - cpu) / n / 1e3;
}

static void tell(const char *what, const struct side *side, const double *own, const double *bare)
{
	double ratios[BENCH_ROUNDS_MAX];
	char name[BENCH_NAME_BYTES];
	for (unsigned r = 0; r < bench.rounds; r++)
		ratios[r] = own[r] / bare[r];
	snprintf(name, sizeof(name), "%s, %s", what, side->name);
	const struct bench_row row = {name,
				      bench_median(own, bench.rounds),
				      "us",
				      "without",
				      bench_median(bare, bench.rounds),
				      bench_median(ratios, bench.rounds),
				      BENCH_RATIO_AT_MOST,
				      1.15};
	bench_tell(&bench, &row);
}

static void run(struct side *sides, const char *what, unsigned (*load)(struct side *))
{
	static double us[SIDES][BENCH_ROUNDS_MAX], cpu[SIDES][BENCH_ROUNDS_MAX];
	char cpu_name[BENCH_NAME_BYTES];
	if (!bench_wanted(&bench, what))
		return;
	for (unsigned r = 0; r < bench.rounds; r++)
		for (unsigned i = 0; i < SIDES; i++) {
			struct sample sample;
			peer_pin(&sides[i].peer, PEER_SAME);
			measure(&sides[i], load, &sample);
			us[i][r] = sample.us;
			cpu[i][r] = sample.cpu_us;
		}
	snprintf(cpu_name, sizeof(cpu_name), "%s, processor time", what);
	for (unsigned i = 1; i < SIDES; i++) {
		tell(what, &sides[i], us[i], us[0]);
		tell(cpu_name, &sides[i], cpu[i], cpu[0]);
	}
}

/* ---- daemons ---- */

static void start(struct side *side, const char *name, const char *npu_bytes)
{
	char path[SCRATCH_PATH_BYTES];
	const char *arguments[] = {remote_program(),
				   "--socket",
				   scratch_path(name, path),
				   "--log",
				   "warning",
				   "--npu-bytes",
				   npu_bytes,
				   side->state[0] ? "--state-dir" : NULL,
				   side->state,
				   side->is_durable ? "--durable" : NULL,
				   NULL};
	peer_start(&side->peer, arguments, path, NULL, NULL);
	side->fd = peer_connect(&side->peer);
	side->id = FIRST_ID;
}

static void remove_state(const struct side *side)
{
	char command[SCRATCH_PATH_BYTES + 16];
	snprintf(command, sizeof(command), "rm -rf '%s'", side->state);
	if (side->state[0] && system(command))
		fprintf(stderr, "%s stays\n", side->state);
}

static void begin(struct side *side)
{
	resume(side);
	pack_alloc(&side->alloc, "");
	pack_free(&side->free);
	pack_fill(&side->fill, allocate(side, &side->alloc));
}

static void end(struct side *side)
{
	close(side->fd);
	peer_end(&side->peer);
	remove_state(side);
}

static void requests(struct side *sides)
{
	static const char *const sockets[SIDES] = {"bare", "shm", "disk"};
	for (unsigned i = 0; i < SIDES; i++) {
		start(&sides[i], sockets[i], "512K");
		begin(&sides[i]);
	}
	run(sides, "fill, one at a time", fill_one);
	run(sides, "fill, 32 in flight", fill_many);
	run(sides, "alloc and free", alloc_and_free);
	for (unsigned i = 0; i < SIDES; i++)
		end(&sides[i]);
}

/* ---- a restart ---- */

static void kill_it(struct side *side)
{
	close(side->fd);
	kill(side->peer.pid, SIGKILL);
	waitpid(side->peer.pid, NULL, 0);
	unlink(side->peer.path);
}

/* Of the state's files, without local memory's bytes. */
static double disk_bytes(const struct side *side)
{
	static const char *const files[] = {"journal", "tensors", "sessions", "results"};
	char path[SCRATCH_PATH_BYTES + 16];
	double bytes = 0;
	for (unsigned i = 0; i < 4; i++) {
		struct stat stat_of;
		snprintf(path, sizeof(path), "%s/%s", side->state, files[i]);
		bytes += stat(path, &stat_of) ? 0 : (double)stat_of.st_blocks * 512;
	}
	return bytes;
}

/* Of the daemon, with the pages of the state's tables: local memory is not touched yet. */
static double memory_bytes(const struct side *side)
{
	char path[64];
	long pages = 0;
	snprintf(path, sizeof(path), "/proc/%d/statm", (int)side->peer.pid);
	FILE *file = fopen(path, "r");
	if (!file || fscanf(file, "%*d %ld", &pages) != 1)
		peer_die("/proc");
	fclose(file);
	return (double)pages * (double)sysconf(_SC_PAGESIZE);
}

static void tell_value(const char *name, double value, const char *unit, double goal)
{
	const struct bench_row row = {
		.name = name, .value = value, .unit = unit, .kind = BENCH_VALUE_AT_MOST, .goal = goal};
	bench_tell(&bench, &row);
}

/* Allocates all, with names, and then fills them; what each took of the disk and of the daemon's memory. */
static void make_tensors(struct side *side, unsigned n, double *disk, double *memory)
{
	uint64_t *handles = calloc(n, sizeof(*handles));
	char name[32];
	*disk = disk_bytes(side);
	*memory = memory_bytes(side);
	for (unsigned i = 0; handles && i < n; i++) {
		snprintf(name, sizeof(name), "tensor%u", i);
		pack_alloc(&side->alloc, name);
		handles[i] = allocate(side, &side->alloc);
	}
	*disk = (disk_bytes(side) - *disk) / n;
	*memory = (memory_bytes(side) - *memory) / n;
	for (unsigned i = 0; handles && i < n; i++) {
		pack_fill(&side->fill, handles[i]);
		fill_one(side);
	}
	free(handles);
}

static void restart(struct side *side, unsigned n_tensors, double goal)
{
	const uint8_t info[] = {4, 0x08, 1, 0x12, 0};
	double ms[BENCH_ROUNDS_MAX], disk, memory;
	char name[BENCH_NAME_BYTES];
	unsigned n = bench.quick ? 1 : 9;
	if (!bench_wanted(&bench, "restart"))
		return;
	start(side, "restarted", "16M");
	make_tensors(side, n_tensors, &disk, &memory);
	for (unsigned r = 0; r < n; r++) {
		uint64_t from;
		kill_it(side);
		from = peer_now_ns();
		start(side, "restarted", "16M");
		send_all(side, info, sizeof(info));
		receive(side, 1);
		ms[r] = (double)(peer_now_ns() - from) / 1e6;
	}
	end(side);
	snprintf(name, sizeof(name), "restart of 1 GiB with %u tensors, to the first answer", n_tensors);
	tell_value(name, bench_median(ms, n), "ms", goal);
	if (n_tensors < MANY)
		return;
	tell_value("restart: a tensor's bytes on the disk", disk, "B", 324);
	tell_value("restart: a tensor's bytes in memory, with its page of the table", memory, "B", 745);
}

/* ---- durable ---- */

enum { CLIENTS = 32, SYNC_BYTES = 1024, SYNC_FILE_BYTES = 1 << 24 };

/* What a fill has to wait for at least. */
static double sync_us(int file, unsigned n)
{
	static const uint8_t zeros[SYNC_BYTES];
	static off_t at;
	uint64_t from = peer_now_ns();
	for (unsigned i = 0; i < n; i++, at = (at + SYNC_BYTES) % SYNC_FILE_BYTES)
		if (pwrite(file, zeros, sizeof(zeros), at) != sizeof(zeros) || fdatasync(file))
			peer_die("a sync");
	return (double)(peer_now_ns() - from) / n / 1e3;
}

static double fills_us(struct side *clients, unsigned n_clients, unsigned n)
{
	uint64_t from = peer_now_ns();
	for (unsigned i = 0; i < n; i++) {
		for (unsigned c = 0; c < n_clients; c++)
			send_fill(&clients[c]);
		for (unsigned c = 0; c < n_clients; c++)
			receive(&clients[c], 1);
	}
	return (double)(peer_now_ns() - from) / n / n_clients / 1e3;
}

static int open_synced_file(char *path)
{
	static const uint8_t ones[1 << 16] = {1};
	int file = open(scratch_path("synced", path), O_RDWR | O_CREAT | O_TRUNC, 0600);
	for (off_t at = 0; at < SYNC_FILE_BYTES; at += (off_t)sizeof(ones))
		if (pwrite(file, ones, sizeof(ones), at) != sizeof(ones))
			peer_die("a file to sync");
	if (fsync(file))
		peer_die("a sync");
	return file;
}

static void durable(struct side *clients)
{
	static double sync[BENCH_ROUNDS_MAX], one[BENCH_ROUNDS_MAX], many[BENCH_ROUNDS_MAX];
	double by_sync[BENCH_ROUNDS_MAX], by_one[BENCH_ROUNDS_MAX];
	unsigned n = bench.quick ? 2 : 40;
	char path[SCRATCH_PATH_BYTES];
	if (!bench_wanted(&bench, "durable"))
		return;
	int file = open_synced_file(path);
	clients[0].is_durable = true;
	scratch_path("durable", clients[0].state);
	start(&clients[0], "durable.sock", "512K");
	for (unsigned c = 0; c < CLIENTS; c++) {
		if (c)
			clients[c].fd = peer_connect(&clients[0].peer);
		clients[c].id = FIRST_ID;
		begin(&clients[c]);
	}
	for (unsigned r = 0; r < bench.rounds; r++) {
		sync[r] = sync_us(file, n);
		one[r] = fills_us(clients, 1, n);
		many[r] = fills_us(clients, CLIENTS, n / 2);
		by_sync[r] = one[r] / sync[r];
		by_one[r] = one[r] / many[r];
	}
	const struct bench_row rows[] = {
		{"durable fill, one client", bench_median(one, bench.rounds), "us", "fdatasync",
		 bench_median(sync, bench.rounds), bench_median(by_sync, bench.rounds), BENCH_RATIO_AT_MOST, 1.3},
		{"durable fill, of 32 clients", bench_median(many, bench.rounds), "us", "one client's",
		 bench_median(one, bench.rounds), bench_median(by_one, bench.rounds), BENCH_RATIO_AT_LEAST, 16},
	};
	for (unsigned i = 0; i < 2; i++)
		bench_tell(&bench, &rows[i]);
	for (unsigned c = 1; c < CLIENTS; c++)
		close(clients[c].fd);
	end(&clients[0]);
	close(file);
	unlink(path);
}

int main(int argc, char **argv)
{
	static struct side clients[CLIENTS];
	static struct side sides[SIDES] = {{.name = "without"}, {.name = "/dev/shm"}, {.name = "disk"}};
	bench_options(&bench, argc, argv);
	snprintf(sides[1].state, sizeof(sides[1].state), "/dev/shm/npumem-bench-%d", (int)getpid());
	scratch_path("state", sides[2].state);
	requests(sides);
	restart(&sides[2], 10, 100);
	restart(&sides[2], 1000, 100);
	restart(&sides[2], 10000, 100);
	if (!bench.quick)
		restart(&sides[2], MANY, 1000);
	durable(clients);
	bench_end(&bench);
	return 0;
}
