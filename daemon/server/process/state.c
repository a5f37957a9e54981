/* Between the options and the store: the geometry that a state must have, and log lines about a found state. */
#include "daemon/server/process/state.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/uio.h>
#include <unistd.h>

#include "daemon/server/connections/activate.h"
#include "daemon/server/loop/workers.h"
#include "daemon/server/process/fault.h"
#include "daemon/server/process/log.h"
#include "daemon/service/kept/persist.h"

enum { KEPT_NAME_BYTES = 64 };

/* The values on which the places and the meaning of bytes depend. */
struct made_for {
	int64_t n_npus, npu_bytes, n_banks, eu_bytes;
	uint64_t memory_version, cells_version;
};

static int map(struct state *state, uint64_t bytes, char *error, size_t error_bytes)
{
	state->memory =
		mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (state->memory == MAP_FAILED) {
		int status = -errno;

		state->memory = NULL;
		snprintf(error, error_bytes, "cannot map the device's memory: %s", strerror(-status));
		return status;
	}
	state->bytes = bytes;
	return 0;
}

static void describe(const struct npumem_geometry *geometry, char *text, size_t bytes)
{
	snprintf(text, bytes, "%" PRId64 " NPUs x %" PRId64 " bytes, %" PRId64 " banks, EU of %" PRId64 " bytes",
		 (int64_t)geometry->n_npus, (int64_t)geometry->npu_bytes, (int64_t)geometry->n_banks,
		 (int64_t)geometry->eu_bytes);
}

/* ---- in memory that systemd keeps ---- */

static bool is_systemds(const char *directory)
{
	return strcmp(directory, STATE_SYSTEMD) == 0;
}

/* The descriptor that systemd has passed under that name, or a new one, which systemd is asked to keep. */
static int open_kept(void *ctx, const char *file)
{
	struct state *state = ctx;
	char name[KEPT_NAME_BYTES];
	int fd, status;

	snprintf(name, sizeof(name), ACTIVATE_KEPT "%s", file);
	fd = activate_kept(name);
	if (fd >= 0) {
		/* A copy: the store closes its own, and opens again after it has set a state aside. */
		int own = fcntl(fd, F_SETFD, FD_CLOEXEC) ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 0);
		return own < 0 ? -errno : own;
	}
	notify_drop(state->notify, name);
	fd = memfd_create(name, MFD_CLOEXEC);
	if (fd < 0)
		return -errno;
	status = notify_keep(state->notify, fd, name);
	if (!status)
		return fd;
	close(fd);
	return status;
}

/* ---- a store ---- */

/* Writes one line on the difference between a state's geometry and this daemon's. */
static enum store_verdict compare(const void *bytes, size_t n_bytes, char *words, size_t words_bytes)
{
	const struct made_for wanted = {.memory_version = DEVICE_MEMORY_VERSION, .cells_version = PERSIST_VERSION};
	struct made_for found;

	if (n_bytes != sizeof(found)) {
		snprintf(words, words_bytes, "what it says of its device has %zu bytes, not %zu", n_bytes,
			 sizeof(found));
		return STORE_OTHER_CELLS;
	}
	memcpy(&found, bytes, sizeof(found));
	if (found.cells_version != wanted.cells_version) {
		snprintf(words, words_bytes,
			 "its tables are of version %" PRIu64 "; this npumemd reads and writes version %" PRIu64,
			 found.cells_version, wanted.cells_version);
		return STORE_OTHER_CELLS;
	}
	if (found.memory_version != wanted.memory_version) {
		snprintf(words, words_bytes,
			 "its local memory is of version %" PRIu64
			 "; this npumemd reads and writes version %" PRIu64,
			 found.memory_version, wanted.memory_version);
		return STORE_OTHER_CELLS;
	}
	words[0] = 0;
	return STORE_OTHER_GEOMETRY;
}

/* The unit's first state directory; systemd puts colons between several. */
static const char *aside_directory(char *path, size_t bytes)
{
	const char *names = getenv("STATE_DIRECTORY");

	if (!names || names[0] != '/')
		return NULL;
	snprintf(path, bytes, "%.*s", (int)strcspn(names, ":"), names);
	return path;
}

/* Called in a signal handler. A file of the state that another process has cut short ends the daemon here. */
static void say_file(void *ctx, const void *address)
{
	static const char before[] = "npumemd: SIGBUS: the file ",
			  after[] = " is shorter than it was, or its disk has failed: the daemon ends\n";
	const struct state *state = ctx;
	const char *file = store_file_at(state->store, address), *slash = "/";
	struct iovec parts[] = {{(void *)(uintptr_t)before, sizeof(before) - 1},
				{(void *)(uintptr_t)state->directory, strlen(state->directory)},
				{(void *)(uintptr_t)slash, 1},
				{(void *)(uintptr_t)file, file ? strlen(file) : 0},
				{(void *)(uintptr_t)after, sizeof(after) - 1}};

	if (file && writev(STDERR_FILENO, parts, sizeof(parts) / sizeof(parts[0])) < 0)
		return; /* nobody reads it */
}

/* NULL on the loop's thread, which never waits for the disk. */
static const void *user(void)
{
	return workers_user();
}

static int open_store(struct state *state, const struct options *options, uint64_t bytes, char *error,
		      size_t error_bytes)
{
	const struct npumem_geometry *geometry = &options->device.geometry;
	struct made_for made_for = {.n_npus = geometry->n_npus,
				    .npu_bytes = geometry->npu_bytes,
				    .n_banks = geometry->n_banks,
				    .eu_bytes = geometry->eu_bytes,
				    .memory_version = DEVICE_MEMORY_VERSION,
				    .cells_version = PERSIST_VERSION};
	char text[STORE_TEXT_BYTES_MAX], line[STORE_ERROR_BYTES], aside[PATH_MAX];
	bool is_kept = is_systemds(options->state_dir);
	struct store_options to = {.directory = is_kept ? NULL : options->state_dir,
				   .open = open_kept,
				   .ctx = state,
				   .sparse = is_kept,
				   .boot_id = options->boot_id,
				   .geometry = &made_for,
				   .geometry_bytes = sizeof(made_for),
				   .geometry_text = text,
				   .compare = compare,
				   .memory_bytes = bytes,
				   .aside_most = (unsigned)options->set_aside,
				   .aside_directory = is_kept ? aside_directory(aside, sizeof(aside)) : NULL,
				   .durable = options->durable,
				   .user = user,
				   .heap = state->heap};
	int status;

	state->found = heap_zalloc(state->heap, 1, sizeof(*state->found));
	if (!state->found) {
		snprintf(error, error_bytes, "no memory for a state");
		return -ENOMEM;
	}
	describe(geometry, text, sizeof(text));
	status = store_open(&to, &state->store, state->found, line);
	if (state->found->aside[0])
		log_line(LOG_LEVEL_WARNING, "the state %s and is %s", verdict_words(state->found->aside_verdict),
			 state->found->aside);
	if (status) {
		snprintf(error, error_bytes, "%s%s", line,
			 verdict_is_set_aside(state->found->verdict) && !options->set_aside
				 ? " (use the state's geometry; or --set-aside N keeps it in a folder and begins "
				   "a new state)"
				 : "");
		return status;
	}
	state->memory = store_memory(state->store);
	state->directory = options->state_dir;
	fault_say(say_file, state);
	return 0;
}

/* Without systemd no descriptor is kept. */
static bool can_keep(const struct options *options, const struct notify *notify)
{
	if (!is_systemds(options->state_dir) || notify->fd >= 0)
		return true;
	log_line(LOG_LEVEL_WARNING, "--state-dir " STATE_SYSTEMD " outside of systemd: nothing is kept");
	return false;
}

int state_open(struct state *state, const struct options *options, const struct notify *notify,
	       const struct heap *heap, char *error, size_t bytes)
{
	uint64_t memory_bytes = device_memory_bytes(&options->device.geometry);

	state->heap = heap;
	state->notify = notify;
	return options->state_dir && can_keep(options, notify)
		       ? open_store(state, options, memory_bytes, error, bytes)
		       : map(state, memory_bytes, error, bytes);
}

static int random_bytes(void *to, size_t bytes)
{
	return getrandom(to, bytes, 0) == (ssize_t)bytes ? 0 : -EIO;
}

static void say(void *ctx, bool is_loss, const char *line)
{
	(void)ctx;
	log_line(is_loss ? LOG_LEVEL_WARNING : LOG_LEVEL_INFO, "%s", line);
}

static void keep_bytes(void *store, uint64_t off, uint64_t bytes)
{
	store_keep(store, off, bytes);
}

int state_recover(struct state *state, const struct options *options, struct rpc *rpc, char *error, size_t bytes)
{
	struct service *service = rpc->service;
	struct npumem_error why = {.status = 0};
	int status;

	if (!state->store)
		return 0;
	service->persist.store = state->store;
	if (store_is_durable(state->store))
		device_tell_after(service->device, keep_bytes, state->store);
	service->persist.directory = options->state_dir;
	service->persist.resume_seconds = (uint32_t)options->resume_seconds;
	service->persist.random = random_bytes;
	service->persist.is_replay = options->replay;
	if (persist_begin(service, &why)) {
		snprintf(error, bytes, "%.200s", why.message);
		return -ENOSPC;
	}
	for (unsigned i = 0; i < state->found->n_lines; i++)
		log_line(LOG_LEVEL_INFO, "%s", state->found->lines[i]);
	status = rpc_recover(rpc, state->found, say, NULL);
	if (status)
		snprintf(error, bytes, "cannot go on with %.160s: %s", options->state_dir, strerror(-status));
	else
		log_line(LOG_LEVEL_INFO, "state in %s: %s", options->state_dir,
			 state->found->is_new	   ? "begun"
			 : state->found->was_clean ? "as it was closed"
						   : "as it was left by a process that did not close it");
	heap_free(state->heap, state->found);
	state->found = NULL;
	return status;
}

int state_close(struct state *state, bool clean)
{
	fault_say(NULL, NULL);
	int status = state->store ? store_close(state->store, clean) : 0;

	if (state->bytes)
		munmap(state->memory, state->bytes);
	if (state->heap)
		heap_free(state->heap, state->found);
	*state = (struct state){0};
	return status;
}
