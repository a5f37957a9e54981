/* A request whose answer has not left the daemon is sent again after a restart, and must then find what it found.
 * So before a session changes what an earlier request of its own has read, or ends what that has used, the answers
 * that it has not been sent yet are sent: what is in the client's socket outlives the daemon. Where it does not
 * take them, it is remembered that those requests cannot be done again. */
#ifndef RPC_UNSENT_H
#define RPC_UNSENT_H

#include "daemon/device/operations/op.h"
#include "daemon/service/session.h"

/* Before a checked operation of the session. */
void unsent_before_op(struct session *session, const struct op *op);
/* Before it frees, seals or renames a tensor. */
void unsent_before_change(struct session *session, const struct tensor *tensor);

#endif
