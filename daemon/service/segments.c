/* A session's segments, newest first. */
#include "daemon/service/segments.h"

#include <inttypes.h>
#include <utlist.h>

static int check_limits(const struct session *session, uint64_t bytes, struct npumem_error *error)
{
	uint64_t total = 0;
	unsigned n = 0;

	for (const struct segment *segment = session->segments; segment; segment = segment->next, n++)
		total += segment->memory.bytes;
	if (n >= SEGMENTS_MAX)
		return npumem_error_set(error, NPUMEM_RESOURCE_EXHAUSTED,
					"the session shares %u segments, the most it may", n);
	if (bytes > SEGMENTS_BYTES_MAX - total)
		return npumem_error_set(error, NPUMEM_RESOURCE_EXHAUSTED,
					"%" PRIu64 " bytes more of system memory than the session's %" PRIu64
					" would pass its limit of %" PRIu64,
					bytes, total, SEGMENTS_BYTES_MAX);
	return limits_check(&session->service->limits, session->user, LIMITS_SEGMENT_BYTES, bytes, error);
}

static int check_id(const struct session *session, uint64_t id, struct npumem_error *error)
{
	const struct segment *segment;

	/* So that those that follow are never used up. */
	if (id > INT64_MAX)
		return npumem_error_set(error, NPUMEM_INVALID, "a segment's id is at most %" PRId64, INT64_MAX);
	LL_SEARCH_SCALAR(session->segments, segment, id, id);
	if (!segment)
		return 0;
	return npumem_error_set(error, NPUMEM_INVALID, "this session shares a segment %" PRIu64 " already", id);
}

int segments_share(struct session *session, uint64_t id, struct segment **out, struct npumem_error *error)
{
	const struct segments_source *source = session->segments_source;
	struct segment *segment;
	int status;

	if (!source)
		return npumem_error_set(error, NPUMEM_INVALID,
					"no system memory can be shared over this connection");
	segment = heap_zalloc(session->service->heap, 1, sizeof(*segment));
	if (!segment)
		return heap_exhausted(error);
	status = source->take(source->ctx, &segment->memory, error);
	if (status) {
		heap_free(session->service->heap, segment);
		return status;
	}
	/* What came is taken in any case, so that it is not taken for the next one's. */
	status = id ? check_id(session, id, error) : 0;
	if (!status)
		status = check_limits(session, segment->memory.bytes, error);
	if (status) {
		source->release(source->ctx, &segment->memory);
		heap_free(session->service->heap, segment);
		return status;
	}
	limits_charge(&session->service->limits, session->user, LIMITS_SEGMENT_BYTES, segment->memory.bytes);
	segment->id = id ? id : session->last_segment + 1;
	if (segment->id > session->last_segment)
		session->last_segment = segment->id;
	LL_PREPEND(session->segments, segment);
	*out = segment;
	return 0;
}

bool segments_is_broken(const struct session *session, const uint8_t *base)
{
	const struct segments_source *source = session->segments_source;

	return source && source->is_broken && source->is_broken(source->ctx, base);
}

int segments_find(const struct session *session, uint64_t id, struct segment **out, struct npumem_error *error)
{
	LL_SEARCH_SCALAR(session->segments, *out, id, id);
	if (!*out)
		return npumem_error_set(error, NPUMEM_NOT_FOUND, "this session shares no segment %" PRIu64, id);
	if (segments_is_broken(session, (*out)->memory.base))
		return npumem_error_set(error, NPUMEM_DATA_LOST,
					"the memory of segment %" PRIu64 " has faulted and is not shared any more",
					id);
	return 0;
}

static struct segment *segment_of(const struct session *session, const struct op *op)
{
	struct segment *segment = session->segments;

	while (segment && segment->memory.base != op->system.base)
		segment = segment->next;
	return op->system.shared && !op->system.strided ? segment : NULL;
}

bool segments_are_warm(const struct session *session, const struct op *op)
{
	const struct segment *segment = segment_of(session, op);
	int64_t n = segment ? npumem_place_elements(&op->tensor->place) : 0;
	uint64_t off = op->system.off, bytes;

	if (!segment || op->first < 0 || op->first > n || op->count > n - op->first)
		return false;
	bytes = (uint64_t)(op->count < 0 ? n - op->first : op->count) *
		npumem_dtype_bytes(op->tensor->place.dtype);
	return off >= segment->warm_from && off <= segment->warm_to && bytes <= segment->warm_to - off;
}

static void warm(struct segment *segment, uint64_t from, uint64_t to)
{
	if (from > segment->warm_to || to < segment->warm_from) {
		segment->warm_from = from;
		segment->warm_to = to;
		return;
	}
	segment->warm_from = from < segment->warm_from ? from : segment->warm_from;
	segment->warm_to = to > segment->warm_to ? to : segment->warm_to;
}

void segments_note(struct session *session, const struct op *op, uint64_t ns)
{
	/* Several times what the longest one takes that is believed to be short for being warm. */
	enum { WARM_NS_MAX = 400000 };
	uint64_t bytes = (uint64_t)op->count * npumem_dtype_bytes(op->tensor->place.dtype);
	struct segment *segment = segment_of(session, op);

	if (!segment)
		return;
	if (op->system.warm && ns > WARM_NS_MAX)
		segment->warm_from = segment->warm_to = 0;
	else
		warm(segment, op->system.off, op->system.off + bytes);
}

static void drop(struct session *session, struct segment *segment)
{
	LL_DELETE(session->segments, segment);
	limits_give_back(&session->service->limits, session->user, LIMITS_SEGMENT_BYTES, segment->memory.bytes);
	session->segments_source->release(session->segments_source->ctx, &segment->memory);
	heap_free(session->service->heap, segment);
}

int segments_unshare(struct session *session, uint64_t id, struct npumem_error *error)
{
	struct segment *segment;

	LL_SEARCH_SCALAR(session->segments, segment, id, id);
	if (!segment)
		return npumem_error_set(error, NPUMEM_NOT_FOUND, "this session shares no segment %" PRIu64, id);
	drop(session, segment);
	return 0;
}

void segments_deinit(struct session *session)
{
	while (session->segments)
		drop(session, session->segments);
}
