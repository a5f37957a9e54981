/* The service as a store was left: tensors, sessions, results, and what was lost. */
#ifndef SERVICE_RECOVER_H
#define SERVICE_RECOVER_H

#include "daemon/service/session.h"

struct recover_host {
	/* Storage for a session that waits for its client, zero; the host ends it. NULL: no memory. */
	struct session *(*new_session)(void *ctx);
	/* One line for people, of what was kept or lost. */
	void (*say)(void *ctx, bool is_loss, const char *line);
	/* Of a number in a note of a request that ran. NULL: methods have no names. */
	const char *(*method_name)(uint32_t method);
	void *ctx;
};

/* Into a service without tensors and sessions, whose persist has begun; `found`: what store_open said. What is
 * lost is told and dropped, and the service goes on without it; all else is as it was. 0; -ENOMEM, or what the
 * store said: then the state may still be opened again.
 *
 * Of a persist that is_replay the state is a snapshot, with which a record of all that came then begins: every
 * session comes back that has a tensor, also one that had no token, under a token that is its number (8 bytes, the
 * lowest first, then zeros); and of its requests nothing is known. */
int recover(struct service *service, const struct store_report *found, const struct recover_host *host,
	    struct recover_report *report);

#endif
