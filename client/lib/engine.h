/* The engine of a connection: requests in, answers out, never waiting unless asked to.
 *
 * Invariant: each request that engine_send accepted has its `done` called exactly once: with its answer, or with
 * the reason why the connection ended. Once broken, a connection stays broken. Knows no call by name. */
#ifndef CLIENT_LIB_ENGINE_H
#define CLIENT_LIB_ENGINE_H

#include <sys/types.h>

#include "client/lib/buffer.h"
#include "client/lib/pending.h"
#include "proto/budget.h"

struct npumem {
	const struct memory *memory;
	int fd;
	struct buffer out, in;
	struct pending_table pending;
	struct budget budget;
	uint64_t last_id;
	int out_fd; /* goes with the first byte of `out`; -1: none */
	bool no_more_writes;	    /* a write failed: what is left to read may say why */
	bool dispatching;	    /* a callback runs */
	unsigned spin;		    /* how far spinning for an answer has paid lately */
	struct npumem_error broken; /* status UNAVAILABLE once the connection is over */
	struct npumem_error ending; /* the daemon's own reason for ending it, if it gave one */
	npumem_event_callback *on_event; /* NULL: nobody wants to know */
	void *event_context;
	pid_t child;		    /* a private daemon, or 0 */
	int child_log;		    /* what it wrote to stderr, or -1 */
};

/* Takes over `fd`, a connected socket, also where it fails. 0 or -ENOMEM. */
int engine_new(const struct memory *memory, int fd, struct npumem **out);
/* Tells all waiting requests CANCELLED, closes the socket and frees. */
void engine_free(struct npumem *npumem);

/* Queues a request, whose id is filled in, for `pending` (its id too). Small ones wait in the queue for the next
 * engine_turn, so that a pipeline costs few system calls. 0; INVALID (over the frame cap), RESOURCE_EXHAUSTED
 * (host memory), UNAVAILABLE: then `done` will not be called. */
int engine_send(struct npumem *npumem, Npumem__V1__Request *request, const struct pending *pending,
		struct npumem_error *error);

/* Makes an fd go with the first byte of the next request; the queue is empty (engine_drain). The fd stays the
 * caller's, and open until that request is answered. */
void engine_attach(struct npumem *npumem, int fd);
/* Waits until all requests are on their way. 0 or UNAVAILABLE. */
int engine_drain(struct npumem *npumem, struct npumem_error *error);

/* Writes and reads what goes without waiting, and hands out the answers. 0 or UNAVAILABLE; INVALID from within a
 * callback. */
int engine_turn(struct npumem *npumem, struct npumem_error *error);
/* The same, but first waits until there is something to do. */
int engine_wait(struct npumem *npumem, struct npumem_error *error);

/* Breaks the connection for a reason; the waiting requests are told at the next turn. Returns UNAVAILABLE. */
int engine_break(struct npumem *npumem, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
