/* The service as a store was left: tensors, sessions, results, and what was lost. */
#ifndef SERVICE_RECOVER_H
#define SERVICE_RECOVER_H

#include "daemon/service/session.h"

struct recover_host {
	/* Storage for a session that waits for its client, zero; the host ends it. NULL: no memory. */
	struct session *(*new_session)(void *ctx);
	/* One line for people, of what was kept or lost. */
	void (*say)(void *ctx, bool is_loss, const char *line);
	void *ctx;
};

struct recover_report {
	uint32_t n_tensors, n_views, n_sessions, n_results; /* kept */
	uint32_t n_ended;   /* unnamed tensors whose session had no token, or tensors that were freed */
	uint32_t n_damaged; /* cells of tensors that cannot be read */
	uint32_t n_refused; /* tensors that cannot be what their cells say */
	uint32_t n_cut;	    /* tensors of which data is lost */
};

/* Into a service without tensors and sessions, whose persist has begun; `found`: what store_open said. What is
 * lost is told and dropped, and the service goes on without it; all else is as it was. 0; -ENOMEM, or what the
 * store said: then the state may still be opened again. */
int recover(struct service *service, const struct store_report *found, const struct recover_host *host,
	    struct recover_report *report);

#endif
