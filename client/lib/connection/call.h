/* A call that waits: the form that does not, with a callback that notes the answer. */
#ifndef CLIENT_LIB_CALL_H
#define CLIENT_LIB_CALL_H

#include <npumem/async.h>

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
