/* Answered requests, kept until the recording client takes them: at most RECORDER_BYTES_MAX. If the client is too
 * slow, the rest of the recording is lost with a reason, and no other client waits. A long entry is taken in
 * parts, so that each step is short. Knows bytes and sessions, no messages. */
#ifndef SERVICE_RECORDER_H
#define SERVICE_RECORDER_H

#include "daemon/service/tables.h"

#define RECORDER_BYTES_MAX ((size_t)256 << 20)
enum { RECORDER_PART_BYTES = 256 << 10 };
/* One step of freeing ends after so many blocks of memory, or after so many bytes. */
enum { RECORDER_FREED_BLOCKS = 1024, RECORDER_FREED_BYTES = 1 << 20 };

/* The data that an operation moved (transfer.h). */
struct recorder_transfer {
	struct recorder_transfer *next;
	unsigned operation; /* of a submit */
	uint64_t segment, offset;
	struct npumem_dims extent, stride; /* in elements; a matrix is [rows, 1, 1, cols] */
	unsigned element_bytes;
	bool is_read;
	uint32_t crc32; /* of a read */
	size_t bytes;	/* of `data`, all elements of a write, dense; 0 for a read */
	uint8_t data[];
};

/* Entries about the state when a recording began. */
enum recorder_before {
	RECORDER_NOT_BEFORE,
	RECORDER_TENSORS,  /* a list's answer, and their handles */
	RECORDER_SESSION,  /* a session that waits for its client */
	RECORDER_RECOVERY, /* struct recovered */
};

/* One answered request, a session's end (no bytes, no segment), a session's segment, or a part of the state
 * before. */
struct recorder_entry {
	struct recorder_entry *next;
	enum recorder_before before;
	uint64_t number, session, digest;
	uint32_t uid, pid;
	int status;
	size_t n_handles, bytes;
	uint64_t *handles; /* that the reply has */
	uint8_t *request;
	uint8_t *answer; /* an outline of it */
	size_t answer_bytes;
	uint64_t came_ns, answered_ns;	     /* 0: unknown */
	struct recorder_transfer *transfers; /* in the order of its operations */
	uint64_t segment, segment_bytes;     /* that it shared; 0: none */
	bool segment_writable;
	size_t taken; /* bytes of its first transfer or, if it has none, of its request */
};

/* `queue` and `user` outlive it, and the recorder does not move. */
void recorder_init(struct recorder *recorder, const struct heap *heap, struct fair_queue *queue,
		   struct fair_user *user);
/* No operation is under way. */
void recorder_deinit(struct recorder *recorder);

static inline bool recorder_is_on(const struct recorder *recorder)
{
	return recorder->owner && !recorder->lost;
}

/* 0; PERMISSION_DENIED, FAILED_PRECONDITION (another session records, or there are tensors). The recording begins
 * with the segments that sessions share already. Nothing is under way. */
int recorder_start(struct recorder *recorder, struct session *session, struct npumem_error *error);
/* The same in two calls, on a device with tensors, which the caller records. The first returns the status; the
 * second cannot fail. */
int recorder_check(const struct recorder *recorder, const struct session *session, struct npumem_error *error);
void recorder_begin(struct recorder *recorder, struct session *session);
/* From here on leaves(ctx, tensor) is called for each tensor that is freed, until recorder_has_all or the
 * recording's end. */
void recorder_watch_leaves(struct recorder *recorder, void (*leaves)(void *ctx, const struct tensor *tensor),
			   void *ctx);
void recorder_has_all(struct recorder *recorder);
static inline void recorder_tensor_leaves(const struct recorder *recorder, const struct tensor *tensor)
{
	if (recorder->leaves)
		recorder->leaves(recorder->leaves_ctx, tensor);
}
/* Ends the recording; waiting entries can still be taken. */
void recorder_stop(struct recorder *recorder);
/* The same, and drops the waiting entries. O(1): the memory is freed in steps, later. */
void recorder_drop(struct recorder *recorder);

/* Frees a list; NULL: an empty one. */
void recorder_free_transfers(struct recorder *recorder, struct recorder_transfer *transfers);
/* Adds an entry; its next, number and taken are ignored. Takes over its transfers, and copies the rest. Without
 * room or memory the recording is lost. */
void recorder_add(struct recorder *recorder, const struct recorder_entry *entry);
/* The recording is incomplete from here on. */
void recorder_lose(struct recorder *recorder, const char *reason);
/* A session ends: adds an entry, or drops the recording if it is the session's. */
void recorder_session_end(struct recorder *recorder, const struct session *session);

/* The session goes on as `to`: so does its recording. */
void recorder_hand_over(struct recorder *recorder, const struct session *from, const struct session *to);

/* Host memory that counts as the recorder's. NULL: none, and the recording is lost. */
void *recorder_alloc(struct recorder *recorder, size_t bytes);
void recorder_release(struct recorder *recorder, void *memory, size_t bytes);

/* At most RECORDER_PART_BYTES of the first waiting entry. */
struct recorder_part {
	const struct recorder_entry *entry;
	const struct recorder_transfer *transfer; /* NULL: of the request */
	const uint8_t *bytes;
	size_t first, n;
	bool is_last; /* of its entry */
};
/* False: nothing waits. The part stays until recorder_next. */
bool recorder_peek(const struct recorder *recorder, struct recorder_part *part);
void recorder_next(struct recorder *recorder);

#endif
