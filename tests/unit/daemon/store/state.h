/* A state in a directory of its own, for tests of the store: opened, filled and looked at in a line each. */
#ifndef TESTS_UNIT_DAEMON_STORE_STATE_H
#define TESTS_UNIT_DAEMON_STORE_STATE_H

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/store/hooks.h"
#include "daemon/store/store.h"
#include "tests/support/test.h"

enum { STATE_MEMORY_BYTES = 3 * 4096 + 100 };

static const char *const state_files[] = {"journal", "memory", "tensors", "sessions", "results"};
enum { STATE_FILES = 5 };

struct state {
	char directory[64];
	struct store_options options;
	struct store *store;
	struct store_report report;
	char error[STORE_ERROR_BYTES];
};

static struct state state;

static void state_set_up(void)
{
	/* In memory where there is such a file system: nothing here is for the disk to keep. */
	snprintf(state.directory, sizeof(state.directory), "%s/npumem-store-XXXXXX",
		 access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm");
	ck_assert_ptr_nonnull(mkdtemp(state.directory));
	state.store = NULL;
	state.options = (struct store_options){
		.directory = state.directory,
		.geometry = "4 NPUs",
		.geometry_bytes = 6,
		.geometry_text = "four NPUs",
		.memory_bytes = STATE_MEMORY_BYTES,
		.boot_id = "00000000-0000-0000-0000-000000000001",
		.log_bytes = 1 << 16,
		.heap = &heap_libc,
	};
}

static const char *state_path_in(const char *directory, const char *file)
{
	static char paths[4][200];
	static unsigned next;
	char *path = paths[next++ % 4];
	snprintf(path, sizeof(paths[0]), "%s/%s", directory, file);
	return path;
}

static inline const char *state_path(const char *file)
{
	return state_path_in(state.directory, file);
}

static void state_remove(const char *directory)
{
	for (unsigned i = 0; i < STATE_FILES; i++)
		unlink(state_path_in(directory, state_files[i]));
	rmdir(directory);
}

static inline void state_tear_down(void)
{
	ck_assert_int_eq(store_close(state.store, true), 0);
	state_remove(state.directory);
}

/* What store_open answers. */
static int state_try(void)
{
	ck_assert_ptr_null(state.store);
	return store_open(&state.options, &state.store, &state.report, state.error);
}

static void state_open(void)
{
	int status = state_try();
	ck_assert_msg(!status, "%d: %s", status, state.error);
	ck_assert_str_eq(state.error, "");
}

static inline void state_close(bool clean)
{
	ck_assert_int_eq(store_close(state.store, clean), 0);
	state.store = NULL;
}

static inline void state_reopen(bool clean)
{
	state_close(clean);
	state_open();
}

/* It is refused with a line that says this. */
static inline void state_refused(int status, const char *words)
{
	ck_assert_int_eq(state_try(), status);
	ck_assert_msg(strstr(state.error, words) != NULL, "'%s' is not in: %s", words, state.error);
	state.store = NULL;
}

static inline bool state_tells(const char *words)
{
	for (unsigned i = 0; i < state.report.n_lines; i++)
		if (strstr(state.report.lines[i], words))
			return true;
	return false;
}

/* These bytes of local memory were changed. */
static inline void state_keep(const void *at, size_t bytes)
{
	if (store_is_durable(state.store))
		store_keep(state.store, (uint64_t)((const char *)at - (const char *)store_memory(state.store)),
			   bytes);
}

static inline void state_put(enum store_table table, uint32_t index, const char *text)
{
	ck_assert_int_eq(store_prepare(state.store, table, index + 1, 1), 0);
	store_put(state.store, table, index, text, strlen(text));
	store_commit(state.store);
	ck_assert_int_eq(store_flush(state.store), 0);
}

static inline bool state_has(enum store_table table, uint32_t index, const char *text)
{
	size_t bytes;
	const void *cell = store_cell(state.store, table, index, &bytes);
	return cell && bytes == strlen(text) && !memcmp(cell, text, bytes);
}

/* A file's bytes, to be freed. */
static inline char *state_read(const char *path, size_t *bytes)
{
	struct stat stat_of;
	int fd = open(path, O_RDONLY);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(fstat(fd, &stat_of), 0);
	char *text = malloc((size_t)stat_of.st_size + 1);
	ck_assert_int_eq(pread(fd, text, (size_t)stat_of.st_size, 0), stat_of.st_size);
	close(fd);
	*bytes = (size_t)stat_of.st_size;
	return text;
}

/* Into the file that is there, which stays the same file. */
static inline void state_write(const char *path, const void *text, size_t bytes, size_t off)
{
	int fd = open(path, O_WRONLY | O_CREAT, 0600);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(pwrite(fd, text, bytes, (off_t)off), (ssize_t)bytes);
	close(fd);
}

#endif
