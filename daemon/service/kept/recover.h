/* Restores the service from a store: tensors, sessions, results. Reports losses. */
#ifndef SERVICE_RECOVER_H
#define SERVICE_RECOVER_H

#include "daemon/service/session.h"

struct recover_host {
	/* Storage for a session that waits for its client, zero; the host ends it. NULL: no memory. */
	struct session *(*new_session)(void *ctx);
	void *ctx;
	/* Reports one line for people: something was kept or lost. */
	void (*say)(void *say_ctx, bool is_loss, const char *line);
	void *say_ctx;
	/* The name of a method by its number. NULL: methods have no names. */
	const char *(*method_name)(uint32_t method);
};

/* Restores into a service without tensors and sessions, whose persist has begun; `found`: store_open's report.
 * Losses are reported by say(), and in service->recovered, and dropped; all else is as it was. 0; -ENOMEM, or the
 * store's error: then the state may still be opened again.
 *
 * If persist.is_replay is set, the state is the snapshot with which a recording begins. Then sessions without a
 * token are restored, too, if they have an unnamed tensor. Each session's token is its number (8 bytes, the lowest
 * first, then zeros). Results are dropped. */
int recover(struct service *service, const struct store_report *found, const struct recover_host *host,
	    struct recover_report *report);

#endif
