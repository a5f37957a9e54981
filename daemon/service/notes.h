/* What an operation is about to write is noted in the store before it touches a byte, and the note ends before its
 * reply: what is noted when the process dies is lost, and not taken for whole. */
#ifndef SERVICE_NOTES_H
#define SERVICE_NOTES_H

#include "daemon/device/operations/op.h"
#include "daemon/service/service.h"

enum { NOTES_FEW = 4 };

struct notes {
	struct store_write **writes; /* `few`, or of the service's heap */
	unsigned n, room;
	struct store_write *few[NOTES_FEW];
};

/* Notes all that a checked op writes, and what its kernel may destroy. 0; RESOURCE_EXHAUSTED, with nothing noted.
 */
int notes_begin(struct notes *notes, struct service *service, const struct op *op, struct npumem_error *error);
/* All of it is whole again, or gone and committed. */
void notes_end(struct notes *notes, struct service *service);

#endif
