/* Owns the mapping, not the descriptor. Room is taken before it is mapped, so that no store into it can fail. */
#include "daemon/store/mapping.h"

#include <errno.h>
#include <sys/mman.h>

#include "daemon/store/calls.h"

/* What has its room already is not asked for again, which takes a while where there are many pages. */
static int take_room(const struct mapping *mapping, uint64_t bytes, bool sparse)
{
	struct statx stat;
	uint64_t to = mapping->off + bytes;
	int status = calls_stat(mapping->hooks, mapping->fd, &stat);

	if (status)
		return status;
	if (sparse)
		return stat.stx_size < to ? calls_truncate(mapping->hooks, mapping->fd, to) : 0;
	if (stat.stx_size < to) /* the rest where there are holes, as in a copy */
		status = calls_allocate(mapping->hooks, mapping->fd, stat.stx_size, to);
	if (!status && stat.stx_blocks * 512 < stat.stx_size)
		status = calls_allocate(mapping->hooks, mapping->fd, 0, to);
	return status;
}

int mapping_open(struct mapping *mapping, const struct store_hooks *hooks, int fd, uint64_t off, uint64_t bytes,
		 bool sparse)
{
	void *at;

	*mapping = (struct mapping){hooks, fd, off, bytes, NULL};
	if (bytes > SIZE_MAX || off + bytes < bytes)
		return -EFBIG;
	int status = take_room(mapping, bytes, sparse);
	if (!status)
		status = calls_map(hooks, fd, off, bytes, &at);
	if (!status)
		mapping->at = at;
	return status;
}

int mapping_grow(struct mapping *mapping, uint64_t bytes)
{
	void *at = mapping->at;
	int status =
		calls_allocate(mapping->hooks, mapping->fd, mapping->off + mapping->bytes, mapping->off + bytes);

	if (!status)
		status = calls_map_more(mapping->hooks, &at, mapping->bytes, bytes);
	if (status)
		return status;
	mapping->at = at;
	mapping->bytes = bytes;
	return 0;
}

void mapping_close(struct mapping *mapping)
{
	if (mapping->at)
		munmap(mapping->at, mapping->bytes);
	mapping->at = NULL;
}
