/* What fits one message (npumem_submit). Invariant: n, n_fields and n_operands are within the daemon's caps, so
 * that it never refuses a batch for its size; arrays do not overlap in the segment. */
#include "client/ctl/network/networks.h"

enum {
	BATCH_OPERATION_FIELDS = 12, /* itself, its group, tensor, segment, offset, … */
	BATCH_OPERAND_FIELDS = 4,    /* itself, role, tensor, handle */
	BATCH_PARAM_FIELDS = 3,	     /* itself, key, values; of these each byte counts: */
	BATCH_VALUE_FIELDS = 10,
	BATCH_ALIGN_BYTES = 64,
};

unsigned batch_run_fields(unsigned n_operands, const struct npumem_param *params, unsigned n_params)
{
	unsigned n = BATCH_OPERATION_FIELDS + n_operands * BATCH_OPERAND_FIELDS;
	for (unsigned i = 0; i < n_params; i++)
		n += BATCH_PARAM_FIELDS + params[i].n_values * BATCH_VALUE_FIELDS;
	return n;
}

size_t batch_array_bytes(size_t bytes)
{
	return (bytes + BATCH_ALIGN_BYTES - 1) / BATCH_ALIGN_BYTES * BATCH_ALIGN_BYTES;
}

bool batch_fits(const struct batch *batch, unsigned n, unsigned n_fields, size_t n_operands, size_t bytes)
{
	size_t room = batch->segment ? batch->segment->bytes : 0;
	return batch->n + n <= BATCH_OPERATIONS && batch->n_fields + n_fields <= BATCH_FIELDS &&
	       batch->n_operands + n_operands <= sizeof(batch->operands) / sizeof(batch->operands[0]) &&
	       bytes <= room - batch->used;
}

int batch_reserve(struct batch *batch, size_t bytes, struct npumem_error *error)
{
	size_t wanted = bytes > BATCH_SEGMENT_BYTES ? bytes : BATCH_SEGMENT_BYTES;
	int status = 0;
	if (batch->segment && bytes <= batch->segment->bytes)
		return 0;
	if (batch->segment)
		status = npumem_segment_close(batch->npumem, batch->segment, error);
	batch->segment = NULL;
	return status ? status : npumem_segment_create(batch->npumem, wanted, &batch->segment, error);
}

size_t batch_take(struct batch *batch, size_t bytes)
{
	size_t offset = batch->used;
	batch->used += batch_array_bytes(bytes);
	return offset;
}

struct npumem_operation *batch_add(struct batch *batch, size_t source, unsigned n_fields)
{
	struct npumem_operation *operation = &batch->operations[batch->n];
	*operation = (struct npumem_operation){.size = sizeof(*operation)};
	batch->sources[batch->n++] = source;
	batch->n_fields += n_fields;
	return operation;
}

void batch_empty(struct batch *batch)
{
	batch->n = batch->n_fields = 0;
	batch->n_operands = batch->used = 0;
}
