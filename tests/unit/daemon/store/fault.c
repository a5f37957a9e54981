/* System calls and allocations that fail, and disks that are full: an answer each time, never a signal, and what
 * stood stays. */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>

#include "tests/unit/daemon/store/script.h"

/* ---- calls and allocations ---- */

static struct {
	unsigned n, at; /* calls so far; the one that fails; 0: none */
	int number;	/* with which errno */
	bool from_then_on;
	const char *only; /* calls of this name fail, all of them */
	const char *name; /* of the one that failed */
	unsigned n_live;  /* allocations */
} fault;

static bool strikes(const char *name)
{
	fault.n++;
	if (fault.only)
		return !strcmp(fault.only, name);
	if (!fault.at || fault.n < fault.at || (fault.n > fault.at && !fault.from_then_on))
		return false;
	fault.name = name;
	return true;
}

static int fail_call(void *ctx, const char *name)
{
	(void)ctx;
	return strikes(name) ? fault.number : 0;
}

static void *alloc_or_fail(void *ctx, size_t bytes)
{
	(void)ctx;
	if (fault.number == ENOMEM && strikes("malloc"))
		return NULL;
	fault.n_live++;
	return malloc(bytes);
}

static void count_free(void *ctx, void *memory)
{
	(void)ctx;
	fault.n_live -= memory != NULL;
	free(memory);
}

static const struct store_hooks failing = {.fail = fail_call};
static const struct heap failing_heap = {alloc_or_fail, count_free, NULL};

static unsigned n_open_files(void)
{
	DIR *directory = opendir("/proc/self/fd");
	unsigned n = 0;

	while (readdir(directory))
		n++;
	closedir(directory);
	return n;
}

enum { STEPS = 60 };

/* What the disk has after one of these failed is not known. */
static bool is_of_disk(const char *name)
{
	return name && (!strcmp(name, "fsync") || !strcmp(name, "fdatasync") || !strcmp(name, "pwrite"));
}

/* As much of the script as can be done; how much that was is *n, and how much of it is sure to be kept *n_flushed.
 * What the state then answers. */
static int run(uint64_t *n, uint64_t *n_flushed)
{
	struct store_write *write;
	int status = state_try();
	if (status) {
		ck_assert_msg(state.error[0] && !strchr(state.error, '\n'), "'%s'", state.error);
		state.store = NULL;
		return status;
	}
	for (uint64_t number = *n; number < STEPS && !status; number++) {
		status = store_write_begin(state.store, number, 0, 1, &write);
		if (!status)
			store_write_end(state.store, write);
		if (!status)
			status = script_try(state.store, number);
		*n += !status;
		if (!status && number % 16 == 3)
			status = store_flush(state.store);
		if (!status && (number % 16 == 3 || !state.options.durable))
			*n_flushed = number + 1;
	}
	/* What could not be done once may be done later, but for what the disk did not say. */
	if (status && !fault.from_then_on && !is_of_disk(fault.name))
		for (; *n < STEPS; ++*n)
			script_do(state.store, *n);
	int closed = store_close(state.store, true);
	if (!closed)
		*n_flushed = *n;
	state.store = NULL;
	return status ? status : closed;
}

/* Without faults: all that was done is there, and the rest can be. */
static void check(uint64_t n_flushed, uint64_t n)
{
	struct script_model model = {0};
	fault.at = 0;
	fault.only = NULL;
	state_open();
	ck_assert(!state_tells("lost") && !state_tells("damaged") && !state.report.is_stale);
	for (script_advance(&model, n_flushed); !script_holds(state.store, &model) && model.n < n;)
		script_advance(&model, model.n + 1);
	ck_assert_msg(script_holds(state.store, &model), "after %s failed", fault.name);
	for (n = model.n; n < STEPS; n++)
		script_do(state.store, n);
	ck_assert_int_eq(store_flush(state.store), 0);
	script_advance(&model, n);
	ck_assert(script_holds(state.store, &model));
	state_close(false);
}

struct kind {
	int number;
	bool from_then_on, durable;
};

static const struct kind kinds[] = {
	{ENOSPC, false, false}, {ENOSPC, true, false}, {EIO, true, true},      {EIO, false, true},
	{ENOMEM, false, true},	{ENOMEM, true, false}, {EMFILE, false, false}, {EINTR, false, true},
};
enum { KINDS = sizeof(kinds) / sizeof(kinds[0]) };

/* The i-th call or allocation, for each i: of a state's first process and, every other time, of its second one. */
TEST(each_call_fails, .to = KINDS)
{
	unsigned n_files = n_open_files(), at = 0, n_failed = 0;
	int status;
	state.options.hooks = &failing;
	state.options.heap = &failing_heap;
	state.options.durable = kinds[_i].durable;
	do {
		uint64_t n = 0, n_flushed = 0;
		state_remove(state.directory);
		fault.at = 0;
		fault.number = kinds[_i].number;
		fault.from_then_on = kinds[_i].from_then_on;
		if (at++ & 1) {
			state_open();
			for (; n < 20; n++)
				script_do(state.store, n);
			ck_assert_int_eq(store_flush(state.store), 0);
			n_flushed = n;
			state_close(false);
		}
		fault.name = NULL;
		fault.n = 0;
		fault.at = at;
		status = run(&n, &n_flushed);
		if (fault.name && fault.number == EINTR && strcmp(fault.name, "mmap") &&
		    strcmp(fault.name, "mremap") && strcmp(fault.name, "statx") && strcmp(fault.name, "mkdir"))
			ck_assert_msg(!status, "%s was not called again", fault.name);
		n_failed += status != 0;
		ck_assert(!status || status == -kinds[_i].number);
		const char *name = fault.name;
		check(n_flushed, n);
		fault.name = name;
		ck_assert_uint_eq(fault.n_live, 0);
		ck_assert_uint_eq(n_open_files(), n_files);
	} while (fault.name);
	ck_assert_uint_gt(n_failed, fault.number == EINTR ? 5 : 20);
}

/* What the disk has after a sync that failed is not known, though the next one succeeds: nothing may be told. */
TEST(after_a_sync_that_failed)
{
	struct store_write *write;
	state.options.hooks = &failing;
	state.options.durable = true;
	fault.number = EIO;
	for (unsigned at = 0; at < 2; at++) {
		fault.only = NULL;
		state_open();
		script_do(state.store, 0);
		ck_assert_int_eq(store_flush(state.store), 0);
		script_do(state.store, 1);
		fault.only = at ? "pwrite" : "fdatasync";
		ck_assert_int_eq(store_flush(state.store), -EIO);
		ck_assert_int_eq(store_write_begin(state.store, 1, 0, 1, &write), -EIO);
		fault.only = NULL;
		for (unsigned i = 0; i < 3; i++)
			ck_assert_int_eq(store_flush(state.store), -EIO);
		ck_assert_int_eq(store_close(state.store, true), -EIO);
		state.store = NULL;
	}
	state_open();
	ck_assert(!state.report.was_clean);
	ck_assert_uint_eq(state.report.n_writes, 0);
}

/* File systems that cannot allocate are written zeros to. */
TEST(without_fallocate)
{
	uint64_t n = 0, n_flushed = 0;
	struct stat stat_of;
	state.options.hooks = &failing;
	fault.number = EOPNOTSUPP;
	fault.only = "fallocate";
	ck_assert_int_eq(run(&n, &n_flushed), 0);
	ck_assert_uint_eq(n, STEPS);
	ck_assert_int_eq(stat(state_path("memory"), &stat_of), 0);
	ck_assert_int_ge(stat_of.st_blocks * 512, 4096 + STATE_MEMORY_BYTES);
	fault.number = EOPNOTSUPP;
	check(n, n);
}

/* ---- full disks ---- */

/* More cells until there is no room: the tables answer and go on, with what they have. */
static void fill_up(int status_then)
{
	struct script_model model = {0};
	uint32_t most = 0;
	int status;
	for (uint64_t number = 0; number < 50; number++)
		script_do(state.store, number);
	do
		status = store_prepare(state.store, STORE_TENSORS, most += 100, 1);
	while (!status && most < 1000000);
	ck_assert_int_eq(status, status_then);
	ck_assert_uint_ge(store_n_cells(state.store, STORE_TENSORS), most - 100);
	ck_assert_uint_lt(store_n_cells(state.store, STORE_TENSORS), most);
	/* To the last cell that is still possible, and no further. */
	while (!store_prepare(state.store, STORE_TENSORS, store_n_cells(state.store, STORE_TENSORS) + 1, 1))
		;
	ck_assert_int_eq(store_prepare(state.store, STORE_SESSIONS, 1000000000, 1), status_then);
	ck_assert_int_eq(store_prepare(state.store, STORE_RESULTS, UINT32_MAX - 100, 1), status_then);
	ck_assert_int_eq(store_prepare(state.store, STORE_TENSORS, 0, UINT32_MAX), status_then);
	ck_assert_int_eq(store_prepare(state.store, STORE_RESULTS, UINT32_MAX, 1), -EFBIG);
	ck_assert_int_eq(store_prepare(state.store, STORE_TENSORS, 0, 4), 0);
	uint32_t last = store_n_cells(state.store, STORE_TENSORS) - 1;
	state_put(STORE_TENSORS, last, "the last one");
	for (uint64_t number = 50; number < 60; number++)
		script_do(state.store, number);
	memset(store_memory(state.store), 1, STATE_MEMORY_BYTES);
	state_reopen(false);
	script_advance(&model, 60);
	ck_assert(state_has(STORE_TENSORS, last, "the last one"));
	ck_assert_int_eq(store_prepare(state.store, STORE_TENSORS, 0, 1), 0);
	store_drop(state.store, STORE_TENSORS, last, 0);
	store_commit(state.store);
	ck_assert(script_holds(state.store, &model));
}

/* A process's limit is no signal either. */
TEST(a_limit_of_files, .is_alone = true)
{
	struct rlimit limit;
	ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &limit), 0);
	limit.rlim_cur = 1024;
	ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
	state_refused(-EFBIG, "journal: 1048576 bytes cannot be taken: File too large");
	limit.rlim_cur = 2 << 20;
	ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
	state_open();
	ck_assert(state.report.is_new);
	fill_up(-EFBIG);
	limit.rlim_cur = 4 << 20;
	ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
	ck_assert_int_eq(store_prepare(state.store, STORE_TENSORS, 6000, 1), 0);
}

/* A small file system of this process alone; false where that is not permitted. */
static bool mount_small(const char *size)
{
	if (unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL))
		return false;
	return !mount("tmpfs", state.directory, "tmpfs", 0, size);
}

TEST(a_full_disk, .is_alone = true)
{
	struct stat stat_of;
	if (!mount_small("size=1500k,mode=700")) {
		printf("store/fault: a full disk is not tested: no right to mount one\n");
		return;
	}
	state.options.memory_bytes = 1 << 20;
	state_refused(-ENOSPC, "memory: 1052672 bytes cannot be taken: No space left on device");
	/* Nor is any room kept by what could not be made. */
	for (unsigned i = 0; i < STATE_FILES; i++)
		if (!stat(state_path(state_files[i]), &stat_of))
			ck_assert_int_eq(stat_of.st_blocks, 0);
	state.options.memory_bytes = STATE_MEMORY_BYTES;
	state_open();
	ck_assert(state.report.is_new);
	fill_up(-ENOSPC);
	ck_assert_int_eq(mount("tmpfs", state.directory, "tmpfs", MS_REMOUNT, "size=8m"), 0);
	ck_assert_int_eq(store_prepare(state.store, STORE_TENSORS, 6000, 1), 0);
	state_reopen(true);
	ck_assert_int_eq(umount2(state.directory, MNT_DETACH), 0);
}

FIXTURE(state_set_up, state_tear_down)
