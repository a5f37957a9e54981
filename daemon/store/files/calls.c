/* Owns nothing. A call that a test fails is not made. */
#include "daemon/store/files/calls.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/vfs.h>
#include <unistd.h>

/* The call's result, or -1 with errno if a test fails it. */
#define CALL(hooks, name, call) (failed(hooks, name) ? -1 : (call))

static int failed(const struct store_hooks *hooks, const char *call)
{
	if (hooks && hooks->fail)
		errno = hooks->fail(hooks->ctx, call);
	return hooks && hooks->fail ? errno : 0;
}

int calls_open(const struct store_hooks *hooks, int directory, const char *name, int flags)
{
	int fd;

	do
		fd = CALL(hooks, "open", openat(directory, name, flags | O_CLOEXEC, 0600));
	while (fd < 0 && errno == EINTR);
	return fd < 0 ? -errno : fd;
}

int calls_lock(const struct store_hooks *hooks, int fd)
{
	int status;

	do
		status = CALL(hooks, "flock", flock(fd, LOCK_EX | LOCK_NB));
	while (status && errno == EINTR);
	if (!status)
		return 0;
	return errno == EWOULDBLOCK ? -EBUSY : -errno;
}

int calls_stat(const struct store_hooks *hooks, int fd, struct statx *out)
{
	return CALL(hooks, "statx", statx(fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS | STATX_BTIME, out)) ? -errno
													: 0;
}

int calls_make_directory(const struct store_hooks *hooks, int directory, const char *name)
{
	return CALL(hooks, "mkdir", mkdirat(directory, name, 0700)) && errno != EEXIST ? -errno : 0;
}

int64_t calls_read(const struct store_hooks *hooks, int fd, void *to, size_t bytes, uint64_t off)
{
	size_t done = 0;

	while (done < bytes) {
		ssize_t n = CALL(hooks, "pread", pread(fd, (char *)to + done, bytes - done, (off_t)(off + done)));
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (!n)
			break;
		done += (size_t)n;
	}
	memset((char *)to + done, 0, bytes - done);
	return (int64_t)done;
}

int calls_write_zeros(const struct store_hooks *hooks, int fd, uint64_t from, uint64_t to)
{
	static const char zeros[1 << 16];

	while (from < to) {
		size_t bytes = to - from < sizeof(zeros) ? to - from : sizeof(zeros);
		ssize_t n = CALL(hooks, "pwrite", pwrite(fd, zeros, bytes, (off_t)from));
		if (n < 0 && errno != EINTR)
			return -errno;
		from += n > 0 ? (size_t)n : 0;
	}
	return 0;
}

static int allocate(const struct store_hooks *hooks, int fd, uint64_t from, uint64_t to, uint64_t had)
{
	int status;

	do
		status = CALL(hooks, "fallocate", fallocate(fd, 0, (off_t)from, (off_t)(to - from)));
	while (status && errno == EINTR);
	if (!status)
		return 0;
	/* A file system without fallocate: zeros are written to take the room. Its holes stay, as zeros might
	 * overwrite data. */
	return errno == EOPNOTSUPP ? calls_write_zeros(hooks, fd, from > had ? from : had, to) : -errno;
}

int calls_allocate(const struct store_hooks *hooks, int fd, uint64_t from, uint64_t to)
{
	struct rlimit limit;
	struct statx stat;

	if (from >= to)
		return 0;
	if (to > INT64_MAX ||
	    (!getrlimit(RLIMIT_FSIZE, &limit) && limit.rlim_cur != RLIM_INFINITY && to > limit.rlim_cur))
		return -EFBIG;
	int status = calls_stat(hooks, fd, &stat);
	if (status)
		return status;
	status = allocate(hooks, fd, from, to, stat.stx_size);
	if (status && from >= stat.stx_size)
		(void)calls_truncate(hooks, fd, stat.stx_size);
	return status;
}

int calls_truncate(const struct store_hooks *hooks, int fd, uint64_t bytes)
{
	int status;

	do
		status = CALL(hooks, "ftruncate", ftruncate(fd, (off_t)bytes));
	while (status && errno == EINTR);
	return status ? -errno : 0;
}

/* `status`: the result of fsync or fdatasync. */
static int synced(const struct store_hooks *hooks, int fd, int status)
{
	if (status)
		return -errno;
	if (hooks && hooks->synced)
		hooks->synced(hooks->ctx, fd);
	return 0;
}

int calls_sync(const struct store_hooks *hooks, int fd)
{
	int status;

	do
		status = CALL(hooks, "fsync", fsync(fd));
	while (status && errno == EINTR);
	return synced(hooks, fd, status);
}

int calls_sync_data(const struct store_hooks *hooks, int fd)
{
	int status;

	do
		status = CALL(hooks, "fdatasync", fdatasync(fd));
	while (status && errno == EINTR);
	return synced(hooks, fd, status);
}

void calls_start_writing(const struct store_hooks *hooks, int fd)
{
	(void)CALL(hooks, "sync_file_range", sync_file_range(fd, 0, 0, SYNC_FILE_RANGE_WRITE));
}

/* A test that stops after each store stops after each sector. */
int calls_write(const struct store_hooks *hooks, int fd, const void *from, size_t bytes, uint64_t off)
{
	enum { SECTOR_BYTES = 512 };
	bool is_watched = hooks && hooks->stored;

	for (size_t done = 0; done < bytes;) {
		size_t n = is_watched && bytes - done > SECTOR_BYTES ? SECTOR_BYTES : bytes - done;
		ssize_t written =
			CALL(hooks, "pwrite", pwrite(fd, (const char *)from + done, n, (off_t)(off + done)));
		if (written < 0 && errno == EINTR)
			continue;
		if (written <= 0)
			return written ? -errno : -EIO;
		done += (size_t)written;
		if (is_watched)
			hooks->stored(hooks->ctx);
	}
	return 0;
}

static int map(const struct store_hooks *hooks, size_t bytes, int flags, int fd, uint64_t off, void **out)
{
	void *at = failed(hooks, "mmap") ? MAP_FAILED
					 : mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags, fd, (off_t)off);

	if (at == MAP_FAILED)
		return -errno;
	*out = at;
	return 0;
}

int calls_map_private(const struct store_hooks *hooks, int fd, uint64_t off, size_t bytes, void **out)
{
	return map(hooks, bytes, MAP_PRIVATE | MAP_NORESERVE, fd, off, out);
}

int calls_map(const struct store_hooks *hooks, int fd, uint64_t off, size_t bytes, void **out)
{
	return map(hooks, bytes, MAP_SHARED, fd, off, out);
}

int calls_map_own(const struct store_hooks *hooks, size_t bytes, void **out)
{
	return map(hooks, bytes, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0, out);
}

int calls_map_more(const struct store_hooks *hooks, void **at, size_t bytes, size_t to)
{
	void *moved = failed(hooks, "mremap") ? MAP_FAILED : mremap(*at, bytes, to, MREMAP_MAYMOVE);

	if (moved == MAP_FAILED)
		return -errno;
	*at = moved;
	return 0;
}

bool calls_is_on_disk(int fd)
{
	struct statfs file_system;

	return fstatfs(fd, &file_system) || file_system.f_type != TMPFS_MAGIC;
}

uint64_t calls_find_data(int fd, uint64_t off, uint64_t to)
{
	/* Other file systems may not know of stores through a mapping. */
	if (calls_is_on_disk(fd))
		return off;
	off_t at = lseek(fd, (off_t)off, SEEK_DATA);
	if (at < 0)
		return errno == ENXIO ? to : off;
	return (uint64_t)at < to ? (uint64_t)at : to;
}

int calls_rename(const struct store_hooks *hooks, int from, const char *name, int to, const char *new_name)
{
	return CALL(hooks, "rename", renameat(from, name, to, new_name)) ? -errno : 0;
}

int calls_remove(const struct store_hooks *hooks, int directory, const char *name)
{
	return CALL(hooks, "unlink", unlinkat(directory, name, 0)) ? -errno : 0;
}

int calls_random(const struct store_hooks *hooks, void *to, size_t bytes)
{
	ssize_t n;

	do
		n = CALL(hooks, "getrandom", getrandom(to, bytes, 0));
	while (n < 0 && errno == EINTR);
	return n == (ssize_t)bytes ? 0 : n < 0 ? -errno : -EIO;
}
