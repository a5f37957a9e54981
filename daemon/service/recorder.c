/* A queue with a bound. Invariant: numbers have no gap unless `lost` is set, and once it is, nothing is added. */
#include "daemon/service/recorder.h"

#include <stdio.h>

#include "daemon/service/operations.h"

enum { CHUNK_ELEMENTS = 1 << 16 };

void recorder_init(struct recorder *recorder, const struct heap *heap)
{
	*recorder = (struct recorder){.heap = heap};
}

void recorder_free(struct recorder *recorder, struct recorder_entry *entry)
{
	heap_free(recorder->heap, entry);
}

static void forget(struct recorder *recorder)
{
	struct recorder_entry *entry;

	while ((entry = recorder_take(recorder)))
		recorder_free(recorder, entry);
}

void recorder_deinit(struct recorder *recorder)
{
	forget(recorder);
}

int recorder_start(struct recorder *recorder, struct session *session, struct npumem_error *error)
{
	struct device_counts counts;

	if (!session_is_admin(session))
		return npumem_error_set(error, NPUMEM_PERMISSION_DENIED,
					"uid %u may not record: that is for root and the daemon's own uid",
					(unsigned)session->uid);
	if (recorder->owner)
		return npumem_error_set(error, NPUMEM_FAILED_PRECONDITION, "session %llu records already",
					(unsigned long long)recorder->owner->id);
	device_stat(session->service->device, &counts);
	if (counts.tensors)
		return npumem_error_set(error, NPUMEM_FAILED_PRECONDITION,
					"there are %lld tensors, whose beginning would not be in the record",
					(long long)counts.tensors);
	forget(recorder);
	*recorder = (struct recorder){.heap = recorder->heap, .owner = session};
	return 0;
}

void recorder_stop(struct recorder *recorder)
{
	recorder->owner = NULL;
}

void recorder_lose(struct recorder *recorder, const char *reason)
{
	if (recorder->lost)
		return;
	recorder->lost = true;
	snprintf(recorder->reason, sizeof(recorder->reason), "%s", reason);
}

void recorder_add(struct recorder *recorder, const struct recorder_entry *from)
{
	size_t handles = from->n_handles * sizeof(*from->handles), total = sizeof(*from) + handles + from->bytes;
	struct recorder_entry *entry = NULL;

	if (recorder->lost)
		return;
	recorder->number++;
	if (total <= RECORDER_BYTES_MAX - recorder->bytes)
		entry = heap_alloc(recorder->heap, total);
	if (!entry) {
		recorder_lose(recorder, "the recorder was too slow for what was asked");
		return;
	}
	*entry = *from;
	entry->next = NULL;
	entry->number = recorder->number;
	entry->handles = (uint64_t *)(entry + 1);
	entry->request = (uint8_t *)(entry->handles + entry->n_handles);
	if (handles)
		memcpy(entry->handles, from->handles, handles);
	if (entry->bytes)
		memcpy(entry->request, from->request, entry->bytes);
	if (recorder->last)
		recorder->last->next = entry;
	else
		recorder->first = entry;
	recorder->last = entry;
	recorder->bytes += total;
}

struct recorder_entry *recorder_take(struct recorder *recorder)
{
	struct recorder_entry *entry = recorder->first;

	if (!entry)
		return NULL;
	recorder->first = entry->next;
	if (!recorder->first)
		recorder->last = NULL;
	recorder->bytes -= sizeof(*entry) + entry->n_handles * sizeof(*entry->handles) + entry->bytes;
	return entry;
}

void recorder_session_end(struct recorder *recorder, const struct session *session)
{
	if (recorder->owner == session) {
		recorder_stop(recorder);
		forget(recorder);
	} else if (recorder->owner) {
		recorder_add(recorder, &(struct recorder_entry){.session = session->id, .uid = session->uid});
	}
}

/* ---- the hash ---- */

static uint64_t hash_bytes(uint64_t hash, const void *bytes, size_t n)
{
	for (size_t i = 0; i < n; i++)
		hash = (hash ^ ((const uint8_t *)bytes)[i]) * UINT64_C(0x100000001b3);
	return hash;
}

/* What may not be read counts as that. */
static uint64_t hash_chunk(struct session *session, struct tensor *tensor, int64_t first, int64_t count,
			   uint8_t *room, uint64_t hash)
{
	struct op op = {.kind = OP_READ, .tensor = tensor, .first = first, .count = count};
	size_t bytes = (size_t)count * npumem_dtype_bytes(tensor->place.dtype);
	int status;

	op.system.base = room;
	op.system.bytes = bytes;
	status = operations_check(session, &op, NULL);
	if (!status)
		status = operations_run(session, &op, NULL);
	operations_end(session, &op);
	return status ? hash_bytes(hash, "unwritten", 9) : hash_bytes(hash, room, bytes);
}

static uint64_t hash_tensor(struct session *session, struct tensor *tensor, uint8_t *room)
{
	const struct npumem_place *place = &tensor->place;
	const char *name = record_of(tensor)->name;
	int64_t facts[] = {place->dtype,   place->frac_bits, place->shape.n, place->shape.c,
			   place->shape.h, place->shape.w,   place->rows,    place->cols};
	int64_t n = npumem_place_elements(place);
	uint64_t hash = hash_bytes(UINT64_C(0xcbf29ce484222325), name, strlen(name));

	hash = hash_bytes(hash, facts, sizeof(facts));
	for (int64_t at = 0; at < n; at += CHUNK_ELEMENTS)
		hash = hash_chunk(session, tensor, at, n - at < CHUNK_ELEMENTS ? n - at : CHUNK_ELEMENTS, room,
				  hash);
	return hash;
}

int recorder_hash(struct session *session, uint64_t *hash, struct npumem_error *error)
{
	struct device *device = session->service->device;
	uint8_t *room;

	*hash = 0;
	if (!session_is_admin(session))
		return npumem_error_set(error, NPUMEM_PERMISSION_DENIED,
					"uid %u may not ask for a hash of everybody's tensors",
					(unsigned)session->uid);
	room = heap_alloc(session->service->heap, (size_t)CHUNK_ELEMENTS * 4);
	if (!room)
		return npumem_error_set(error, NPUMEM_RESOURCE_EXHAUSTED, "the daemon is out of host memory");
	/* A sum, as the order of the table is none of the tensors' own. */
	for (struct tensor *t = device_next(device, NULL); t; t = device_next(device, t))
		if (!t->base)
			*hash += hash_tensor(session, t, room);
	heap_free(session->service->heap, room);
	return 0;
}
