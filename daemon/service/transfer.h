/* The data that an operation moved between a tensor and a client's shared memory, for the recording: the bytes of
 * a write, the CRC-32 of a read. Both are read from the tensor after the operation, while no other may write
 * there, so that later changes of the client's memory do not matter. */
#ifndef SERVICE_TRANSFER_H
#define SERVICE_TRANSFER_H

struct op;
struct recorder_transfer;
struct session;

/* For an op that passed its check, on the service's thread. NULL: there is nothing to keep, or no room for it, and
 * then the recording is lost. */
struct recorder_transfer *transfer_new(struct session *session, const struct op *op);
/* After the op ran, on any thread. */
void transfer_take(struct session *session, const struct op *op, struct recorder_transfer *transfer);

#endif
