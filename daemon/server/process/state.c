/* Between the options and the store: what a state must have been made for, and what is said of one that was found.
 */
#include "daemon/server/process/state.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#include "daemon/server/connections/activate.h"
#include "daemon/server/process/log.h"

enum { KEPT_NAME_BYTES = 64 };

/* What decides where bytes lie, and what they mean. */
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

/* What systemd passed under that name; or something new, which it is given to keep. */
static int open_kept(void *ctx, const char *file)
{
	struct state *state = ctx;
	char name[KEPT_NAME_BYTES];
	int fd, status;

	snprintf(name, sizeof(name), ACTIVATE_KEPT "%s", file);
	fd = state->is_anew ? -1 : activate_kept(name);
	if (fd >= 0)
		return fcntl(fd, F_SETFD, FD_CLOEXEC) ? -errno : fd;
	if (state->is_anew)
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
	char text[STORE_TEXT_BYTES_MAX], line[STORE_ERROR_BYTES];
	bool is_kept = is_systemds(options->state_dir);
	struct store_options to = {.directory = is_kept ? NULL : options->state_dir,
				   .open = open_kept,
				   .ctx = state,
				   .sparse = is_kept,
				   .boot_id = options->boot_id,
				   .geometry = &made_for,
				   .geometry_bytes = sizeof(made_for),
				   .geometry_text = text,
				   .memory_bytes = bytes,
				   .durable = options->durable,
				   .heap = state->heap};
	int status;

	state->found = heap_zalloc(state->heap, 1, sizeof(*state->found));
	if (!state->found) {
		snprintf(error, error_bytes, "no memory for a state");
		return -ENOMEM;
	}
	describe(geometry, text, sizeof(text));
	status = store_open(&to, &state->store, state->found, line);
	if (status == -EINVAL && is_kept) {
		/* Of other options, or of another version. Only who stops the unit would be rid of it, so that a
		 * restart would not be enough for new options. */
		log_line(LOG_LEVEL_WARNING, "what systemd kept is dropped, and a state begun: %.300s", line);
		state->is_anew = true;
		status = store_open(&to, &state->store, state->found, line);
	}
	if (status) {
		snprintf(error, error_bytes, "%s", line);
		return status;
	}
	state->memory = store_memory(state->store);
	state->is_durable = options->durable;
	return 0;
}

/* By hand there is no systemd to keep anything. */
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

int state_recover(struct state *state, const struct options *options, struct rpc *rpc, char *error, size_t bytes)
{
	struct service *service = rpc->service;
	struct npumem_error why = {.status = 0};
	int status;

	if (!state->store)
		return 0;
	service->persist.store = state->store;
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

int state_flush(struct state *state)
{
	return state->is_durable ? store_flush(state->store) : 0;
}

void state_close(struct state *state, bool clean)
{
	int status = state->store ? store_close(state->store, clean) : 0;

	if (status)
		log_line(LOG_LEVEL_ERROR, "the state was not closed: %s", strerror(-status));
	if (state->bytes)
		munmap(state->memory, state->bytes);
	if (state->heap)
		heap_free(state->heap, state->found);
	*state = (struct state){0};
}
