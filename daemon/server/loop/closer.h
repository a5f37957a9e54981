/* Closes descriptors and mappings of clients, on threads that may never return.
 *
 * The last close of a descriptor can sleep for as long as its sender likes: SO_LINGER of a socket with unsent
 * data, the FLUSH of a FUSE file. So can the close of a connection whose receive queue holds such descriptors,
 * however deep. The last reference to a memfd of gigabytes costs hundreds of milliseconds of processor time. So
 * the loop only hands them over. Each user has queues of its own, and delays only itself. A signal every few
 * milliseconds ends lingers. A close that no signal ends keeps one thread, and its user may pass no descriptors
 * until it returns.
 *
 * A charge ends when the close has returned, not before. */
#ifndef SERVER_CLOSER_H
#define SERVER_CLOSER_H

#include "daemon/server/loop/closer_threads.h"

enum { CLOSER_PENDING_MAX = 64 }; /* descriptors of a user that are being closed, and it may pass more */

/* The closer's part of a user. Exists while the user has a connection, or something to be closed. */
struct closer_user {
	struct closer *closer;
	struct limits_user *limits; /* NULL: no user is charged */
	unsigned n_refs;	    /* of connections, and of what is to be closed */
	uint64_t charged[LIMITS_N];
	struct closer_queue queues[CLOSER_KINDS];
	bool is_paused; /* its mappings wait until it has paid */
	struct closer_user *next, *prev;
};

struct closer {
	const struct heap *heap;
	struct limits_table *limits;
	uv_async_t closed;
	uv_timer_t tick; /* looks for slow threads; runs while something is to be closed */
	struct closer_user *users, nobody;
	unsigned n_fds_max;	/* bound of descriptors of clients in this process */
	unsigned n_fds;		/* now: connections, received descriptors, those being closed */
	unsigned n_maps;	/* files that are being mapped */
	unsigned n_pending;	/* descriptors and mappings that are being closed */
	unsigned n_turned_away; /* connections that are turned away, and being closed */
	unsigned n_paused;	/* users that have stopped others by unmaps, and pay for it */
	bool is_open;
	struct closer_threads threads;
};

/* Starts a thread. `limits` outlives closer_close. 0 or -errno: nothing is open. */
int closer_open(struct closer *closer, uv_loop_t *loop, const struct heap *heap, struct limits_table *limits);
/* There are no connections any more. Threads that do not return end with the process, which closes the rest. Gives
 * all charges back. */
void closer_close(struct closer *closer);

/* The user of a uid, for one connection more; `closer->nobody` without memory. */
struct closer_user *closer_take_user(struct closer *closer, uint32_t uid);
void closer_drop_user(struct closer_user *user);

/* n descriptors more have come from clients. */
static inline void closer_count(struct closer_user *user, unsigned n)
{
	user->closer->n_fds += n;
}
/* Whether this process has room for all that one message can carry. */
static inline bool closer_has_room(const struct closer *closer)
{
	return closer->n_fds + CLOSER_MESSAGE_FDS <= closer->n_fds_max;
}
/* Whether one connection more could be refused. The close of one may take seconds, if it is the last of a memfd of
 * gigabytes; others connect meanwhile. */
static inline bool closer_may_turn_away(const struct closer *closer)
{
	return closer->n_turned_away <= closer->n_fds_max / 2;
}
/* Whether the user may pass descriptors: no close of one is stuck, and few are being closed. */
static inline bool closer_may_pass(const struct closer_user *user)
{
	return !user->queues[CLOSER_RECEIVED].is_stuck && user->charged[LIMITS_DESCRIPTORS] < CLOSER_PENDING_MAX;
}
/* Writes the reason for which it may not. RESOURCE_EXHAUSTED. */
int closer_refuse(const struct closer_user *user, struct npumem_error *error);

/* A received descriptor, that was counted. The user is charged for it until it is closed (LIMITS_DESCRIPTORS). */
void closer_add_received(struct closer_user *user, int fd);
/* A connection, that was counted. The user is charged for a session until it is closed. */
void closer_add_connection(struct closer_user *user, int fd);
/* A connection that is not served, that was counted. The user is charged for a descriptor until it is closed. */
void closer_add_turned_away(struct closer_user *user, int fd);
/* A thread maps the file, and then mapped(arg) is called on the loop. The mapping is charged. The files of a user
 * are mapped one after the other. */
void closer_map(struct closer_user *user, struct closer_mapping *mapping);
/* base and bytes are set. Until it is unmapped the user is charged for it (LIMITS_SEGMENTS, LIMITS_SEGMENT_BYTES);
 * then it is freed by the heap. While the user pays for having stopped others, nothing of it is unmapped. */
void closer_add_mapping(struct closer_user *user, struct closer_mapping *mapping);
/* The descriptor of a mapped file: the mapping keeps the file, so that this close is not the last. Closes it here.
 */
void closer_close_mapped(struct closer_user *user, int fd);

#endif
