/* A request from its making to its answer: one message or several (a list in pages, a tensor in chunks), and one
 * callback. Blocking calls are requests whose callback notes the answer (call.c).
 *
 * Invariant: one that was sent has its callback called exactly once, with its answer, or with the reason why there
 * is none, unless it was let go; then its memory is the library's again. */
#ifndef CLIENT_LIB_REQUEST_H
#define CLIENT_LIB_REQUEST_H

#include <npumem/async.h>

#include "client/lib/messages/result.h"
#include "proto/npumem.pb-c.h"

struct npumem_request;

/* What answers a request's messages. */
struct request_kind {
	unsigned result; /* the case of Response.result; REQUEST_ANY: whatever it is */
	/* Takes one message's result: 0; a status, which the request then fails with (`error` is set); -1: it
	 * makes no sense, and the connection is at fault. NULL: there is nothing to take. Called with a refusal's
	 * result, too, where it has one (submit). */
	int (*take)(struct npumem_request *request, const Npumem__V1__Response *response,
		    struct npumem_error *error);
	/* Sends what comes next, if anything; may change the kind. 0, or the status that the request fails with.
	 * NULL: nothing does. */
	int (*next)(struct npumem_request *request, struct npumem_error *error);
	/* It failed; NULL: nothing is to be undone. */
	void (*failed)(struct npumem_request *request);
};

#define REQUEST_ANY (~0u)

struct npumem_request {
	struct npumem *npumem;
	const struct request_kind *kind;
	npumem_callback *callback; /* NULL: none */
	void *context;
	struct npumem_request *next, *previous; /* among the live ones, in the order sent; or free ones */
	struct result *results;			/* what its answer and its state are made in */
	const void *answer;			/* its object that the callback gets */
	void *state;				/* of its kind */
	size_t n;				/* likewise: how many, or how much, is expected */
	uint64_t first_id, last_id;		/* what is sent and not answered is among these */
	unsigned n_waiting;
	int64_t deadline;
	bool is_live, is_cancelled;
};

/* Makes one with `room` bytes for objects (result_room), to be sent or ended. Clears `error`. 0; UNAVAILABLE (the
 * connection is over), RESOURCE_EXHAUSTED. */
int request_new(struct npumem *npumem, const struct request_kind *kind, size_t room, npumem_callback *callback,
		void *context, struct npumem_request **out, struct npumem_error *error);

/* What goes with a message beside it. */
struct request_extra {
	const void *data; /* of a write, which lacks it: borrowed until it is answered or let go */
	size_t data_bytes;
	void *to; /* where the data of the answer belong */
	size_t to_bytes;
	bool has_fd;
	int fd; /* duplicated */
};

/* Sends a message of it, whose id is filled in; `extra` may be NULL. 0; INVALID (over the frame cap),
 * RESOURCE_EXHAUSTED, UNAVAILABLE: then nothing was sent. */
int request_send(struct npumem_request *request, Npumem__V1__Request *message, const struct request_extra *extra,
		 struct npumem_error *error);
/* The first message: as request_send, but a request that cannot be sent is ended. `out` may be NULL. */
int request_start(struct npumem_request *request, Npumem__V1__Request *message, const struct request_extra *extra,
		  struct npumem_request **out, struct npumem_error *error);
/* One that has no room of its own, made and started: as npumem_X_async. */
int request_call(struct npumem *npumem, const struct request_kind *kind, Npumem__V1__Request *message,
		 const struct request_extra *extra, NPUMEM_ASYNC);
/* After its first message was sent with that status, which it returns. */
int request_sent(struct npumem_request *request, int status, struct npumem_request **out);
/* Ends a request without its callback; answers to its messages in flight are dropped. */
void request_end(struct npumem_request *request);
/* As npumem_error_clear for an error that may be NULL, without touching its kilobytes of unused fields: this runs
 * in every call. */
static inline void request_clear(struct npumem_error *error)
{
	if (error) {
		error->status = 0;
		error->n_fields = 0;
		error->message[0] = 0;
	}
}
/* Sets RESOURCE_EXHAUSTED for a result and returns it. */
int request_no_memory(struct npumem_error *error);

/* ---- for the engine ---- */

/* One of its messages has been answered, and is not counted among its n_waiting any more: `error` NULL where it
 * was not refused. 0, or -1: the answer makes no sense. */
int request_answered(struct npumem_request *request, const Npumem__V1__Response *response,
		     const struct npumem_error *error);
/* Tells its callback, and ends it. */
void request_fail(struct npumem_request *request, const struct npumem_error *error);
/* Fails those that are overdue; sets when the next will be. */
void request_expire(struct npumem *npumem);

#endif
