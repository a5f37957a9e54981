/* Invariant: `message` has the fields behind the id, which packing writes first, so that a subscription can be
 * sent again as another request. The field numbers of npumem.proto are written here a second time, and
 * tests/unit/client/lib/connection/engine/kept.c compares. */
#define _GNU_SOURCE /* F_DUPFD_CLOEXEC */
#include "client/lib/connection/engine/engine.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "client/lib/messages/payload.h"
#include "proto/frame.h"

enum { REQUEST_ID = 1 << 3, REQUEST_AGAIN = 61 << 3 };

/* The field, which goes in front. */
static size_t put_id(uint64_t id, uint8_t to[1 + FRAME_HEADER_BYTES_MAX])
{
	to[0] = REQUEST_ID;
	return 1 + frame_header((size_t)id, to + 1);
}

static size_t pack(const Npumem__V1__Request *request, bool lends, size_t data_bytes, uint8_t *to)
{
	return lends ? payload_write_head(request, data_bytes, to) : npumem__v1__request__pack(request, to);
}

struct kept *kept_new(const struct memory *memory, const Npumem__V1__Request *request, size_t packed, bool lends,
		      const void *data, size_t data_bytes, int fd)
{
	uint8_t id[1 + FRAME_HEADER_BYTES_MAX];
	struct kept *kept = memory_alloc(memory, sizeof(*kept) + packed + PAYLOAD_HEAD_BYTES);
	if (!kept)
		return NULL;
	*kept = (struct kept){.call = request->call_case, .fd = -1};
	if (fd >= 0 && (kept->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0)) < 0) {
		memory_free(memory, kept);
		return NULL;
	}
	size_t id_bytes = put_id(request->id, id);
	kept->bytes = pack(request, lends, data_bytes, kept->message) - id_bytes;
	memmove(kept->message, kept->message + id_bytes, kept->bytes);
	if (lends) {
		kept->data = data;
		kept->data_bytes = data_bytes;
	}
	if (request->call_case == NPUMEM__V1__REQUEST__CALL_UNSHARE)
		kept->gives_back = request->unshare->segment;
	if (request->call_case == NPUMEM__V1__REQUEST__CALL_UNKEEP)
		kept->gives_back = request->unkeep->list;
	return kept;
}

void kept_free(struct kept *kept, const struct memory *memory)
{
	if (!kept)
		return;
	if (kept->fd >= 0)
		close(kept->fd);
	memory_free(memory, kept->copy);
	memory_free(memory, kept);
}

int kept_disown(struct kept *kept, const struct memory *memory)
{
	if (!kept->data || kept->copy)
		return 0;
	kept->copy = memory_alloc(memory, kept->data_bytes);
	if (!kept->copy)
		return -ENOMEM;
	kept->data = memcpy(kept->copy, kept->data, kept->data_bytes);
	return 0;
}

size_t kept_size(const struct kept *kept, uint64_t id, bool again)
{
	uint8_t bytes[1 + FRAME_HEADER_BYTES_MAX];
	return put_id(id, bytes) + (again ? KEPT_AGAIN_BYTES : 0) + kept->bytes + kept->data_bytes;
}

size_t kept_put(const struct kept *kept, uint64_t id, bool again, uint8_t *to)
{
	size_t n = put_id(id, to);
	if (again) {
		n += frame_header(REQUEST_AGAIN, to + n);
		to[n++] = true;
	}
	memcpy(to + n, kept->message, kept->bytes);
	return n + kept->bytes;
}
