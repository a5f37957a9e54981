/* What the calls of this room share. */
#ifndef LIB_CALLS_CALLS_H
#define LIB_CALLS_CALLS_H

#include <npumem/async.h>

#include "client/lib/messages/payload.h"
#include "client/lib/messages/request.h"
#include "client/lib/messages/staged.h"
#include "proto/npumem.pb-c.h"

/* transfer.c. A dense array to or from a tensor, in chunks. */

struct transfer {
	uint64_t handle;
	int64_t first;	      /* the element that the array begins with */
	size_t element_bytes; /* 0: in one piece */
	size_t bytes, at;     /* at: how far it is sent */
	bool is_write;
	const uint8_t *from; /* write */
	uint8_t *to;	     /* read */
};

/* All of it, whose element_bytes are set. As request_send; at the first that fails it stops. */
int transfer_send(struct npumem_request *request, struct transfer *transfer, struct npumem_error *error);
/* The `take` of a kind that is answered with a Done for each chunk. */
int transfer_take(struct npumem_request *request, const Npumem__V1__Response *response,
		  struct npumem_error *error);

/* staging.c. DMA with a segment of a connection without shared memory: its elements are sent and received as an
 * array. */

/* Elements of a segment, from where an array of them may be sent, and to where one may come. */
struct staging {
	struct staged_segment *segment; /* a reference; NULL: there is nothing */
	struct region region;
	uint8_t *array; /* dense: in the segment, or: */
	uint8_t *own;
	uint64_t first; /* the element of the tensor that it begins with */
};

/* What is asked for. `count` 0: all from `first`; `stride` NULL: continuous. */
struct staging_ask {
	uint64_t handle;
	const struct npumem_segment *segment;
	uint64_t offset;
	const struct npumem_dims *stride;
	int64_t first, count;
	bool is_read;
};

/* Of a write the elements are gathered. 0 (staging_end is due); NOT_FOUND (no such segment, or a tensor that this
 * connection was not told of), INVALID (as the daemon says it), RESOURCE_EXHAUSTED. */
int staging_begin(struct npumem *npumem, const struct staging_ask *ask, struct staging *staging,
		  struct npumem_error *error);
/* The elements that were read, dense, go to where they belong; `array` may be staging->array. */
void staging_put(struct staging *staging, const uint8_t *array);
/* Of a zeroed one, too. */
void staging_end(struct staging *staging);

/* As npumem_write_segment_async and npumem_read_segment_async. */
int staging_start(struct npumem *npumem, const struct staging_ask *ask, NPUMEM_ASYNC);

/* operations.c. One operation that is answered with a Done; the message of one kernel run, for npumem_run and
 * npumem_submit. */

/* As npumem_X_async. */
int operations_start(struct npumem *npumem, Npumem__V1__Request *message, NPUMEM_ASYNC);

/* What the messages of a run consist of; the arrays are the caller's, large enough. */
struct run_parts {
	Npumem__V1__Operand *operands, **operand_list;
	Npumem__V1__Ref *refs;
	Npumem__V1__Param *params, **param_list;
};

/* 0 or INVALID: no such kernel, or too many operands, parameters or values. */
int run_check(const char *kernel, unsigned n_operands, const struct npumem_param *params, unsigned n_params,
	      struct npumem_error *error);
/* Fills `message` and `parts` from arguments that passed run_check; points into the arguments. */
void run_message(const char *kernel, const struct npumem_operand *operands, unsigned n_operands,
		 const struct npumem_param *params, unsigned n_params, const struct run_parts *parts,
		 Npumem__V1__RunRequest *message);

/* segments.c. What else is needed of system memory than the public headers have. */

/* As npumem_segment_create_async; not `writable`: the daemon can only read it. */
int segments_create_async(struct npumem *npumem, size_t bytes, bool writable, NPUMEM_ASYNC);

/* The requests that fetch a snapshot, for npumem_snapshot and for a record that begins with one. */

/* Asks for the next piece of that snapshot; of 0 for a new one, and whether a record begins at its moment. 0 or a
 * status. */
int snapshot_ask(struct npumem_request *request, uint64_t number, bool record, struct npumem_error *error);
/* Takes the answer, which becomes the request's: a struct npumem_piece. */
int snapshot_take(struct npumem_request *request, const Npumem__V1__Response *response,
		  struct npumem_error *error);

#endif
