/* What the daemon answered, kept until a recorder takes it: at most RECORDER_BYTES_MAX, so that one that is slow
 * loses entries, is told, and holds nobody up. Knows bytes and sessions, no messages. */
#ifndef SERVICE_RECORDER_H
#define SERVICE_RECORDER_H

#include "daemon/device/heap.h"
#include <npumem/types.h>

struct session;

#define RECORDER_BYTES_MAX ((size_t)64 << 20)
enum { RECORDER_REASON_BYTES = 128 };

/* One answered request, or a session's end (no bytes, status 0). */
struct recorder_entry {
	struct recorder_entry *next;
	uint64_t number, session, digest;
	uint32_t uid;
	int status;
	size_t n_handles, bytes;
	uint64_t *handles; /* that the reply gave out */
	uint8_t *request;
};

struct recorder {
	const struct heap *heap;
	const struct session *owner; /* NULL: nothing is recorded */
	struct recorder_entry *first, *last;
	size_t bytes; /* of what waits */
	uint64_t number;
	bool lost;
	char reason[RECORDER_REASON_BYTES];
};

void recorder_init(struct recorder *recorder, const struct heap *heap);
void recorder_deinit(struct recorder *recorder);

/* 0; PERMISSION_DENIED, FAILED_PRECONDITION (another records, or there are tensors whose beginning would be
 * missing).
 */
int recorder_start(struct recorder *recorder, struct session *session, struct npumem_error *error);
/* Records no more; what waits can still be taken. */
void recorder_stop(struct recorder *recorder);

/* Copies; `entry` needs neither next nor number. Without room or memory the record is lost. */
void recorder_add(struct recorder *recorder, const struct recorder_entry *entry);
/* From here on the record tells less than what happened. */
void recorder_lose(struct recorder *recorder, const char *reason);
/* A session ends: in the record, and the recording if it is its own. */
void recorder_session_end(struct recorder *recorder, const struct session *session);

/* Takes the first entry out; NULL: none. recorder_free when done. */
struct recorder_entry *recorder_take(struct recorder *recorder);
void recorder_free(struct recorder *recorder, struct recorder_entry *entry);

/* A hash of the data of all tensors, by name, type and shape: the same wherever they lie. 0; PERMISSION_DENIED,
 * RESOURCE_EXHAUSTED. Nothing runs meanwhile. */
int recorder_hash(struct session *session, uint64_t *hash, struct npumem_error *error);

#endif
