/* Whether a data request does the same when it is done twice: not where it reads something that it changes later,
 * or with the same operation. Of requests whose session may send them again. */
#ifndef RPC_REPEAT_H
#define RPC_REPEAT_H

#include "daemon/device/operations/op.h"
#include "daemon/service/session.h"

struct repeat {
	uint64_t stamp;	    /* no other request's; 0: the session has no token, and nothing is noted */
	size_t n;	    /* operations so far */
	size_t first_final; /* once this one was done the request cannot be done again; SIZE_MAX: always */
};

void repeat_begin(struct repeat *repeat, const struct session *session);
/* The next operation, as it was prepared. */
void repeat_add(struct repeat *repeat, const struct op *op);

/* It is not to be done again, whatever it does. */
static inline void repeat_never(struct repeat *repeat)
{
	repeat->first_final = 0;
}

static inline bool repeat_is_safe(const struct repeat *repeat)
{
	return repeat->first_final == SIZE_MAX;
}

/* ---- between requests ---- */

/* A request whose answer has not left the daemon is sent again after a restart, and must then find what it found.
 * So before a session changes what an earlier request of its own has read, or ends what that has used, the answers
 * that it has not been sent yet are sent: what is in the client's socket outlives the daemon. Where it does not
 * take them, or passes them on to another host (a session that lingers), it is remembered that these requests, and
 * no others, cannot be done again (service/kept/stale.h). */

struct rpc_peer;

/* Before a checked operation of the session. `is_once`: of a request that is not done again, so that neither may
 * be what an earlier one has written there. */
void repeat_before_op(struct session *session, const struct op *op, bool is_once);
/* Before it frees, seals or renames a tensor. */
void repeat_before_change(struct session *session, const struct tensor *tensor);

/* The answer of a request depends on what the tensor has. */
void repeat_after_read(struct session *session, const struct tensor *tensor);

/* A request is about to be answered. */
void repeat_note_answer(struct rpc_peer *peer, uint64_t id);
/* All answers are in the client's socket. */
void repeat_sent(struct rpc_peer *peer);
/* The client has the answers of all requests with lower ids. */
void repeat_answered(struct rpc_peer *peer, uint64_t below);
/* Its connection ends. */
void repeat_forget(struct rpc_peer *peer);

#endif
