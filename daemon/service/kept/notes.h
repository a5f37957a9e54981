/* What an operation writes is noted in the store from before its first byte until before its reply: what is noted
 * when the process dies is lost, and not taken for whole. Whatever can still refuse it comes before: a process
 * that dies while it only looks costs nothing. */
#ifndef SERVICE_NOTES_H
#define SERVICE_NOTES_H

#include "daemon/device/operations/op.h"
#include "daemon/store/store.h"

struct service;

enum { NOTES_FEW = 4 };

struct notes {
	struct store *store;
	struct store_note *all; /* `few`, or of the service's heap */
	unsigned n, room;
	bool have_begun;
	struct store_note few[NOTES_FEW];
};

/* Of all that a checked op writes, and what its kernel may destroy; the op begins them on its thread, and is
 * refused there where the store has no room. 0; RESOURCE_EXHAUSTED. */
int notes_plan(struct notes *notes, struct service *service, struct op *op, struct npumem_error *error);
/* All of it is whole, as it was or again, or gone and committed. */
void notes_end(struct notes *notes, struct service *service);

#endif
