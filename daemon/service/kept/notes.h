/* The store has a note of an operation's writes from before the first byte until before the reply: if the process
 * dies meanwhile, recovery marks the noted elements as lost. All checks come before the note, so that a process
 * that dies during a check loses no data. */
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

/* Plans notes of all that a checked op writes and that its kernel may destroy. The op begins them on its thread,
 * and is refused there if the store has no room. 0; RESOURCE_EXHAUSTED. */
int notes_plan(struct notes *notes, struct service *service, struct op *op, struct npumem_error *error);
/* Ends the notes: the noted elements are unchanged, completely written, or freed and committed. */
void notes_end(struct notes *notes, struct service *service);

#endif
