/* Operations of a network that go to the daemon in one message; their arrays lie in one segment. */
#ifndef CTL_NETWORK_BATCH_H
#define CTL_NETWORK_BATCH_H

#include <npumem/client.h>

enum { BATCH_OPERATIONS = 1024, BATCH_FIELDS = 16384, BATCH_SEGMENT_BYTES = 4 << 20 };

struct batch {
	struct npumem *npumem;
	struct npumem_operation operations[BATCH_OPERATIONS];
	size_t sources[BATCH_OPERATIONS]; /* which operation of the network each is */
	unsigned n;
	struct npumem_operand operands[BATCH_FIELDS / 4];
	size_t n_operands;
	unsigned n_fields;		      /* of the message, at most */
	const struct npumem_segment *segment; /* NULL: none yet */
	size_t used;
};

/* The fields that a run with so many operands and these parameters is in a message, at most. */
unsigned batch_run_fields(unsigned n_operands, const struct npumem_param *params, unsigned n_params);
/* True where so many operations more, with these fields and operands and `bytes` of arrays, fit. */
bool batch_fits(const struct batch *batch, unsigned n, unsigned n_fields, size_t n_operands, size_t bytes);
/* Makes room for `bytes` of arrays in an empty batch. 0 or what creating a segment returns. */
int batch_reserve(struct batch *batch, size_t bytes, struct npumem_error *error);
/* Room for an array in the segment, which batch_reserve has made; its offset. */
size_t batch_take(struct batch *batch, size_t bytes);
/* What one array takes of the segment. */
size_t batch_array_bytes(size_t bytes);
/* One more operation; what it points to stays until the batch is sent. */
struct npumem_operation *batch_add(struct batch *batch, size_t source, unsigned n_fields);
/* Forgets what was sent; the segment stays. */
void batch_empty(struct batch *batch);

#endif
