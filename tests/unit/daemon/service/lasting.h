/* The small device of world.h over a store in files without names, and its end and return: what was there when a
 * process was killed is what the next one finds. */
#ifndef TESTS_LASTING_H
#define TESTS_LASTING_H

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "daemon/service/kept/recover.h"
#include "daemon/service/kept/results.h"
#include "daemon/store/hooks.h"
#include "tests/unit/daemon/service/world.h"

enum { LASTING_FILES = 8, LASTING_SESSIONS = 8, LASTING_TEXT = 4096 };

struct lasting {
	struct world world;
	struct store *store;
	const struct store_hooks *hooks;
	bool is_other_boot; /* of the machine */
	struct {
		char name[16];
		int fd;
	} files[LASTING_FILES];
	unsigned n_files;
	struct session session;			/* the test's */
	struct session found[LASTING_SESSIONS]; /* that wait for their clients */
	unsigned n_found;
	struct recover_report report;
	bool is_replay;
	char said[LASTING_TEXT]; /* all lines of the last recovery */
};

static inline int lasting_file(void *ctx, const char *name)
{
	struct lasting *kept = ctx;
	char path[64];
	unsigned i = 0;
	while (i < kept->n_files && strcmp(kept->files[i].name, name) != 0)
		i++;
	if (i == kept->n_files) {
		ck_assert_uint_lt(i, LASTING_FILES);
		snprintf(kept->files[i].name, sizeof(kept->files[i].name), "%s", name);
		kept->files[i].fd = memfd_create(name, 0);
		kept->n_files++;
	}
	/* A lock is of an open file, so each process has its own. */
	snprintf(path, sizeof(path), "/proc/self/fd/%d", kept->files[i].fd);
	return open(path, O_RDWR | O_CLOEXEC);
}

static inline struct session *lasting_session(void *ctx)
{
	struct lasting *kept = ctx;
	ck_assert_uint_lt(kept->n_found, LASTING_SESSIONS);
	return &kept->found[kept->n_found++];
}

static inline void lasting_say(void *ctx, bool is_loss, const char *line)
{
	struct lasting *kept = ctx;
	size_t used = strlen(kept->said);
	snprintf(kept->said + used, sizeof(kept->said) - used, "%s%s\n", is_loss ? "! " : "", line);
}

static inline int lasting_random(void *to, size_t bytes)
{
	static uint8_t next;
	memset(to, ++next, bytes);
	return 0;
}

static inline void lasting_start(struct lasting *kept)
{
	static const char geometry[] = "8 x 8192";
	struct device_options options = {
		.geometry = {.n_npus = 8, .npu_bytes = 8192, .n_banks = 8, .eu_bytes = 128},
		.allow_unchecked = true,
	};
	struct world *world = &kept->world;
	struct store_options to = {.open = lasting_file,
				   .ctx = kept,
				   .geometry = geometry,
				   .geometry_bytes = sizeof(geometry),
				   .geometry_text = geometry,
				   .memory_bytes = device_memory_bytes(&options.geometry),
				   .boot_id = kept->is_other_boot ? "fedcba9876543210fedcba9876543210"
								  : "0123456789abcdef0123456789abcdef",
				   .heap = &heap_libc,
				   .hooks = kept->hooks};
	struct recover_host host = {
		.new_session = lasting_session, .ctx = kept, .say = lasting_say, .say_ctx = kept};
	struct store_report found;
	char error[STORE_ERROR_BYTES];
	*world = (struct world){.heap = {world_alloc, world_release, world}};
	ck_assert_msg(store_open(&to, &kept->store, &found, error) == 0, "%s", error);
	ck_assert_int_eq(device_new(&options, &world->heap, store_memory(kept->store), &world->device), 0);
	ck_assert_int_eq(service_init(&world->service, world->device, &world->heap, 500, 4711), 0);
	npumem_error_clear(&world->error);
	world->service.persist.store = kept->store;
	world->service.persist.resume_seconds = 30;
	world->service.persist.random = lasting_random;
	world->service.persist.is_replay = kept->is_replay;
	ck_assert_int_eq(persist_begin(&world->service, &world->error), 0);
	memset(kept->found, 0, sizeof(kept->found));
	kept->n_found = 0;
	kept->said[0] = 0;
	ck_assert_int_eq(recover(&world->service, &found, &host, &kept->report), 0);
	world_check(world);
}

static inline void lasting_init(struct lasting *kept)
{
	memset(kept, 0, sizeof(*kept));
	lasting_start(kept);
}

/* The process is gone, with all its sessions. */
static inline void lasting_kill(struct lasting *kept)
{
	struct world *world = &kept->world;
	while (world->service.sessions)
		session_leave(world->service.sessions);
	service_deinit(&world->service);
	device_free(world->device);
	ck_assert_int_eq(store_close(kept->store, false), 0);
	ck_assert_uint_eq(world->n_alive, 0);
}

static inline void lasting_restart(struct lasting *kept)
{
	lasting_kill(kept);
	lasting_start(kept);
}

static inline void lasting_deinit(struct lasting *kept)
{
	world_check(&kept->world);
	lasting_kill(kept);
	for (unsigned i = 0; i < kept->n_files; i++)
		close(kept->files[i].fd);
}

/* A session of uid 1001, with a token. */
static inline void lasting_begin(struct lasting *kept, struct session *session)
{
	ck_assert_int_eq(session_init(session, &kept->world.service, 1001, 1, NULL), 0);
	ck_assert_int_eq(persist_session_begin(session, false, &kept->world.error), 0);
	ck_assert(session->has_token);
}

static inline struct tensor *lasting_named(struct lasting *kept, const char *name)
{
	struct record *record = names_find(&kept->world.service.names, 1001, name);
	return record ? record_tensor(record) : NULL;
}

#define lasting_says(kept, text)                                                                                  \
	ck_assert_msg(strstr((kept)->said, text), "\"%s\" does not say \"%s\"", (kept)->said, text)

#endif
