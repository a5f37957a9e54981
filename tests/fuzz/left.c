/* Five memfds, which /proc opens anew, so that a state's files stay the same ones from process to process. */
#include "tests/fuzz/left.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zlib.h>

#include "daemon/rpc/rpc.h"
#include "daemon/service/kept/persist.h"
#include "proto/npumem.pb-c.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/scene.h"
#include "tests/random/daemon.h"

enum { FILE_MAX = 4 << 20, RESUME_SECONDS = 30 };

static const char *const files[LEFT_FILES] = {"journal", "memory", "tensors", "sessions", "results"};
static int fds[LEFT_FILES];

/* ---- files ---- */

static int open_file(void *ctx, const char *name)
{
	char path[64];

	(void)ctx;
	for (unsigned i = 0; i < LEFT_FILES; i++) {
		if (strcmp(files[i], name) != 0)
			continue;
		snprintf(path, sizeof(path), "/proc/self/fd/%d", fds[i]);
		return open(path, O_RDWR | O_CLOEXEC);
	}
	return -ENOENT;
}

int left_open(const struct heap *heap, const struct store_hooks *hooks, struct store **store,
	      struct store_report *report, char *error)
{
	struct npumem_geometry geometry = {.n_npus = 8, .npu_bytes = 8192, .n_banks = 8, .eu_bytes = 128};
	struct store_options options = {.open = open_file,
					.geometry = "a scene",
					.geometry_bytes = 7,
					.geometry_text = "a scene",
					.memory_bytes = device_memory_bytes(&geometry),
					.boot_id = "00000000-0000-0000-0000-000000000001",
					.heap = heap ? heap : &heap_libc,
					.hooks = hooks};

	*error = 0;
	return store_open(&options, store, report, error);
}

void left_put_back(const struct left *left)
{
	for (unsigned i = 0; i < LEFT_FILES; i++)
		if (ftruncate(fds[i], (off_t)left->n[i]) ||
		    pwrite(fds[i], left->bytes[i], left->n[i], 0) != (ssize_t)left->n[i])
			fuzz_fail("no file for the test itself");
}

/* ---- the next process ---- */

static int draw_token(void *to, size_t bytes)
{
	static uint64_t drawn;

	memset(to, 0x77, bytes);
	memcpy(to, &drawn, sizeof(drawn));
	drawn++;
	return 0;
}

static void say(void *ctx, bool is_loss, const char *line)
{
	(void)ctx;
	(void)is_loss;
	if (getenv("NPUMEM_FUZZ_VERBOSE"))
		fprintf(stderr, "%s\n", line);
}

struct found {
	struct store *store;
	const struct store_report *report;
};

bool left_is_replay;

static bool go_on(void *ctx, struct rpc *rpc)
{
	const struct found *found = ctx;
	struct persist *persist = &rpc->service->persist;
	struct npumem_error error = {.status = 0};

	persist->store = found->store;
	persist->directory = "nowhere";
	persist->resume_seconds = RESUME_SECONDS;
	persist->random = draw_token;
	persist->is_replay = left_is_replay;
	return !persist_begin(rpc->service, &error) && !rpc_recover(rpc, found->report, say, NULL);
}

struct scene *left_scene(struct store *store, const struct store_report *report, const struct heap *heap)
{
	struct found found = {store, report};
	struct scene_state state = {.heap = heap,
				    .memory = store_memory(store),
				    .go_on = go_on,
				    .ctx = &found,
				    .is_new = report->is_new};

	return scene_new_in(&state);
}

/* ---- what there was ---- */

static void add(uint64_t *digest, uint64_t value)
{
	*digest = (*digest ^ value) * UINT64_C(0x9e3779b97f4a7c15);
	*digest ^= *digest >> 29;
}

/* What a tensor is, without its data. */
uint64_t left_digest(const struct tensor *tensor)
{
	const struct record *record = record_of(tensor);
	const struct record_grants *grants = record_grants(record);
	const struct npumem_place *place = TENSOR_PLACE(tensor);
	uint64_t digest = 1;

	add(&digest, crc32_z(0, (const void *)record->name, strlen(record->name)));
	add(&digest, record->uid);
	add(&digest, (uint64_t)place->dtype << 16 | (uint64_t)place->layout << 8 | (uint64_t)place->mode);
	add(&digest, (uint64_t)place->frac_bits);
	add(&digest, (uint64_t)place->address);
	add(&digest, crc32_z(0, (const void *)&place->shape, sizeof(place->shape)));
	add(&digest, tensor->base ? tensor->base->handle : 0);
	add(&digest, (uint64_t)tensor->sealed << 2 | (uint64_t)tensor->dma_only << 1 | (uint64_t)tensor->pinned);
	for (unsigned i = 0; grants && i < grants->n; i++)
		add(&digest, (uint64_t)grants->to[i].uid << 8 | grants->to[i].access);
	return digest;
}

static void leave(struct left *left, struct scene *scene)
{
	const struct device *device = daemon_rpc(scene_daemon(scene))->service->device;

	for (struct tensor *tensor = device_next(device, NULL); tensor; tensor = device_next(device, tensor))
		left->tensors[left->n_tensors++] = (struct left_tensor){tensor->handle, left_digest(tensor)};
}

static void keep(struct left *left)
{
	for (unsigned i = 0; i < LEFT_FILES; i++) {
		left->n[i] = (size_t)lseek(fds[i], 0, SEEK_END);
		left->bytes[i] = malloc(left->n[i] ? left->n[i] : 1);
		if (!left->bytes[i] || left->n[i] > FILE_MAX ||
		    pread(fds[i], left->bytes[i], left->n[i], 0) != (ssize_t)left->n[i])
			fuzz_fail("no file for the test itself");
	}
}

/* Of whom a token is asked for, and who then has a tensor without a name. */
static void have_session(struct scene *scene)
{
	Npumem__V1__Request request = NPUMEM__V1__REQUEST__INIT;
	Npumem__V1__ResumeRequest resume = NPUMEM__V1__RESUME_REQUEST__INIT;
	Npumem__V1__AllocRequest alloc = NPUMEM__V1__ALLOC_REQUEST__INIT;
	Npumem__V1__Allocation allocation = NPUMEM__V1__ALLOCATION__INIT, *list = &allocation;
	Npumem__V1__Spec spec = NPUMEM__V1__SPEC__INIT;
	Npumem__V1__Dims shape = NPUMEM__V1__DIMS__INIT;
	uint8_t message[512];

	request.id = 1;
	request.call_case = NPUMEM__V1__REQUEST__CALL_RESUME;
	request.resume = &resume;
	scene_send(scene, SCENE_OTHER_AGAIN, message, npumem__v1__request__pack(&request, message));
	shape.n = shape.h = 1;
	shape.c = shape.w = 8;
	spec.shape = &shape;
	spec.dtype = NPUMEM__V1__DTYPE__INT8;
	allocation.spec = &spec;
	alloc.n_tensors = 1;
	alloc.tensors = &list;
	request.id = 2;
	request.call_case = NPUMEM__V1__REQUEST__CALL_ALLOC;
	request.alloc = &alloc;
	scene_send(scene, SCENE_OTHER_AGAIN, message, npumem__v1__request__pack(&request, message));
}

void left_begin_empty(void)
{
	for (unsigned i = 0; i < LEFT_FILES; i++)
		if (!fds[i])
			fds[i] = memfd_create(files[i], MFD_CLOEXEC);
	for (unsigned i = 0; i < LEFT_FILES; i++)
		if (fds[i] <= 0 || ftruncate(fds[i], 0))
			fuzz_fail("no file for the test itself");
}

int left_fd(unsigned file)
{
	return fds[file];
}

/* One that is killed with a write under way, and goes on; and one that closes. */
void left_begin(struct left *killed, struct left *closed)
{
	static struct store_report report;
	static struct scene *scene; /* of the process that is killed: nothing of it is freed */
	struct store *store;
	struct store_write *write;
	char error[STORE_ERROR_BYTES];

	left_begin_empty();
	if (left_open(NULL, NULL, &store, &report, error))
		fuzz_fail("no state: %s", error);
	scene = left_scene(store, &report, NULL);
	have_session(scene);
	leave(killed, scene);
	leave(closed, scene);
	if (store_write_begin(store, killed->tensors[5].handle, 0, 100, &write))
		fuzz_fail("no write");
	keep(killed);
	store_write_end(store, write);
	store_close(store, true);
	keep(closed);
}

void left_check(const struct left *left, const struct device *device)
{
	for (struct tensor *tensor = device_next(device, NULL); tensor; tensor = device_next(device, tensor)) {
		bool is_known = false;

		for (unsigned i = 0; i < left->n_tensors; i++)
			is_known |= left->tensors[i].handle == tensor->handle &&
				    left->tensors[i].digest == left_digest(tensor);
		if (!is_known)
			fuzz_fail("a tensor that nobody had: %s", record_of(tensor)->name);
	}
}
