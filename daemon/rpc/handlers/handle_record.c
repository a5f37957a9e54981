/* The record of requests and answers: starting it, taking it, ending it. */
#include "daemon/rpc/calls/perform.h"
#include "daemon/rpc/handlers/handler.h"
#include "daemon/rpc/handlers/record_tensors.h"
#include "daemon/service/checksum.h"
#include "daemon/service/observed/recorder.h"
#include "proto/convert.h"

enum {
	RECORDED_ENTRIES = 1, /* Recorded.entries */
	TAKE_BYTES = 1 << 20, /* of one answer: little enough to be copied at once */
	ENTRY_BYTES = 256,    /* a bound of all but bytes and handles, transfer included */
	REASON_BYTES = 2 * RECORDER_REASON_BYTES,
};

static size_t part_bytes(const struct recorder_part *part)
{
	size_t recovery = part->entry->before == RECORDER_RECOVERY ? sizeof(struct recovered) : 0;

	return ENTRY_BYTES + part->n + part->entry->n_handles * 8 + part->entry->answer_bytes + recovery;
}

/* `lines` are RECOVERED_LINES_MAX. */
static void set_recovery(struct recovered *recovered, Npumem__V1__Recovery *message, char **lines)
{
	const struct recover_report *report = &recovered->report;

	npumem__v1__recovery__init(message);
	message->at_ns = recovered->at_ns;
	message->was_closed = recovered->was_clean;
	message->tensors = report->n_tensors;
	message->views = report->n_views;
	message->sessions = report->n_sessions;
	message->ended = report->n_ended;
	message->lost = (uint64_t)report->n_damaged + report->n_refused;
	message->cut = report->n_cut;
	message->n_lines = recovered->n_lines;
	message->lines = lines;
	for (unsigned i = 0; i < recovered->n_lines; i++)
		lines[i] = recovered->lines[i];
}

static void set_transfer(const struct recorder_part *part, Npumem__V1__RecordTransfer *message,
			 Npumem__V1__Dims *extent, Npumem__V1__Dims *stride)
{
	const struct recorder_transfer *transfer = part->transfer;

	npumem__v1__record_transfer__init(message);
	message->operation = transfer->operation;
	message->segment = transfer->segment;
	message->offset = transfer->offset;
	message->element_bytes = transfer->element_bytes;
	convert_dims_to(&transfer->extent, extent);
	convert_dims_to(&transfer->stride, stride);
	message->extent = extent;
	message->stride = stride;
	message->is_read = transfer->is_read;
	message->crc32 = transfer->crc32;
	message->first = part->first;
	message->data = (ProtobufCBinaryData){part->n, (uint8_t *)(uintptr_t)part->bytes};
}

static void set_last(const struct recorder_entry *entry, Npumem__V1__RecordEntry *message,
		     Npumem__V1__Shared *shared)
{
	npumem__v1__shared__init(shared);
	message->session = entry->session;
	message->uid = entry->uid;
	message->pid = entry->pid;
	message->status = (Npumem__V1__Status)entry->status;
	message->digest = entry->digest;
	message->n_handles = entry->n_handles;
	message->handles = entry->handles;
	message->came_ns = entry->came_ns;
	message->answered_ns = entry->answered_ns;
	message->answer = (ProtobufCBinaryData){entry->answer_bytes, entry->answer};
	shared->segment = entry->segment;
	shared->bytes = entry->segment_bytes;
	shared->writable = entry->segment_writable;
	message->shared = entry->segment ? shared : NULL;
	message->before = entry->before;
}

static void add_part(struct call *call, const struct recorder_part *part)
{
	char *lines[RECOVERED_LINES_MAX];
	Npumem__V1__Recovery recovery;
	Npumem__V1__RecordEntry message = NPUMEM__V1__RECORD_ENTRY__INIT;
	Npumem__V1__RecordTransfer transfer;
	Npumem__V1__Dims extent, stride;
	Npumem__V1__Shared shared;

	message.number = part->entry->number;
	message.part = !part->is_last;
	if (part->is_last)
		set_last(part->entry, &message, &shared);
	if (part->entry->before == RECORDER_RECOVERY) {
		set_recovery(&call->rpc->service->recovered, &recovery, lines);
		message.recovery = &recovery;
	}
	if (part->transfer) {
		set_transfer(part, &transfer, &extent, &stride);
		message.transfer = &transfer;
	} else {
		message.request = (ProtobufCBinaryData){part->n, (uint8_t *)(uintptr_t)part->bytes};
	}
	reply_message(&call->reply, RECORDED_ENTRIES, &message.base);
}

static int take(struct call *call, Npumem__V1__Recorded *rest)
{
	struct recorder *recorder = &call->rpc->service->recorder;
	size_t room = recorder->first ? TAKE_BYTES : 0, used = 0, mark;
	struct recorder_part part;
	int status = reply_reserve(&call->reply, room + REASON_BYTES, call->error);

	if (status)
		return status;
	mark = reply_open(&call->reply, NPUMEM__V1__RESPONSE__RESULT_RECORDED, room);
	while (recorder_peek(recorder, &part) && used + part_bytes(&part) <= room) {
		used += part_bytes(&part);
		add_part(call, &part);
		recorder_next(recorder);
	}
	rest->ended = recorder->owner != call->session;
	rest->lost = recorder->lost;
	rest->reason = recorder->reason;
	reply_fields(&call->reply, &rest->base);
	reply_close(&call->reply, mark, room);
	return 0;
}

static int answer(struct call *call, Npumem__V1__Recorded *message)
{
	const struct recorder *recorder = &call->rpc->service->recorder;

	message->lost = recorder->lost;
	message->reason = (char *)(uintptr_t)recorder->reason;
	return reply_result(&call->reply, NPUMEM__V1__RESPONSE__RESULT_RECORDED, &message->base, call->error);
}

/* ---- the device in numbers ---- */

static void run_checksum(struct call *call)
{
	checksum_run(call->task);
}

static int answer_checksum(struct call *call)
{
	struct checksum *checksum = call->task;
	Npumem__V1__Recorded message = NPUMEM__V1__RECORDED__INIT;
	int status;

	message.hash = checksum->hash;
	message.n_local = checksum->n_local;
	message.local = checksum->local;
	status = answer(call, &message);
	checksum_free(checksum);
	return status;
}

static int sum_up(struct call *call, bool is_stop)
{
	int64_t cost = checksum_cost(call->rpc->service);
	struct checksum *checksum;
	int status;

	status = checksum_new(call->session, &checksum, call->error);
	if (status)
		return status;
	/* Before it is made: what it does not count any more must not be in the record. */
	if (is_stop)
		recorder_stop(&call->rpc->service->recorder);
	call->task = checksum;
	return perform_later(call, cost, run_checksum, answer_checksum);
}

static int refuse(struct call *call)
{
	return npumem_error_set(call->error, NPUMEM_FAILED_PRECONDITION, "this session does not record");
}

/* ---- the requests ---- */

static int watch(struct call *call)
{
	Npumem__V1__Recorded message = NPUMEM__V1__RECORDED__INIT;

	return answer(call, &message);
}

static const struct record_steps watching = {.answer = watch};

/* A record that begins with all tensors, or between requests, has the device for itself; one that will be refused
 * does not wait for it. */
int resolve_record(struct call *call)
{
	call->entry.is_exclusive = session_is_admin(call->session) &&
				   call->request->record->action != NPUMEM__V1__RECORD_ACTION__RECORD_TAKE;
	return 0;
}

int handle_record(struct call *call)
{
	const Npumem__V1__RecordRequest *request = call->request->record;
	struct recorder *recorder = &call->rpc->service->recorder;
	Npumem__V1__Recorded message = NPUMEM__V1__RECORDED__INIT;
	int status;

	switch (request->action) {
	case NPUMEM__V1__RECORD_ACTION__RECORD_START:
		status = recorder_start(recorder, call->session, call->error);
		return status ? status : answer(call, &message);
	case NPUMEM__V1__RECORD_ACTION__RECORD_WATCH:
		status = recorder_check(recorder, call->session, call->error);
		return status ? status : record_tensors(call, &watching);
	case NPUMEM__V1__RECORD_ACTION__RECORD_TAKE:
		/* When the record has ended, any administrator may take the entries that are left. */
		if (!session_is_admin(call->session) || (recorder->owner && recorder->owner != call->session))
			return refuse(call);
		return take(call, &message);
	case NPUMEM__V1__RECORD_ACTION__RECORD_STOP:
		return recorder->owner == call->session ? sum_up(call, true) : refuse(call);
	case NPUMEM__V1__RECORD_ACTION__RECORD_HASH:
		return sum_up(call, false);
	default:
		return npumem_error_set(call->error, NPUMEM_INVALID, "record action %d is none",
					(int)request->action);
	}
}
