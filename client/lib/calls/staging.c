/* Checks what the daemon would have checked, as it knows nothing of these segments. A continuous piece is sent
 * from and received where it lies; one with strides through an array of its own. */
#include "client/lib/calls/calls.h"

#include <inttypes.h>
#include <string.h>

#include "client/lib/connection/engine/engine.h"

/* ---- checks ---- */

static int check_stride(const struct staged_tensor *tensor, const struct staging_ask *ask, int64_t elements,
			struct region *region, struct npumem_error *error)
{
	const int64_t stride[4] = {ask->stride->n, ask->stride->c, ask->stride->h, ask->stride->w};
	if (ask->first || (ask->count && ask->count != elements))
		return npumem_error_set(error, NPUMEM_INVALID,
					"a strided transfer moves all %" PRId64 " elements of a tensor", elements);
	if (tensor->is_matrix && ((ask->stride->h | ask->stride->w) & ~INT64_C(1)))
		return npumem_error_set(
			error, NPUMEM_INVALID,
			"a matrix's rows are n and its columns c: its strides of h and w are 0 or 1");
	for (unsigned i = 0; i < 4; i++) {
		bool matters = tensor->extent[i] > 1;
		region->extent[i] = (uint64_t)tensor->extent[i];
		region->stride[i] = matters ? (uint64_t)stride[i] : 1;
		if (matters && stride[i] < 0)
			return npumem_error_set(error, NPUMEM_INVALID,
						"a system memory stride is negative or too large");
		if (matters && !stride[i] && ask->is_read)
			return npumem_error_set(error, NPUMEM_INVALID,
						"a read with a stride of 0 would write two elements to one place");
	}
	return 0;
}

/* Which elements: all that is wrong with them and the segment's bounds. */
static int check(const struct staged_tensor *tensor, const struct staging_ask *ask, size_t segment_bytes,
		 struct region *region, struct npumem_error *error)
{
	/* An array of it has a size: staged_note has seen to that. */
	int64_t elements = tensor->extent[0] * tensor->extent[1] * tensor->extent[2] * tensor->extent[3];
	int status = 0;
	if (ask->first < 0 || ask->first >= elements || ask->count < 0 || ask->count > elements - ask->first)
		return npumem_error_set(error, NPUMEM_INVALID,
					"%" PRId64 " elements from %" PRId64
					" on are not all of a tensor's %" PRId64,
					ask->count, ask->first, elements);
	*region = (struct region){.offset = ask->offset,
				  .element_bytes = tensor->element_bytes,
				  .extent = {1, 1, 1, (uint64_t)(ask->count ? ask->count : elements - ask->first)},
				  .stride = {1, 1, 1, 1}};
	if (ask->stride)
		status = check_stride(tensor, ask, elements, region, error);
	if (status)
		return status;
	if (!region_measure(region))
		return npumem_error_set(error, NPUMEM_INVALID, "a system memory stride is negative or too large");
	if (region->end > segment_bytes)
		return npumem_error_set(error, NPUMEM_INVALID,
					"bytes %" PRIu64 " to %" PRIu64
					" are needed of system memory, which has %zu",
					ask->offset, region->end, segment_bytes);
	return 0;
}

/* ---- the array ---- */

int staging_begin(struct npumem *npumem, const struct staging_ask *ask, struct staging *staging,
		  struct npumem_error *error)
{
	struct staged_segment *segment = staged_segment(&npumem->staged, ask->segment->id);
	const struct staged_tensor *tensor = staged_find(&npumem->staged, ask->handle);
	*staging = (struct staging){.first = (uint64_t)ask->first};
	if (!tensor)
		return npumem_error_set(error, NPUMEM_NOT_FOUND,
					"this connection was not told of tensor %" PRIu64
					" (over ssh system memory needs its shape: open or show it first)",
					ask->handle);
	if (!segment)
		return npumem_error_set(error, NPUMEM_NOT_FOUND, "this session shares no segment %" PRIu64,
					ask->segment->id);
	int status = check(tensor, ask, segment->bytes, &staging->region, error);
	if (status)
		return status;
	staging->array = segment->base + ask->offset;
	if (ask->stride) {
		staging->array = staging->own = memory_alloc(npumem->memory, staging->region.bytes);
		if (!staging->own)
			return npumem_error_set(error, NPUMEM_RESOURCE_EXHAUSTED,
						"no memory in this process for an array of %" PRIu64 " bytes",
						staging->region.bytes);
		if (!ask->is_read)
			region_get(&staging->region, segment->base, staging->own);
	}
	staged_keep(segment);
	staging->segment = segment;
	return 0;
}

void staging_put(struct staging *staging, const uint8_t *array)
{
	if (staging->own || array != staging->array)
		region_put(&staging->region, staging->segment->base, 0, array, staging->region.bytes);
}

void staging_end(struct staging *staging)
{
	if (staging->segment)
		memory_free(staging->segment->memory, staging->own);
	staged_drop(staging->segment);
	*staging = (struct staging){.segment = NULL};
}

/* ---- one transfer ---- */

static void end(void *object)
{
	staging_end(object);
}

static int take_all(struct npumem_request *request, struct npumem_error *error)
{
	(void)error;
	if (!request->n_waiting)
		staging_put(request->state, ((struct staging *)request->state)->array);
	return 0;
}

static int send(struct npumem_request *made, const struct staging_ask *ask, struct npumem_error *error)
{
	struct staging *staging = made->state;
	int status = staging_begin(made->npumem, ask, staging, error);
	if (status)
		return status;
	struct transfer transfer = {.handle = ask->handle,
				    .first = (int64_t)staging->first,
				    .element_bytes = staging->region.element_bytes,
				    .bytes = staging->region.bytes,
				    .is_write = !ask->is_read,
				    .from = staging->array,
				    .to = staging->array};
	return transfer_send(made, &transfer, error);
}

int staging_start(struct npumem *npumem, const struct staging_ask *ask, NPUMEM_ASYNC)
{
	static const struct request_kind write_kind = {NPUMEM__V1__RESPONSE__RESULT_DONE, .take = transfer_take};
	static const struct request_kind read_kind = {NPUMEM__V1__RESPONSE__RESULT_DONE, .take = transfer_take,
						      .next = take_all};
	const struct request_kind *kind = ask->is_read ? &read_kind : &write_kind;
	struct npumem_request *made;
	int status = request_new(npumem, kind, 0, callback, context, &made, error);
	if (status)
		return status;
	made->state = result_take(made->results, sizeof(struct staging));
	made->results->destroy = end;
	return request_sent(made, send(made, ask, error), request);
}
