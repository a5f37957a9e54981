/* What a record's sessions, handles and segments have become in a replay. */
#ifndef CLIENT_LIB_REPLAY_PEER_H
#define CLIENT_LIB_REPLAY_PEER_H

#include <npumem/client.h>

#include "client/lib/connection/memory.h"
#include "proto/npumem.pb-c.h"

struct replay_segment {
	uint64_t recorded; /* its number in the record */
	const struct npumem_segment *segment;
	struct replay_segment *next;
};

struct replay_peer {
	uint64_t session; /* in the record */
	struct npumem *npumem;
	struct replay_segment *segments;
	struct replay_peer *next;
};

/* Takes over `npumem`, also where there is no memory: NULL then. */
struct replay_peer *replay_peer_new(const struct memory *memory, uint64_t session, struct npumem *npumem);
/* Where it is in the list, or the list's end, which is NULL. */
struct replay_peer **replay_peer_find(struct replay_peer **list, uint64_t session);
/* Takes it out, closes its connection and frees. */
void replay_peer_close(struct replay_peer **at, const struct memory *memory);

/* Shares as much as was shared. 0, or as npumem_segment_create. */
int replay_peer_share(struct replay_peer *peer, const struct memory *memory, const Npumem__V1__Shared *shared,
		      struct npumem_error *error);
/* NULL: none of that number. */
const struct npumem_segment *replay_peer_segment(const struct replay_peer *peer, uint64_t recorded);
/* The daemon has given it up. */
void replay_peer_unshare(struct replay_peer *peer, const struct memory *memory, uint64_t recorded);

/* Handles: open addressing, 0 is free. */
struct replay_handles {
	uint64_t *from, *to;
	size_t n_slots; /* a power of two, at least twice as many as all handles */
};

/* For n handles. 0; -1: no memory. */
int replay_handles_init(struct replay_handles *handles, const struct memory *memory, size_t n);
void replay_handles_deinit(struct replay_handles *handles, const struct memory *memory);
bool replay_handles_know(const struct replay_handles *handles, uint64_t handle);
void replay_handles_add(struct replay_handles *handles, uint64_t from, uint64_t to);
/* Puts the replay's handles and segments into a request; those that it does not know become ones that no daemon
 * gives. */
void replay_handles_map(const struct replay_handles *handles, const struct replay_peer *peer,
			ProtobufCMessage *message);

#endif
