/* A queue with a bound. Invariant: numbers have no gap unless `lost` is set, and once it is, nothing is added.
 * `freeing` is queued exactly while there are dropped entries. */
#include "daemon/service/observed/recorder.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>

#include "daemon/service/segments.h"

/* ---- memory ---- */

/* With the handles and the answer behind it. */
static size_t entry_bytes(const struct recorder_entry *entry)
{
	return sizeof(*entry) + entry->n_handles * sizeof(*entry->handles) + entry->answer_bytes;
}

static void free_transfer(struct recorder *recorder, struct recorder_transfer *transfer)
{
	recorder_release(recorder, transfer, sizeof(*transfer) + transfer->bytes);
}

void recorder_free_transfers(struct recorder *recorder, struct recorder_transfer *transfers)
{
	while (transfers) {
		struct recorder_transfer *next = transfers->next;

		free_transfer(recorder, transfers);
		transfers = next;
	}
}

/* It has no transfers any more. */
static void free_entry(struct recorder *recorder, struct recorder_entry *entry)
{
	recorder_release(recorder, entry->request, entry->bytes);
	recorder_release(recorder, entry, entry_bytes(entry));
}

/* An entry may have very many transfers: one of them is freed, or the entry if it has none. */
static void free_dropped(struct recorder *recorder)
{
	struct recorder_entry *entry = recorder->dropped;
	struct recorder_transfer *transfer = entry->transfers;

	if (transfer) {
		entry->transfers = transfer->next;
		free_transfer(recorder, transfer);
	} else {
		recorder->dropped = entry->next;
		free_entry(recorder, entry);
	}
	if (!recorder->dropped)
		fair_queue_remove(&recorder->freeing);
}

static void free_step(struct fair_work *work)
{
	struct recorder *recorder = (struct recorder *)((char *)work - offsetof(struct recorder, freeing));
	size_t before = recorder->bytes;

	for (unsigned i = 0;
	     recorder->dropped && i < RECORDER_FREED_BLOCKS && before - recorder->bytes < RECORDER_FREED_BYTES;
	     i++)
		free_dropped(recorder);
	if (recorder->dropped)
		fair_queue_add(recorder->queue, recorder->user, work);
}

/* The entries of an earlier recording take no room from this one. An allocation frees about as much as it takes.
 */
static void make_room(struct recorder *recorder, size_t bytes)
{
	while (recorder->dropped && bytes > RECORDER_BYTES_MAX - recorder->bytes)
		free_dropped(recorder);
}

void *recorder_alloc(struct recorder *recorder, size_t bytes)
{
	void *memory = NULL;

	make_room(recorder, bytes);
	if (bytes <= RECORDER_BYTES_MAX - recorder->bytes)
		memory = heap_alloc(recorder->heap, bytes);
	else
		recorder_lose(recorder, "the recorder was too slow for what was asked");
	if (memory)
		recorder->bytes += bytes;
	else
		recorder_lose(recorder, "the daemon is out of host memory");
	return memory;
}

void recorder_release(struct recorder *recorder, void *memory, size_t bytes)
{
	heap_free(recorder->heap, memory);
	recorder->bytes -= bytes;
}

static void drop_entries(struct recorder *recorder)
{
	if (!recorder->first)
		return;
	recorder->last->next = recorder->dropped;
	recorder->dropped = recorder->first;
	recorder->first = recorder->last = NULL;
	fair_queue_add(recorder->queue, recorder->user, &recorder->freeing);
}

void recorder_init(struct recorder *recorder, const struct heap *heap, struct fair_queue *queue,
		   struct fair_user *user)
{
	*recorder = (struct recorder){.heap = heap, .queue = queue, .user = user, .freeing.run = free_step};
}

void recorder_deinit(struct recorder *recorder)
{
	drop_entries(recorder);
	while (recorder->dropped)
		free_dropped(recorder);
}

/* ---- adding ---- */

int recorder_check(const struct recorder *recorder, const struct session *session, struct npumem_error *error)
{
	if (!session_is_admin(session))
		return npumem_error_set(error, NPUMEM_PERMISSION_DENIED,
					"uid %u may not record: that is for root and the daemon's own uid",
					(unsigned)session->uid);
	if (recorder->owner)
		return npumem_error_set(error, NPUMEM_FAILED_PRECONDITION, "session %" PRIu64 " records already",
					recorder->owner->id);
	return 0;
}

static int check_empty(const struct session *session, struct npumem_error *error)
{
	struct device_counts counts;

	device_stat_uncounted(session->service->device, &counts);
	if (counts.tensors)
		return npumem_error_set(error, NPUMEM_FAILED_PRECONDITION,
					"a recording begins on a device without tensors, because what they have "
					"by now is in no request, and there are %" PRId64
					": free them, or begin with a snapshot",
					counts.tensors);
	return 0;
}

static void add_recovery(struct recorder *recorder, const struct service *service)
{
	struct recorder_entry entry = {.before = RECORDER_RECOVERY};

	if (!service->recovered.at_ns)
		return;
	entry.answered_ns = service->events.now_ns ? service->events.now_ns() : 0;
	recorder_add(recorder, &entry);
}

static void add_waiting(struct recorder *recorder, const struct service *service)
{
	struct recorder_entry entry = {.before = RECORDER_SESSION};

	entry.answered_ns = service->events.now_ns ? service->events.now_ns() : 0;
	for (const struct session *session = service->sessions; session; session = session->next) {
		entry.session = session->id;
		entry.uid = session->uid;
		if (session->is_detached)
			recorder_add(recorder, &entry);
	}
}

/* Later requests refer to them. */
static void add_segments(struct recorder *recorder, const struct session *sessions)
{
	for (const struct session *session = sessions; session; session = session->next) {
		struct recorder_entry entry = {
			.session = session->id, .uid = session->uid, .pid = (uint32_t)session->pid};

		for (const struct segment *segment = session->segments; segment; segment = segment->next) {
			if (!segment->memory.base)
				continue; /* its share is answered later, and recorded then */
			entry.segment = segment->id;
			entry.segment_bytes = segment->memory.bytes;
			entry.segment_writable = segment->memory.writable;
			recorder_add(recorder, &entry);
		}
	}
}

void recorder_begin(struct recorder *recorder, struct session *session)
{
	const struct service *service = session->service;

	drop_entries(recorder);
	recorder->owner = session;
	recorder->era++;
	recorder->number = 0;
	recorder->lost = false;
	recorder->reason[0] = 0;
	add_recovery(recorder, service);
	add_waiting(recorder, service);
	add_segments(recorder, service->sessions);
}

int recorder_start(struct recorder *recorder, struct session *session, struct npumem_error *error)
{
	int status = recorder_check(recorder, session, error);

	if (!status)
		status = check_empty(session, error);
	if (!status)
		recorder_begin(recorder, session);
	return status;
}

void recorder_watch_leaves(struct recorder *recorder, void (*leaves)(void *ctx, const struct tensor *tensor),
			   void *ctx)
{
	recorder->leaves = leaves;
	recorder->leaves_ctx = ctx;
}

void recorder_has_all(struct recorder *recorder)
{
	recorder_watch_leaves(recorder, NULL, NULL);
}

void recorder_stop(struct recorder *recorder)
{
	recorder->owner = NULL;
	recorder_has_all(recorder);
}

void recorder_drop(struct recorder *recorder)
{
	recorder_stop(recorder);
	drop_entries(recorder);
}

void recorder_lose(struct recorder *recorder, const char *reason)
{
	if (recorder->lost)
		return;
	recorder->lost = true;
	snprintf(recorder->reason, sizeof(recorder->reason), "%s", reason);
}

static bool add(struct recorder *recorder, const struct recorder_entry *from)
{
	size_t handles = from->n_handles * sizeof(*from->handles), total = entry_bytes(from);
	struct recorder_entry *entry = recorder_alloc(recorder, total);

	if (!entry)
		return false;
	*entry = *from;
	entry->next = NULL;
	entry->number = ++recorder->number;
	entry->taken = 0;
	entry->handles = (uint64_t *)(entry + 1);
	if (handles)
		memcpy(entry->handles, from->handles, handles);
	entry->answer = (uint8_t *)(entry->handles + from->n_handles);
	if (from->answer_bytes)
		memcpy(entry->answer, from->answer, from->answer_bytes);
	entry->request = recorder_alloc(recorder, from->bytes);
	if (!entry->request) {
		recorder_release(recorder, entry, total);
		return false;
	}
	if (from->bytes)
		memcpy(entry->request, from->request, from->bytes);
	if (recorder->last)
		recorder->last->next = entry;
	else
		recorder->first = entry;
	recorder->last = entry;
	return true;
}

void recorder_add(struct recorder *recorder, const struct recorder_entry *entry)
{
	if (!recorder_is_on(recorder) || !add(recorder, entry))
		recorder_free_transfers(recorder, entry->transfers);
}

void recorder_session_end(struct recorder *recorder, const struct session *session)
{
	uint64_t (*now_ns)(void) = session->service->events.now_ns;

	if (recorder->owner == session) {
		recorder_drop(recorder);
	} else if (recorder->owner) {
		recorder_add(recorder, &(struct recorder_entry){.session = session->id,
								.uid = session->uid,
								.pid = (uint32_t)session->pid,
								.answered_ns = now_ns ? now_ns() : 0});
	}
}

void recorder_hand_over(struct recorder *recorder, const struct session *from, const struct session *to)
{
	if (recorder->owner == from)
		recorder->owner = to;
}

/* ---- taking ---- */

bool recorder_peek(const struct recorder *recorder, struct recorder_part *part)
{
	const struct recorder_entry *entry = recorder->first;
	size_t bytes;

	if (!entry)
		return false;
	*part = (struct recorder_part){.entry = entry, .transfer = entry->transfers, .first = entry->taken};
	part->bytes = part->transfer ? part->transfer->data : entry->request;
	bytes = part->transfer ? part->transfer->bytes : entry->bytes;
	part->n = bytes - part->first < RECORDER_PART_BYTES ? bytes - part->first : RECORDER_PART_BYTES;
	part->bytes += part->first;
	part->is_last = !part->transfer && part->first + part->n == bytes;
	return true;
}

void recorder_next(struct recorder *recorder)
{
	struct recorder_entry *entry = recorder->first;
	struct recorder_transfer *transfer = entry->transfers;
	struct recorder_part part;

	recorder_peek(recorder, &part);
	if (part.is_last) {
		recorder->first = entry->next;
		if (!recorder->first)
			recorder->last = NULL;
		free_entry(recorder, entry);
		return;
	}
	entry->taken += part.n;
	if (!transfer || entry->taken < transfer->bytes)
		return;
	entry->transfers = transfer->next;
	entry->taken = 0;
	free_transfer(recorder, transfer);
}
