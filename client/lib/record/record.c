/* Writing a record to a file. Invariant: a file has its end only where nothing of it is missing; one without an
 * end was cut (npumem_replay_cut). */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "client/lib/calls/calls.h"
#include "client/lib/connection/connection.h"
#include "client/lib/connection/engine/engine.h"
#include "client/lib/messages/message.h"
#include "client/lib/messages/reply.h"
#include "client/lib/record/record.h"
#include "proto/digest.h"
#include "proto/frame.h"

/* What a caller sees of one, and what is known of its snapshot. */
struct writing {
	struct npumem_record record; /* first, so that the one is the other */
	enum npumem_record_from from;
	uint64_t digest, n_written; /* n_written: entries and parts */
	bool has_all;
};

static struct writing *writing_of(const struct npumem_record *record)
{
	return (struct writing *)(uintptr_t)record;
}

static int write_all(struct npumem_record *record, const void *bytes, size_t n, struct npumem_error *error)
{
	const char *at = bytes;
	while (n) {
		ssize_t written = write(record->fd, at, n);
		if (written < 0 && errno == EINTR)
			continue;
		if (written <= 0)
			return npumem_error_set(error, NPUMEM_RESOURCE_EXHAUSTED, "cannot write the recording: %s",
						strerror(written ? errno : ENOSPC));
		at += written;
		n -= (size_t)written;
	}
	return 0;
}

static int write_entry(const struct memory *memory, struct npumem_record *record,
		       const Npumem__V1__RecordEntry *entry, struct npumem_error *error)
{
	size_t bytes = npumem__v1__record_entry__get_packed_size(entry);
	uint8_t *room = memory_alloc(memory, FRAME_HEADER_BYTES_MAX + bytes);
	if (!room)
		return npumem_error_set(error, NPUMEM_RESOURCE_EXHAUSTED,
					"no memory in this process for an entry");
	size_t header = frame_header(bytes, room);
	npumem__v1__record_entry__pack(entry, room + header);
	int status = write_all(record, room, header + bytes, error);
	memory_free(memory, room);
	return status;
}

/* ---- what comes ---- */

/* Of a request about a record. */
struct recording {
	struct npumem_record *record;
	struct record_sums *sums; /* of the end */
};

static int take_sums(struct npumem_request *request, const Npumem__V1__Recorded *recorded,
		     struct npumem_error *error)
{
	struct record_sums *sums = result_take(request->results, sizeof(*sums));
	uint32_t *local = result_array(request->results, recorded->n_local, sizeof(*local));
	if (!sums || !local)
		return request_no_memory(error);
	if (recorded->n_local)
		memcpy(local, recorded->local, recorded->n_local * sizeof(*local));
	*sums = (struct record_sums){recorded->hash, local, recorded->n_local};
	request->answer = sums;
	return 0;
}

static int take_entries(struct npumem_request *request, const Npumem__V1__Response *response,
			struct npumem_error *error)
{
	const Npumem__V1__Recorded *recorded = response->recorded;
	struct npumem_record *record = ((const struct recording *)request->state)->record;
	int status = 0;
	record->taken = (unsigned)recorded->n_entries;
	for (size_t i = 0; i < recorded->n_entries && !status; i++) {
		writing_of(record)->n_written++;
		record->entries += !recorded->entries[i]->part;
		status = write_entry(request->npumem->memory, record, recorded->entries[i], error);
	}
	if (recorded->lost && !record->lost) {
		record->lost = true;
		convert_text_from(recorded->reason, record->reason, sizeof(record->reason));
	}
	request->answer = record;
	return status;
}

/* ---- asking ---- */

static int ask(struct npumem_request *request, int action, struct npumem_error *error)
{
	Npumem__V1__RecordRequest record = NPUMEM__V1__RECORD_REQUEST__INIT;
	record.action = (Npumem__V1__RecordAction)action;
	return request_send(request, &MESSAGE_REQUEST(RECORD, record, &record), NULL, error);
}

static struct recording *recording_of(struct npumem_request *made, const struct npumem_record *record)
{
	struct recording *recording = made->state = result_take(made->results, sizeof(*recording));
	recording->record = (struct npumem_record *)(uintptr_t)record;
	return recording;
}

/* While the record is not ended. */
static int take_more(struct npumem_request *request, const Npumem__V1__Response *response,
		     struct npumem_error *error)
{
	struct npumem_record *record = ((const struct recording *)request->state)->record;
	int status = take_entries(request, response, error);
	if (!status && response->recorded->ended && !record->lost) {
		record->lost = true;
		convert_text_from("the daemon was started again", record->reason, sizeof(record->reason));
	}
	return status;
}

static const struct request_kind taking = {.result = NPUMEM__V1__RESPONSE__RESULT_RECORDED, .take = take_more};

int npumem_record_take_async(struct npumem *npumem, const struct npumem_record *record, NPUMEM_ASYNC)
{
	struct npumem_request *made;
	int status = request_new(npumem, &taking, 0, callback, context, &made, error);
	if (status)
		return status;
	recording_of(made, record);
	return request_sent(made, ask(made, NPUMEM__V1__RECORD_ACTION__RECORD_TAKE, error), request);
}

/* ---- checksums ---- */

static int take_only_sums(struct npumem_request *request, const Npumem__V1__Response *response,
			  struct npumem_error *error)
{
	return take_sums(request, response->recorded, error);
}

int record_sums(struct npumem *npumem, const struct record_sums **sums, struct npumem_error *error)
{
	static const struct request_kind kind = {NPUMEM__V1__RESPONSE__RESULT_RECORDED, .take = take_only_sums};
	struct npumem_request *made;
	struct call call;
	int status = call_begin(npumem, &call, error);
	if (!status)
		status = request_new(npumem, &kind, 0, call_answered, &call, &made, error);
	if (!status)
		status = request_sent(made, ask(made, NPUMEM__V1__RECORD_ACTION__RECORD_HASH, error), NULL);
	status = call_wait(&call, status);
	*sums = call.result;
	return status;
}

/* ---- the beginning ---- */

static int write_header(const struct memory *memory, struct npumem_record *record, const Npumem__V1__Info *info,
			struct npumem_error *error)
{
	Npumem__V1__RecordEntry entry = NPUMEM__V1__RECORD_ENTRY__INIT;
	Npumem__V1__Info header = NPUMEM__V1__INFO__INIT;
	header.version = info->version;
	header.n_npus = info->n_npus;
	header.npu_bytes = info->npu_bytes;
	header.n_banks = info->n_banks;
	header.eu_bytes = info->eu_bytes;
	header.rounding = info->rounding;
	header.uninitialized = info->uninitialized;
	header.unchecked_reuse = info->unchecked_reuse;
	header.uid = info->uid;
	entry.header = &header;
	int status = write_all(record, RECORD_MAGIC, RECORD_MAGIC_BYTES, error);
	return status ? status : write_entry(memory, record, &entry, error);
}

static int take_header(struct npumem_request *request, const Npumem__V1__Response *response,
		       struct npumem_error *error)
{
	struct npumem_record *record = ((const struct recording *)request->state)->record;
	struct npumem_info info;
	return reply_info(response->info, &info)
		       ? -1
		       : write_header(request->npumem->memory, record, response->info, error);
}

/* A snapshot and the record are of one moment. */
static int take_snapshot(struct npumem_request *request, const Npumem__V1__Response *response,
			 struct npumem_error *error)
{
	struct npumem_record *record = ((const struct recording *)request->state)->record;
	(void)error;
	record->snapshot = response->snapshot->snapshot;
	request->answer = record;
	return 0;
}

static int next_start(struct npumem_request *request, struct npumem_error *error)
{
	static const struct request_kind with_snapshot = {NPUMEM__V1__RESPONSE__RESULT_SNAPSHOT,
							  .take = take_snapshot};
	enum npumem_record_from from = writing_of(((const struct recording *)request->state)->record)->from;
	request->kind = from == NPUMEM_RECORD_SNAPSHOT ? &with_snapshot : &taking;
	if (from == NPUMEM_RECORD_SNAPSHOT)
		return snapshot_ask(request, 0, true, error);
	return ask(request,
		   from == NPUMEM_RECORD_WATCH ? NPUMEM__V1__RECORD_ACTION__RECORD_WATCH
					       : NPUMEM__V1__RECORD_ACTION__RECORD_START,
		   error);
}

int npumem_record_start_from_async(struct npumem *npumem, int fd, enum npumem_record_from from, NPUMEM_ASYNC)
{
	static const struct request_kind kind = {NPUMEM__V1__RESPONSE__RESULT_INFO, take_header, next_start, NULL};
	Npumem__V1__InfoRequest info = NPUMEM__V1__INFO_REQUEST__INIT;
	struct npumem_request *made;
	int status = request_new(npumem, &kind, 0, callback, context, &made, error);
	if (status)
		return status;
	struct writing *writing = result_take(made->results, sizeof(*writing));
	*writing = (struct writing){.record.fd = fd, .from = from, .digest = digest_begin()};
	recording_of(made, &writing->record);
	return request_start(made, &MESSAGE_REQUEST(INFO, info, &info), NULL, request, error);
}

int npumem_record_start_async(struct npumem *npumem, int fd, NPUMEM_ASYNC)
{
	return npumem_record_start_from_async(npumem, fd, NPUMEM_RECORD_EMPTY, callback, context, request, error);
}

/* ---- its snapshot ---- */

/* The manifest has the checksums of all else. */
static int take_piece(struct npumem_request *request, const Npumem__V1__Response *response,
		      struct npumem_error *error)
{
	struct writing *writing = writing_of(((const struct recording *)request->state)->record);
	int status = snapshot_take(request, response, error);
	const struct npumem_piece *piece = request->answer;
	if (status)
		return status;
	if (!strcmp(piece->file, RECORD_MANIFEST))
		writing->digest = digest_bytes(writing->digest, piece->data, piece->bytes);
	writing->has_all = piece->last;
	return 0;
}

int npumem_record_piece_async(struct npumem *npumem, const struct npumem_record *record, NPUMEM_ASYNC)
{
	static const struct request_kind kind = {NPUMEM__V1__RESPONSE__RESULT_SNAPSHOT, .take = take_piece};
	struct npumem_request *made;
	int status = request_new(npumem, &kind, 0, callback, context, &made, error);
	if (status)
		return status;
	recording_of(made, record);
	return request_sent(made, snapshot_ask(made, record->snapshot, false, error), request);
}

/* ---- the end ---- */

static int write_end(const struct memory *memory, struct npumem_record *record, const struct record_sums *sums,
		     struct npumem_error *error)
{
	Npumem__V1__RecordEntry entry = NPUMEM__V1__RECORD_ENTRY__INIT;
	Npumem__V1__RecordEnd end = NPUMEM__V1__RECORD_END__INIT;
	end.entries = writing_of(record)->n_written;
	end.hash = sums->hash;
	end.n_local = sums->n_local;
	end.local = sums->local;
	end.snapshot = record->snapshot ? writing_of(record)->digest : 0;
	entry.end = &end;
	return write_entry(memory, record, &entry, error);
}

/* Takes what is left, until nothing is. */
static int next_rest(struct npumem_request *request, struct npumem_error *error)
{
	const struct recording *recording = request->state;
	struct npumem_record *record = recording->record;
	if (record->taken)
		return ask(request, NPUMEM__V1__RECORD_ACTION__RECORD_TAKE, error);
	return record->lost ? 0 : write_end(request->npumem->memory, record, recording->sums, error);
}

static int take_end(struct npumem_request *request, const Npumem__V1__Response *response,
		    struct npumem_error *error)
{
	struct recording *recording = request->state;
	int status = take_sums(request, response->recorded, error);
	if (status)
		return status;
	recording->sums = (struct record_sums *)(uintptr_t)request->answer;
	return take_entries(request, response, error);
}

static int next_stop(struct npumem_request *request, struct npumem_error *error)
{
	static const struct request_kind rest = {NPUMEM__V1__RESPONSE__RESULT_RECORDED, take_entries, next_rest,
						 NULL};
	request->kind = &rest;
	return ask(request, NPUMEM__V1__RECORD_ACTION__RECORD_TAKE, error);
}

int npumem_record_stop_async(struct npumem *npumem, const struct npumem_record *record, NPUMEM_ASYNC)
{
	static const struct request_kind kind = {NPUMEM__V1__RESPONSE__RESULT_RECORDED, take_end, next_stop, NULL};
	struct npumem_request *made;
	request_clear(error);
	if (record->snapshot && !writing_of(record)->has_all)
		return npumem_error_set(error, NPUMEM_INVALID,
					"not all pieces of the recording's snapshot were asked for");
	int status = request_new(npumem, &kind, 0, callback, context, &made, error);
	if (status)
		return status;
	recording_of(made, record);
	return request_sent(made, ask(made, NPUMEM__V1__RECORD_ACTION__RECORD_STOP, error), request);
}
