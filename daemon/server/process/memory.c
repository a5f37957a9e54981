/* An access behind the end of a file is a SIGBUS, and the end of a file is its owner's to move: so only what can
 * no longer shrink is mapped. So is one to a page that cannot be had: a hole is filled from ordinary memory, whose
 * lack is the whole machine's, but on huge pages from a pool that may be empty. */
#include "daemon/server/process/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "daemon/server/process/fault.h"

static int check(int fd, uint64_t *bytes, bool *writable, struct npumem_error *error)
{
	int seals = fcntl(fd, F_GET_SEALS);
	struct statfs files;
	struct stat stat;

	if (seals < 0)
		return npumem_error_set(error, NPUMEM_INVALID, "the fd that came is no memfd that can be sealed");
	if (fstatfs(fd, &files) || files.f_type != TMPFS_MAGIC)
		return npumem_error_set(
			error, NPUMEM_INVALID,
			"the memfd is not on ordinary pages (on huge pages, perhaps): a hole in it could "
			"not be filled where there are none left");
	if (!(seals & F_SEAL_SHRINK))
		return npumem_error_set(
			error, NPUMEM_INVALID,
			"the memfd is not sealed with F_SEAL_SHRINK: it could be cut under the daemon's feet");
	if (fstat(fd, &stat) || stat.st_size <= 0)
		return npumem_error_set(error, NPUMEM_INVALID, "the memfd has %lld bytes",
					(long long)(stat.st_size > 0 ? stat.st_size : 0));
	*bytes = (uint64_t)stat.st_size;
	*writable = !(seals & (F_SEAL_WRITE | F_SEAL_FUTURE_WRITE));
	return 0;
}

static int map(int fd, struct segments_memory *memory, struct npumem_error *error)
{
	int status = check(fd, &memory->bytes, &memory->writable, error);
	void *base;

	if (status)
		return status;
	base = mmap(NULL, memory->bytes, PROT_READ | (memory->writable ? PROT_WRITE : 0), MAP_SHARED, fd, 0);
	if (base == MAP_FAILED)
		return npumem_error_set(error, NPUMEM_RESOURCE_EXHAUSTED, "%llu bytes cannot be mapped: %s",
					(unsigned long long)memory->bytes, strerror(errno));
	if (!fault_add(base, memory->bytes)) {
		munmap(base, memory->bytes);
		return npumem_error_set(error, NPUMEM_RESOURCE_EXHAUSTED,
					"the daemon shares %d segments, the most it can", FAULT_RANGES_MAX);
	}
	memory->base = base;
	return 0;
}

static int take(void *ctx, struct segments_memory *memory, struct npumem_error *error)
{
	int status, fd = channel_take_fd(ctx);

	if (fd < 0)
		return npumem_error_set(error, NPUMEM_INVALID,
					"no fd came with the request: it goes with the first byte of its frame");
	status = map(fd, memory, error);
	close(fd);
	return status;
}

static void release(void *ctx, const struct segments_memory *memory)
{
	(void)ctx;
	fault_remove(memory->base);
	munmap(memory->base, memory->bytes);
}

static bool is_broken(void *ctx, const uint8_t *base)
{
	(void)ctx;
	return fault_is_broken(base);
}

struct segments_source memory_source(struct channel *channel)
{
	return (struct segments_source){take, release, is_broken, channel};
}
