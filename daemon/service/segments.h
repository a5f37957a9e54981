/* System memory that a client shares: mapped once, whole, for as long as the session wants it.
 * How memory comes from a client is the server's business; here it has an address, a size and an owner. */
#ifndef SERVICE_SEGMENTS_H
#define SERVICE_SEGMENTS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "daemon/service/order/stops.h"

struct npumem_error;
struct session;

/* Memory of the client's. */
struct segments_memory {
	uint8_t *base; /* where it is mapped; NULL: nowhere yet */
	uint64_t bytes;
	bool writable;
	struct stops_price price; /* of the map */
	void *mapping;		  /* the source's own */
};

/* Maps and unmaps a session's shared memory. */
struct segments_source {
	/* Takes the memory that came with the current request. 0; INVALID, RESOURCE_EXHAUSTED: nothing is taken.
	 */
	int (*take)(void *ctx, struct segments_memory *memory, struct npumem_error *error);
	/* Another thread maps the memory, and then done(arg) is called on this one. NULL: take has mapped it. */
	void (*map)(void *ctx, struct segments_memory *memory, void (*done)(void *arg), void *arg);
	/* After done. 0: base is set; or -errno: it could not be mapped; -EAGAIN: its user still pays. */
	int (*mapped)(void *ctx, struct segments_memory *memory);
	void (*release)(void *ctx, const struct segments_memory *memory);
	/* Calls access(arg), which touches the memory. False: it faulted and was left midway. On any thread. NULL:
	 * the memory never faults. */
	bool (*reach)(const struct segments_memory *memory, void (*access)(void *arg), void *arg);
	void *ctx;
};

enum { SEGMENTS_MAX = 64 };		       /* of one session */
#define SEGMENTS_BYTES_MAX ((uint64_t)1 << 32) /* of one session, together */

struct segment {
	uint64_t id; /* > 0; not given again in this session */
	struct segments_memory memory;
	atomic_bool is_broken; /* an access has faulted */
	struct segment *next;
};

/* Takes the memory that came with the request as segment `id` (0: the next id), which is not found yet. 0; INVALID
 * (no memory came, it cannot be shared safely, or the id is in use), RESOURCE_EXHAUSTED (over a limit). */
int segments_share(struct session *session, uint64_t id, struct segment **out, struct npumem_error *error);
/* Another thread maps it, as that can wait for the client (server/process/mappings.h), and then done(arg) is
 * called on this one. False: it is mapped already. */
bool segments_map(const struct session *session, struct segment *segment, void (*done)(void *arg), void *arg);
/* After that: it is found from now on. 0; RESOURCE_EXHAUSTED: it could not be mapped, and is gone. */
int segments_mapped(struct session *session, struct segment *segment, struct npumem_error *error);

/* 0; NOT_FOUND, DATA_LOST (its memory has faulted). */
int segments_find(const struct session *session, uint64_t id, struct segment **out, struct npumem_error *error);

/* Calls access(arg), which touches the segment's memory. False: it faulted and was left midway, and the segment is
 * broken from then on. On any thread. */
bool segments_reach(const struct session *session, struct segment *segment, void (*access)(void *arg), void *arg);

/* Unmaps; nothing uses it any more. 0; NOT_FOUND. */
int segments_unshare(struct session *session, uint64_t id, struct npumem_error *error);
/* All of them. */
void segments_deinit(struct session *session);

#endif
