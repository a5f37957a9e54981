/* A connection over an open socket with a heap of the caller's choice: for the tests. */
#ifndef LIB_CONNECTION_CONNECTION_H
#define LIB_CONNECTION_CONNECTION_H

#include <npumem/async.h>
#include <npumem/client.h>

#include "client/lib/addresses/address.h"
#include "client/lib/connection/memory.h"

/* Takes over `fd` in any case; `options` may be NULL. 0 or UNAVAILABLE, INVALID. */
int connection_new(const struct memory *memory, int fd, const struct npumem_options *options, struct npumem **out,
		   struct npumem_error *error);

/* The same of a socket that was connected to `address`, where another daemon may go on with the session. */
int connection_at(const struct memory *memory, const struct address *address, int fd,
		  const struct npumem_options *options, struct npumem **out, struct npumem_error *error);

/* What the caller gave, and the defaults for the rest; a time of 0 has no end. 0 or INVALID. */
int connection_options(const struct npumem_options *given, struct npumem_options *options,
		       struct npumem_error *error);

/* call.c. A call that waits: the form that does not, with a callback that notes the answer. */

struct call {
	struct npumem *npumem;
	struct npumem_error *error;
	bool answered;
	int status;
	const void *result; /* kept: the caller's */
};

/* Clears `error`, which may be NULL. 0; INVALID within a callback. */
int call_begin(struct npumem *npumem, struct call *call, struct npumem_error *error);
/* The callback of the form that does not wait; `context` is the call. */
npumem_callback call_answered;
/* Takes back all requests under way, once each. */
void call_interrupt(struct npumem *npumem);
/* `status` is what that returned: where it is 0, waits for the answer. The status; the call's result is one
 * reference, or NULL. */
int call_wait(struct call *call, int status);

#endif
