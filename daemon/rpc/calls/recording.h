/* What the record is to have of one request and its answer, gathered while it is answered: the answer itself may
 * be megabytes, and is not looked at again. */
#ifndef RPC_RECORDING_H
#define RPC_RECORDING_H

#include <stdint.h>

struct call;
struct recorder_transfer;
struct segment;

struct recording {
	uint64_t digest;
	struct recorder_transfer *first, *last; /* owned */
	const struct segment *shared;		/* that the request shared */
	uint8_t **owner;			/* of the request, where its memory can be taken over; else NULL */
};

void recording_begin(struct recording *recording);
/* An operation that ran; takes over `transfer`, which may be NULL. */
void recording_op(struct recording *recording, uint64_t digest, struct recorder_transfer *transfer);
/* The reply is complete: into the record, where there is one. */
void recording_end(struct call *call, int status);

#endif
