/* The system calls that the store needs. Each is repeated after a signal and completed after a partial result.
 * Each returns 0, or the value in its comment, or -errno. */
#ifndef STORE_CALLS_H
#define STORE_CALLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "daemon/store/hooks.h"

/* Returns a descriptor. */
int calls_open(const struct store_hooks *hooks, int directory, const char *name, int flags);
/* -EBUSY: another process has the lock. */
int calls_lock(const struct store_hooks *hooks, int fd);
int calls_stat(const struct store_hooks *hooks, int fd, struct statx *out);
/* Makes a directory for its user alone, or finds one. */
int calls_make_directory(const struct store_hooks *hooks, int directory, const char *name);

/* Reads and returns how many bytes of [off, off + bytes) the file has; the rest of `to` is zeroed. */
int64_t calls_read(const struct store_hooks *hooks, int fd, void *to, size_t bytes, uint64_t off);

/* Makes the file at least `to` bytes long and takes room on the disk for [from, to); new bytes are zero. If it
 * fails, a file that has grown is cut again. -EFBIG beyond the process's limit, where the system would send a
 * signal. */
int calls_allocate(const struct store_hooks *hooks, int fd, uint64_t from, uint64_t to);
int calls_truncate(const struct store_hooks *hooks, int fd, uint64_t bytes);

/* Waits until the file is on the disk, with its length. */
int calls_sync(const struct store_hooks *hooks, int fd);

/* The same for a file of which only the bytes and the length have changed. */
int calls_sync_data(const struct store_hooks *hooks, int fd);
/* The disk begins to take the changes. Does not wait, and reports no errors. */
void calls_start_writing(const struct store_hooks *hooks, int fd);
int calls_write_zeros(const struct store_hooks *hooks, int fd, uint64_t from, uint64_t to);
/* Writes all bytes. */
int calls_write(const struct store_hooks *hooks, int fd, const void *from, size_t bytes, uint64_t off);

/* A copy of the process's own: pages are copied as they are written to. */
int calls_map_private(const struct store_hooks *hooks, int fd, uint64_t off, size_t bytes, void **out);
int calls_map(const struct store_hooks *hooks, int fd, uint64_t off, size_t bytes, void **out);
/* Makes the mapping longer; *at may move. */
int calls_map_more(const struct store_hooks *hooks, void **at, size_t bytes, size_t to);

/* Zeroed memory of the process's own; pages are taken when they are first written. */
int calls_map_own(const struct store_hooks *hooks, size_t bytes, void **out);
/* False: the file is in memory (tmpfs). */
bool calls_is_on_disk(int fd);
/* Returns where, from `off` on, the file has bytes that may not be zero; `to`: none before it. For file systems
 * that may not know, `off`. */
uint64_t calls_find_data(int fd, uint64_t off, uint64_t to);

/* A directory may replace an empty one, and no other. */
int calls_rename(const struct store_hooks *hooks, int from, const char *name, int to, const char *new_name);
int calls_remove(const struct store_hooks *hooks, int directory, const char *name);

/* Unpredictable bytes. */
int calls_random(const struct store_hooks *hooks, void *to, size_t bytes);

#endif
