/* What an operation writes is noted in the store from before its first byte until before its reply: what is noted
 * when the process dies is lost, and not taken for whole. Whatever can still refuse it comes before: a process
 * that dies while it only looks costs nothing. */
#ifndef SERVICE_NOTES_H
#define SERVICE_NOTES_H

#include "daemon/device/operations/op.h"
#include "daemon/service/service.h"

enum { NOTES_FEW = 4 };

struct notes {
	struct store *store;
	struct store_write **writes; /* `few`, or of the service's heap */
	unsigned n, room;
	bool have_begun;
	struct store_write *few[NOTES_FEW];
};

/* Room for all that a checked op writes, and what its kernel may destroy; the op begins them, from where they are.
 * 0; RESOURCE_EXHAUSTED. */
int notes_plan(struct notes *notes, struct service *service, struct op *op, struct npumem_error *error);
/* All of it is whole, as it was or again, or gone and committed. */
void notes_end(struct notes *notes, struct service *service);

#endif
