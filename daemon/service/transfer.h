/* What an operation moved between a tensor and memory that a client shares, kept for the record: of a write the
 * bytes that it took, of a read the CRC-32 of what it delivered. Both are read from the tensor once the operation
 * has run, while nobody else may write there: what the client does to its memory meanwhile does not matter. */
#ifndef SERVICE_TRANSFER_H
#define SERVICE_TRANSFER_H

#include "daemon/device/operations/op.h"
#include "daemon/service/session.h"

struct recorder_transfer {
	struct recorder_transfer *next;
	unsigned operation; /* of a submit */
	uint64_t segment, offset;
	struct npumem_dims extent, stride; /* in elements; a matrix is [rows, 1, 1, cols] */
	unsigned element_bytes;
	bool is_read;
	uint32_t crc32; /* of a read */
	size_t bytes;	/* of `data`, all elements of a write, dense; 0 for a read */
	uint8_t data[];
};

/* Of an op that passed its check, on the service's thread. NULL: there is nothing to keep, or no room for it,
 * which the recorder is told. */
struct recorder_transfer *transfer_new(struct session *session, const struct op *op);
/* After the op ran, on any thread. */
void transfer_take(struct session *session, const struct op *op, struct recorder_transfer *transfer);
/* NULL: nothing. */
void transfer_free(struct recorder *recorder, struct recorder_transfer *transfer);

#endif
