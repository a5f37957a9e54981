/* Owns the mapping, not the descriptor. Room is taken before it is mapped, so that no store into it can fail. */
#include "daemon/store/files/mapping.h"

#include <errno.h>
#include <sys/mman.h>

#include "daemon/store/files/calls.h"

/* Room that the file has is not taken again, as that is slow for many pages. */
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

	*mapping = (struct mapping){hooks, fd, off, bytes, bytes, NULL};
	if (bytes > SIZE_MAX || off + bytes < bytes)
		return -EFBIG;
	int status = take_room(mapping, bytes, sparse);
	if (!status)
		status = calls_map(hooks, fd, off, bytes, &at);
	if (!status)
		mapping->at = at;
	return status;
}

static int take_addresses(struct mapping *mapping, uint64_t bytes)
{
	void *at = mapping->at;
	int status = bytes <= mapping->room ? 0 : calls_map_more(mapping->hooks, &at, mapping->room, bytes);

	if (status)
		return status;
	mapping->at = at;
	mapping->room = bytes > mapping->room ? bytes : mapping->room;
	return 0;
}

void mapping_reserve(struct mapping *mapping, uint64_t bytes)
{
	if (mapping->at)
		(void)take_addresses(mapping, bytes);
}

int mapping_grow(struct mapping *mapping, uint64_t bytes)
{
	int status = mapping->fd < 0 ? 0
				     : calls_allocate(mapping->hooks, mapping->fd, mapping->off + mapping->bytes,
						      mapping->off + bytes);

	if (!status && bytes > mapping->room)
		mapping_reserve(mapping, 2 * bytes);
	if (!status)
		status = take_addresses(mapping, bytes);
	if (!status)
		mapping->bytes = bytes;
	return status;
}

int mapping_own(struct mapping *mapping, const struct store_hooks *hooks, uint64_t bytes)
{
	void *at;
	int status = calls_map_own(hooks, bytes, &at);

	if (!status)
		*mapping = (struct mapping){hooks, -1, 0, bytes, bytes, at};
	return status;
}

void mapping_close(struct mapping *mapping)
{
	if (mapping->at)
		munmap(mapping->at, mapping->room);
	mapping->at = NULL;
}
