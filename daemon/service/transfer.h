/* What an operation moved between a tensor and memory that a client shares, kept for the record: of a write the
 * bytes that it took, of a read the CRC-32 of what it delivered. Both are read from the tensor once the operation
 * has run, while nobody else may write there: what the client does to its memory meanwhile does not matter. */
#ifndef SERVICE_TRANSFER_H
#define SERVICE_TRANSFER_H

struct op;
struct recorder_transfer;
struct session;

/* Of an op that passed its check, on the service's thread. NULL: there is nothing to keep, or no room for it,
 * which the recorder is told. */
struct recorder_transfer *transfer_new(struct session *session, const struct op *op);
/* After the op ran, on any thread. */
void transfer_take(struct session *session, const struct op *op, struct recorder_transfer *transfer);

#endif
