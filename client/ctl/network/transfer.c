/* Arrays larger than a batch: a piece at a time through the segment, so that memory does not grow with them. A
 * failure between two pieces leaves a part written. */
#include "client/ctl/network/networks.h"

#include <string.h>

#include "client/ctl/core/network/network.h"

/* The model's shape, or the tensor's; samples are its first extent of 1, or come before it. */
static int dims_of(const struct execute *execute, const struct network_operation *operation,
		   const struct npumem_place *place, struct stream_dims *dims, struct npumem_error *why)
{
	int64_t shape[STREAM_DIMS_MAX], elements = 1;
	unsigned n = operation->shape ? (unsigned)json_array_size(operation->shape) : stream_shape(place, shape);
	bool is_good = n < STREAM_DIMS_MAX && (!operation->shape || json_is_array(operation->shape));
	for (unsigned k = 0; k < n && is_good; k++) {
		if (operation->shape)
			shape[k] = json_integer_value(json_array_get(operation->shape, k));
		is_good = shape[k] > 0 && !__builtin_mul_overflow(elements, shape[k], &elements);
	}
	if (!is_good || elements != npumem_place_elements(place))
		return npumem_error_set(why, NPUMEM_INVALID,
					"its \"shape\" is at most %d extents above 0, of %lld elements",
					STREAM_DIMS_MAX - 1, (long long)npumem_place_elements(place));
	*dims = (struct stream_dims){.n = 0};
	if (execute->samples && (!n || shape[0] != 1))
		dims->extent[dims->n++] = (int64_t)execute->samples->n;
	for (unsigned k = 0; k < n; k++)
		dims->extent[dims->n++] = shape[k];
	if (execute->samples && dims->n == n)
		dims->extent[0] = (int64_t)execute->samples->n;
	return 0;
}

int transfer_create(const struct execute *execute, size_t i, struct stream *stream, struct npumem_error *why)
{
	const struct network_operation *operation = &execute->network->operations[i];
	const struct npumem_place *place = &execute->tensors[operation->tensor]->place;
	char path[sizeof(stream->path)];
	FILE *file;
	bool goes_on = execute->samples && execute->samples->at;
	struct stream_dims dims;
	int status = dims_of(execute, operation, place, &dims, why);
	if (!status)
		status = outputs_create(execute->outputs, operation->file, goes_on, &file, why);
	if (status)
		return status;
	snprintf(path, sizeof(path), "%.120s/%.120s", execute->outputs->path, operation->file);
	return stream_create(stream, file, path, place, operation->converts, goes_on ? NULL : &dims, why);
}

int transfer_open(const struct execute *execute, size_t i, struct stream *stream, struct npumem_error *why)
{
	const struct network_operation *operation = &execute->network->operations[i];
	const struct npumem_place *place = &execute->tensors[operation->tensor]->place;
	if (execute->samples && operation->kind == NETWORK_WRITE && operation->converts)
		return samples_open(execute, i, stream, why);
	return files_open(execute->network, operation, place, execute->info->rounding, stream, why);
}

static int open_stream(const struct execute *execute, size_t i, struct stream *stream, struct npumem_error *why)
{
	const struct network_operation *operation = &execute->network->operations[i];
	if (operation->kind == NETWORK_READ)
		return transfer_create(execute, i, stream, why);
	return transfer_open(execute, i, stream, why);
}

/* Elements [stream->at, + n), through the start of the segment. */
static int move(struct execute *execute, const struct network_operation *operation, struct stream *stream,
		size_t n, struct npumem_error *why)
{
	const struct npumem_segment *segment = execute->batch->segment;
	uint64_t handle = execute->tensors[operation->tensor]->handle;
	struct npumem *npumem = execute->ctl->npumem;
	int64_t first = (int64_t)stream->at;
	int status;
	if (operation->kind == NETWORK_WRITE) {
		status = stream_read(stream, segment->base, n, why);
		return status ? status
			      : npumem_write_segment(npumem, handle, segment, 0, NULL, first, (int64_t)n, why);
	}
	status = npumem_read_segment(npumem, handle, segment, 0, NULL, first, (int64_t)n, NULL, why);
	return status ? status : stream_write(stream, segment->base, n, why);
}

int transfer(struct execute *execute, size_t i)
{
	const struct network_operation *operation = &execute->network->operations[i];
	struct npumem_error why = {.status = 0};
	uint64_t start = ctl_now_ns();
	struct stream stream;
	int status = batch_reserve(execute->batch, BATCH_SEGMENT_BYTES, &why);
	if (!status)
		status = open_stream(execute, i, &stream, &why);
	if (status)
		return execute_failed(execute, i, &why);
	bar_part(&execute->bar, i, 1);
	size_t most = BATCH_SEGMENT_BYTES / stream.element_bytes;
	while (stream.at < stream.n && !status) {
		size_t n = stream.n - stream.at < most ? stream.n - stream.at : most;
		status = move(execute, operation, &stream, n, &why);
	}
	if (stream_close(&stream, status, &why))
		return execute_failed(execute, i, &why);
	execute->results[i] =
		(struct execute_result){.ran = true, .ns = ctl_now_ns() - start, .quantized = stream.saturated};
	return CTL_OK;
}
