/* The system's calls, as far as the store needs them: called again where a signal came between, complete where the
 * system does a part, and answering 0 (or what is said) or -errno. */
#ifndef STORE_CALLS_H
#define STORE_CALLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "daemon/store/hooks.h"

/* A descriptor. */
int calls_open(const struct store_hooks *hooks, int directory, const char *name, int flags);
/* -EBUSY where another process has it. */
int calls_lock(const struct store_hooks *hooks, int fd);
int calls_stat(const struct store_hooks *hooks, int fd, struct statx *out);
/* Makes a directory for its user alone, or finds one. */
int calls_make_directory(const struct store_hooks *hooks, int directory, const char *name);

/* How many bytes of [off, off + bytes) the file has; the rest of `to` is zero. */
int64_t calls_read(const struct store_hooks *hooks, int fd, void *to, size_t bytes, uint64_t off);

/* Makes the file at least `to` bytes long and gives each byte of [from, to) its room on the disk; what was not
 * there is zero. Where that fails a longer file is cut to `from` again. -EFBIG beyond the process's limit, of
 * which the system would tell by a signal. */
int calls_allocate(const struct store_hooks *hooks, int fd, uint64_t from, uint64_t to);
int calls_truncate(const struct store_hooks *hooks, int fd, uint64_t bytes);

/* Waits until the file is on the disk, with its length. */
int calls_sync(const struct store_hooks *hooks, int fd);

/* The same, where only bytes have changed, and its length. */
int calls_sync_data(const struct store_hooks *hooks, int fd);
/* The disk begins to take what was changed. Does not wait for it; says nothing where it cannot. */
void calls_start_writing(const struct store_hooks *hooks, int fd);
int calls_write_zeros(const struct store_hooks *hooks, int fd, uint64_t from, uint64_t to);
/* All of them. */
int calls_write(const struct store_hooks *hooks, int fd, const void *from, size_t bytes, uint64_t off);

/* A copy of the process's own: pages are copied as they are written to. */
int calls_map_private(const struct store_hooks *hooks, int fd, uint64_t off, size_t bytes, void **out);
int calls_map(const struct store_hooks *hooks, int fd, uint64_t off, size_t bytes, void **out);
/* Makes the mapping longer; *at may move. */
int calls_map_more(const struct store_hooks *hooks, void **at, size_t bytes, size_t to);

/* Zero bytes of the process's own, whose pages are taken as they are written to. */
int calls_map_own(const struct store_hooks *hooks, size_t bytes, void **out);
/* Not in memory, as far as is known. */
bool calls_is_on_disk(int fd);
/* Where at or behind `off` the file has bytes that may not be zero; `to`: nowhere before that. Of file systems
 * that are not known to tell, `off`. */
uint64_t calls_find_data(int fd, uint64_t off, uint64_t to);

/* A directory takes the place of an empty one, and of no other. */
int calls_rename(const struct store_hooks *hooks, int from, const char *name, int to, const char *new_name);
int calls_remove(const struct store_hooks *hooks, int directory, const char *name);

/* Bytes that nobody can tell before. */
int calls_random(const struct store_hooks *hooks, void *to, size_t bytes);

#endif
