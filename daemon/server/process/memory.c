/* An access behind the end of a file is a SIGBUS, and its owner may move the end: so only files that cannot shrink
 * any more are mapped. An access to a page that cannot be allocated is a SIGBUS, too: ordinary pages are missing
 * only if the whole machine has none left, but the pool of huge pages may be empty. A hole is refused (holes.h).
 * Of a descriptor that came only its seals are read first: only files of shmem and hugetlbfs have them, and of
 * those no other call waits for a client. A statfs of a FUSE file would ask its server. */
#include "daemon/server/process/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "daemon/server/process/fault.h"
#include "daemon/server/process/holes.h"
#include "daemon/server/process/mappings.h"
#include "daemon/service/order/stops.h"

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

static int map(int fd, const struct session *session, struct segments_memory *memory, struct npumem_error *error)
{
	uint64_t stopped_ns;
	void *base = mappings_add(fd, memory->bytes, memory->writable, &stopped_ns);
	int status;

	if (stopped_ns)
		stops_charge(session, STOPS_MAPPINGS, stopped_ns);
	if (!base)
		return npumem_error_set(error, NPUMEM_RESOURCE_EXHAUSTED, "%llu bytes cannot be mapped: %s",
					(unsigned long long)memory->bytes, strerror(errno));
	status = holes_forbid(base, memory->bytes);
	if (status) {
		munmap(base, memory->bytes);
		return npumem_error_set(error, NPUMEM_RESOURCE_EXHAUSTED,
					"holes cannot be forbidden in %llu bytes: %s",
					(unsigned long long)memory->bytes, strerror(-status));
	}
	memory->base = base;
	return 0;
}

static int take(void *ctx, const struct session *session, uint64_t id, struct segments_memory *memory,
		struct npumem_error *error)
{
	struct channel *channel = ctx;
	const struct heap *heap = channel->user->closer->heap;
	int status, fd = channel_take_fd(channel);

	if (fd < 0)
		return npumem_error_set(error, NPUMEM_INVALID,
					"no fd came with the request: it goes with the first byte of its frame");
	memory->mapping = heap_zalloc(heap, 1, sizeof(struct closer_mapping));
	status = memory->mapping ? check(fd, &memory->bytes, &memory->writable, error) : heap_exhausted(error);
	if (!status)
		status = segments_check(session, id, memory->bytes, error);
	if (!status)
		status = stops_check(session, STOPS_MAPPINGS, error);
	if (!status)
		status = map(fd, session, memory, error);
	if (status) {
		heap_free(heap, memory->mapping);
		closer_add_received(channel->user, fd);
	} else {
		closer_close_mapped(channel->user, fd);
	}
	return status;
}

static void release(void *ctx, const struct segments_memory *memory)
{
	struct closer_mapping *mapping = memory->mapping;

	mapping->base = memory->base;
	mapping->bytes = memory->bytes;
	closer_add_mapping(((struct channel *)ctx)->user, mapping);
}

static bool reach(const struct segments_memory *memory, void (*access)(void *arg), void *arg)
{
	return fault_guard(memory->base, memory->bytes, access, arg);
}

struct segments_source memory_source(struct channel *channel)
{
	return (struct segments_source){take, release, reach, channel};
}
