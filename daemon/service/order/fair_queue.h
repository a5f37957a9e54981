/* Fair queueing of users: the next piece of work is one of the user that has been served for the shortest time.
 * A user is an account, however many connections, uids or requests it has. A user without work saves nothing up:
 * when it has work again it counts as served as long as the user that was served last. (Start-time fair queueing:
 * P. Goyal, H. Vin, H. Cheng, 1996.)
 *
 * The loop has one such queue and the worker threads have another one, so that a long kernel does not cost its
 * user the loop. Owns nothing; the caller charges the time and serializes the calls. */
#ifndef SERVICE_FAIR_QUEUE_H
#define SERVICE_FAIR_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One piece of work; embedded in its owner, zero at first. */
struct fair_work {
	void (*run)(struct fair_work *work); /* the owner's; called after the work has left the queue */
	struct fair_user *user;
	struct fair_work *next, *prev; /* prev NULL: not queued */
};

/* A user's part of one queue; zero at first. */
struct fair_user {
	struct fair_queue *queue;
	struct fair_work *first; /* queued, the next one first */
	uint64_t served_ns;
	unsigned n_running; /* the server's: works of this user that several servers run now */
	unsigned n_works;   /* the server's: queued or running */
	bool has_thread;    /* the server's: there is a thread for its works alone */
	struct fair_user *next, *prev;
};

struct fair_queue {
	struct fair_user *users; /* that have work queued */
	struct fair_user *serving;
	uint64_t floor_ns; /* least served_ns of a user with new work */
	/* Called when work is added to an empty queue. NULL: the owner polls the queue. */
	void (*wake)(void *ctx);
	void *ctx;
};

/* Adds work at the end of the user's list, or at its front; no effect if it is queued. */
void fair_queue_add(struct fair_queue *queue, struct fair_user *user, struct fair_work *work);
void fair_queue_add_first(struct fair_queue *queue, struct fair_user *user, struct fair_work *work);
/* No effect if it is not queued. */
void fair_queue_remove(struct fair_work *work);

/* Takes the first work of the user that was served least; NULL: nothing is queued. */
struct fair_work *fair_queue_take(struct fair_queue *queue);
/* Takes the first work of this user, which has some. */
struct fair_work *fair_queue_take_of(struct fair_queue *queue, struct fair_user *user);

/* The user was served for `ns`. */
static inline void fair_user_charge(struct fair_user *user, uint64_t ns)
{
	user->served_ns += ns;
}
/* The user whose work was taken last was served for `ns`; no effect if that user has gone. */
static inline void fair_queue_charge(struct fair_queue *queue, uint64_t ns)
{
	if (queue->serving)
		fair_user_charge(queue->serving, ns);
}

/* The user ends; it must have no work. */
void fair_user_deinit(struct fair_user *user);

static inline bool fair_queue_is_empty(const struct fair_queue *queue)
{
	return !queue->users;
}

#endif
