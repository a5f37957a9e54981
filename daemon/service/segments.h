/* System memory that a client shares: mapped once, whole, for as long as the session wants it.
 * How memory comes from a client is the server's business; here it has an address, a size and an owner. */
#ifndef SERVICE_SEGMENTS_H
#define SERVICE_SEGMENTS_H

#include "daemon/device/memory/heap.h"
#include "daemon/service/session.h"

enum { SEGMENTS_MAX = 64 };		       /* of one session */
#define SEGMENTS_BYTES_MAX ((uint64_t)1 << 32) /* of one session, together */

struct segment {
	uint64_t id; /* > 0; not given again in this session */
	struct segments_memory memory;
	struct segment *next;
};

/* Maps what came with the request. 0; INVALID (nothing came, or not what can be shared safely),
 * RESOURCE_EXHAUSTED (too much of it). */
int segments_share(struct session *session, struct segment **out, struct npumem_error *error);

/* 0; NOT_FOUND, DATA_LOST (its memory has faulted). */
int segments_find(const struct session *session, uint64_t id, struct segment **out, struct npumem_error *error);

/* Whether what is mapped at `base` has faulted; on any thread. */
bool segments_is_broken(const struct session *session, const uint8_t *base);

/* Unmaps; nothing uses it any more. 0; NOT_FOUND. */
int segments_unshare(struct session *session, uint64_t id, struct npumem_error *error);
/* All of them. */
void segments_deinit(struct session *session);

#endif
