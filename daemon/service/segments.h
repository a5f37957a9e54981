/* System memory that a client shares: mapped once, whole, for as long as the session wants it.
 * How memory comes from a client is the server's business; here it has an address, a size and an owner. */
#ifndef SERVICE_SEGMENTS_H
#define SERVICE_SEGMENTS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct npumem_error;
struct session;

/* Memory of the client's that is mapped here. */
struct segments_memory {
	uint8_t *base;
	uint64_t bytes;
	bool writable;
	void *mapping; /* the source's own */
};

/* Maps and unmaps a session's shared memory. */
struct segments_source {
	/* Maps the memory that came with the current request, once segments_check allows it: until then no user is
	 * charged for the address space. 0; INVALID, RESOURCE_EXHAUSTED: nothing is mapped. */
	int (*take)(void *ctx, const struct session *session, uint64_t id, struct segments_memory *memory,
		    struct npumem_error *error);
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

/* Whether the session may share `bytes` more as segment `id` (0: the next id). 0; INVALID (the id is in use),
 * RESOURCE_EXHAUSTED. */
int segments_check(const struct session *session, uint64_t id, uint64_t bytes, struct npumem_error *error);
/* Maps the memory that came with the request as segment `id` (0: the next id). 0; INVALID (no memory came, it
 * cannot be shared safely, or the id is in use), RESOURCE_EXHAUSTED (over a limit). */
int segments_share(struct session *session, uint64_t id, struct segment **out, struct npumem_error *error);

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
