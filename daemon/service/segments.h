/* System memory that a client shares: mapped once, whole, for as long as the session wants it.
 * How memory comes from a client is the server's business; here it has an address, a size and an owner. */
#ifndef SERVICE_SEGMENTS_H
#define SERVICE_SEGMENTS_H

#include "daemon/device/memory/heap.h"
#include "daemon/device/operations/op.h"
#include "daemon/service/session.h"

enum { SEGMENTS_MAX = 64 };		       /* of one session */
#define SEGMENTS_BYTES_MAX ((uint64_t)1 << 32) /* of one session, together */

struct segment {
	uint64_t id; /* > 0; not given again in this session */
	struct segments_memory memory;
	uint64_t warm_from, warm_to; /* transfers have been there */
	struct segment *next;
};

/* Maps what came with the request. `id`: that it is to have; 0: the next one. 0; INVALID (nothing came, or not
 * what can be shared safely; or the id is in use), RESOURCE_EXHAUSTED (too much of it). */
int segments_share(struct session *session, uint64_t id, struct segment **out, struct npumem_error *error);

/* 0; NOT_FOUND, DATA_LOST (its memory has faulted). */
int segments_find(const struct session *session, uint64_t id, struct segment **out, struct npumem_error *error);

/* Whether what is mapped at `base` has faulted; on any thread. */
bool segments_is_broken(const struct session *session, const uint8_t *base);

/* Whether transfers have been through all that an operation, not checked yet, is to move, so that the host's pages
 * are there and it takes a fifth of the time. A client may have taken them away again. */
bool segments_are_warm(const struct session *session, const struct op *op);
/* After an operation with continuous system memory that took `ns`; 0: not known. */
void segments_note(struct session *session, const struct op *op, uint64_t ns);

/* Unmaps; nothing uses it any more. 0; NOT_FOUND. */
int segments_unshare(struct session *session, uint64_t id, struct npumem_error *error);
/* All of them. */
void segments_deinit(struct session *session);

#endif
