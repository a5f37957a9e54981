/* The two ways to make a request: wait for its answer, or have a callback told. Both are the same request through
 * the same engine; the files of the nouns (device.c, tensors.c, operations.c, run.c) build requests and hand them
 * here. */
#ifndef CLIENT_LIB_CALL_H
#define CLIENT_LIB_CALL_H

#include "client/lib/engine.h"

/* A request whose caller waits, on the caller's stack. */
struct call {
	/* Takes the result: 0, or -1 where it makes no sense. NULL where nobody wants to know. Also called with
	 * the partial result of a refused request, where there is one. */
	int (*take)(struct call *call, const Npumem__V1__Response *response);
	void *result;
	size_t n; /* of what take() expects, or finds */
	bool answered;
	int status;
	struct npumem_error *error;
};

/* As npumem_error_clear for an error that may be NULL, without touching its kilobytes of unused fields: this runs
 * in every call. */
static inline void call_clear(struct npumem_error *error)
{
	if (error) {
		error->status = 0;
		error->n_fields = 0;
		error->message[0] = 0;
	}
}

/* Begins a blocking call: clears `error`, which may be NULL. 0; INVALID within a callback. */
int call_begin(struct npumem *npumem, struct npumem_error *error);
/* Sends; `call` must stay where it is until it is answered. `result` is the case of Response.result. 0, or a
 * status as of engine_send, and nothing is sent. */
int call_send(struct npumem *npumem, Npumem__V1__Request *request, unsigned result, struct call *call,
	      struct npumem_error *error);
/* Waits for the answer: its status. */
int call_wait(struct npumem *npumem, struct call *call);
/* All of it: begin, send, wait. */
int call_run(struct npumem *npumem, Npumem__V1__Request *request, unsigned result, struct call *call,
	     struct npumem_error *error);

/* Sends for a callback, which gets the tensors, the counts or the data of the answer. `n` is the number of tensors
 * asked for. */
int call_callback(struct npumem *npumem, Npumem__V1__Request *request, unsigned result, unsigned n,
		  npumem_callback *callback, void *context, struct npumem_error *error);

#endif
