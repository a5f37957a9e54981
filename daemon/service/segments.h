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

/* Where a session's shared memory comes from, and goes to. */
struct segments_source {
	/* Takes the memory that came with the request under way, where segments_check lets it: nothing is mapped
	 * before, as address space is nobody's. 0; INVALID, RESOURCE_EXHAUSTED: then it is given up. */
	int (*take)(void *ctx, const struct session *session, uint64_t id, struct segments_memory *memory,
		    struct npumem_error *error);
	void (*release)(void *ctx, const struct segments_memory *memory);
	/* Calls access(arg), which touches the memory. False where an access faulted: access was left in the
	 * midst. On any thread. NULL: it never faults. */
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

/* Whether the session may have so many bytes more, as a segment of that id; 0: the next one. 0; INVALID (the id is
 * in use), RESOURCE_EXHAUSTED. */
int segments_check(const struct session *session, uint64_t id, uint64_t bytes, struct npumem_error *error);
/* Maps what came with the request. `id`: that it is to have; 0: the next one. 0; INVALID (nothing came, or not
 * what can be shared safely; or the id is in use), RESOURCE_EXHAUSTED (too much of it). */
int segments_share(struct session *session, uint64_t id, struct segment **out, struct npumem_error *error);

/* 0; NOT_FOUND, DATA_LOST (its memory has faulted). */
int segments_find(const struct session *session, uint64_t id, struct segment **out, struct npumem_error *error);

/* Calls access(arg), which touches the segment's memory. False where an access faulted: access was left in the
 * midst, and the segment is broken from then on. On any thread. */
bool segments_reach(const struct session *session, struct segment *segment, void (*access)(void *arg), void *arg);

/* Unmaps; nothing uses it any more. 0; NOT_FOUND. */
int segments_unshare(struct session *session, uint64_t id, struct npumem_error *error);
/* All of them. */
void segments_deinit(struct session *session);

#endif
