/* The requests that fetch a snapshot, for npumem_snapshot and for a record that begins with one. */
#ifndef CLIENT_LIB_SNAPSHOT_H
#define CLIENT_LIB_SNAPSHOT_H

#include "client/lib/messages/request.h"

/* Asks for the next piece of that snapshot; of 0 for a new one, and whether a record begins at its moment. 0 or a
 * status. */
int snapshot_ask(struct npumem_request *request, uint64_t number, bool record, struct npumem_error *error);
/* Takes the answer, which becomes the request's: a struct npumem_piece. */
int snapshot_take(struct npumem_request *request, const Npumem__V1__Response *response,
		  struct npumem_error *error);

#endif
