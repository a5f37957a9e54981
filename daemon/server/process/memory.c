/* An access behind the end of a file is a SIGBUS, and its owner may move the end: so only files that cannot shrink
 * any more are mapped. An access to a page that cannot be allocated is a SIGBUS, too: ordinary pages are missing
 * only if the whole machine has none left, but the pool of huge pages may be empty. A hole is refused (holes.h).
 * Of a descriptor that came only its seals are read first: only files of shmem and hugetlbfs have them, and of
 * those no other call waits for a client. A statfs of a FUSE file would ask its server. */
#include "daemon/server/process/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "daemon/server/process/fault.h"
#include "daemon/server/process/holes.h"
#include "daemon/server/process/mappings.h"

static int check(int fd, uint64_t *bytes, bool *writable, struct npumem_error *error)
{
	int seals = fcntl(fd, F_GET_SEALS);
	struct statfs files;
	struct stat stat;

	if (seals < 0)
		return npumem_error_set(error, NPUMEM_INVALID,
					"the fd that came is not a memfd that can be sealed");
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
	return holes_check(fd, *bytes, error);
}

static int take(void *ctx, struct segments_memory *memory, struct npumem_error *error)
{
	struct channel *channel = ctx;
	const struct heap *heap = channel->user->closer->heap;
	int status, fd = channel_take_fd(channel);
	struct closer_mapping *mapping;

	if (fd < 0)
		return npumem_error_set(error, NPUMEM_INVALID,
					"no fd came with the request: it goes with the first byte of its frame");
	memory->mapping = mapping = heap_zalloc(heap, 1, sizeof(*mapping));
	status = mapping ? check(fd, &memory->bytes, &memory->writable, error) : heap_exhausted(error);
	if (status) {
		heap_free(heap, mapping);
		closer_add_received(channel->user, fd);
		return status;
	}
	mapping->fd = fd;
	mapping->bytes = memory->bytes;
	mapping->writable = memory->writable;
	return 0;
}

static void map(void *ctx, struct segments_memory *memory, void (*done)(void *arg), void *arg)
{
	struct closer_mapping *mapping = memory->mapping;

	mapping->price = memory->price;
	mapping->mapped = done;
	mapping->arg = arg;
	closer_map(((struct channel *)ctx)->user, mapping);
}

static int mapped(void *ctx, struct segments_memory *memory)
{
	const struct closer_mapping *mapping = memory->mapping;

	if (mapping->status)
		return mapping->status;
	memory->base = mapping->base;
	closer_close_mapped(((struct channel *)ctx)->user, mapping->fd);
	return 0;
}

static void release(void *ctx, const struct segments_memory *memory)
{
	struct closer_user *user = ((struct channel *)ctx)->user;
	struct closer_mapping *mapping = memory->mapping;

	if (memory->base) {
		closer_add_mapping(user, mapping);
		return;
	}
	closer_add_received(user, mapping->fd);
	heap_free(user->closer->heap, mapping);
}

static bool reach(const struct segments_memory *memory, void (*access)(void *arg), void *arg)
{
	return fault_guard(memory->base, memory->bytes, access, arg);
}

struct segments_source memory_source(struct channel *channel)
{
	return (struct segments_source){take, map, mapped, release, reach, channel};
}
