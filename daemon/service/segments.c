/* A session's segments, newest first. */
#include "daemon/service/segments.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <utlist.h>

#include "daemon/service/order/stops.h"
#include "daemon/service/tables.h"

static int check_limits(const struct session *session, uint64_t bytes, struct npumem_error *error)
{
	const struct limits_table *limits = &session->service->limits;
	uint64_t total = 0;
	unsigned n = 0;
	int status;

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
	status = limits_check(limits, session->user, LIMITS_SEGMENTS, 1, error);
	return status ? status : limits_check(limits, session->user, LIMITS_SEGMENT_BYTES, bytes, error);
}

static int check_id(const struct session *session, uint64_t id, struct npumem_error *error)
{
	const struct segment *segment;

	/* So that the ids that the daemon chooses never run out. */
	if (id > INT64_MAX)
		return npumem_error_set(error, NPUMEM_INVALID, "a segment's id is at most %" PRId64, INT64_MAX);
	LL_SEARCH_SCALAR(session->segments, segment, id, id);
	if (!segment)
		return 0;
	return npumem_error_set(error, NPUMEM_INVALID, "this session shares a segment %" PRIu64 " already", id);
}

/* What another request takes meanwhile is charged already, and its id is in use. */
static int take(const struct session *session, uint64_t id, struct segments_memory *memory,
		struct npumem_error *error)
{
	const struct segments_source *source = session->segments_source;
	int status = source->take(source->ctx, memory, error);

	if (status)
		return status;
	status = id ? check_id(session, id, error) : 0;
	if (!status)
		status = check_limits(session, memory->bytes, error);
	if (!status)
		status = stops_check(session, STOPS_MAPPINGS, error);
	if (status)
		source->release(source->ctx, memory);
	memory->price = stops_price(session, STOPS_MAPPINGS);
	return status;
}

int segments_share(struct session *session, uint64_t id, struct segment **out, struct npumem_error *error)
{
	struct segment *segment;
	int status;

	if (!session->segments_source)
		return npumem_error_set(error, NPUMEM_INVALID,
					"no system memory can be shared over this connection");
	segment = heap_zalloc(session->service->heap, 1, sizeof(*segment));
	if (!segment)
		return heap_exhausted(error);
	status = take(session, id, &segment->memory, error);
	if (status) {
		heap_free(session->service->heap, segment);
		return status;
	}
	limits_charge(&session->service->limits, session->user, LIMITS_SEGMENTS, 1);
	limits_charge(&session->service->limits, session->user, LIMITS_SEGMENT_BYTES, segment->memory.bytes);
	segment->id = id ? id : session->last_segment + 1;
	if (segment->id > session->last_segment)
		session->last_segment = segment->id;
	LL_PREPEND(session->segments, segment);
	*out = segment;
	return 0;
}

bool segments_reach(const struct session *session, struct segment *segment, void (*access)(void *arg), void *arg)
{
	const struct segments_source *source = session->segments_source;

	if (source->reach && !source->reach(&segment->memory, access, arg)) {
		atomic_store(&segment->is_broken, true);
		return false;
	}
	if (!source->reach)
		access(arg);
	return true;
}

/* One that is being mapped is not found. */
static int find(const struct session *session, uint64_t id, struct segment **out, struct npumem_error *error)
{
	LL_SEARCH_SCALAR(session->segments, *out, id, id);
	if (*out && (*out)->memory.base)
		return 0;
	return npumem_error_set(error, NPUMEM_NOT_FOUND, "this session shares no segment %" PRIu64, id);
}

int segments_find(const struct session *session, uint64_t id, struct segment **out, struct npumem_error *error)
{
	int status = find(session, id, out, error);

	if (status)
		return status;
	if (atomic_load(&(*out)->is_broken))
		return npumem_error_set(error, NPUMEM_DATA_LOST,
					"the memory of segment %" PRIu64 " has faulted and is not shared any more",
					id);
	return 0;
}

static void drop(struct session *session, struct segment *segment)
{
	LL_DELETE(session->segments, segment);
	limits_give_back(&session->service->limits, session->user, LIMITS_SEGMENTS, 1);
	limits_give_back(&session->service->limits, session->user, LIMITS_SEGMENT_BYTES, segment->memory.bytes);
	session->segments_source->release(session->segments_source->ctx, &segment->memory);
	heap_free(session->service->heap, segment);
}

bool segments_map(const struct session *session, struct segment *segment, void (*done)(void *arg), void *arg)
{
	const struct segments_source *source = session->segments_source;

	if (source->map)
		source->map(source->ctx, &segment->memory, done, arg);
	return source->map;
}

int segments_mapped(struct session *session, struct segment *segment, struct npumem_error *error)
{
	const struct segments_source *source = session->segments_source;
	int status = source->mapped ? source->mapped(source->ctx, &segment->memory) : 0;

	if (!status)
		return 0;
	if (status != -EAGAIN || !stops_check(session, STOPS_MAPPINGS, error))
		npumem_error_set(error, NPUMEM_RESOURCE_EXHAUSTED, "%" PRIu64 " bytes cannot be mapped: %s",
				 segment->memory.bytes, strerror(-status));
	drop(session, segment);
	return NPUMEM_RESOURCE_EXHAUSTED;
}

int segments_unshare(struct session *session, uint64_t id, struct npumem_error *error)
{
	struct segment *segment;
	int status = find(session, id, &segment, error);

	if (!status)
		drop(session, segment);
	return status;
}

void segments_deinit(struct session *session)
{
	while (session->segments)
		drop(session, session->segments);
}
