/* The record of what is answered: starting it, taking it, ending it. */
#include "daemon/rpc/call.h"
#include "proto/frame.h"

enum {
	RECORDED_ENTRIES = 1, /* Recorded.entries */
	TAKE_BYTES = 1 << 20, /* of one answer, or one entry if that is longer */
	ENTRY_BYTES = 96,     /* a bound of all but request and handles */
};

static size_t entry_bytes(const struct recorder_entry *entry)
{
	return ENTRY_BYTES + entry->bytes + entry->n_handles * 8;
}

static void add_entry(struct reply *reply, struct recorder_entry *entry)
{
	Npumem__V1__RecordEntry message = NPUMEM__V1__RECORD_ENTRY__INIT;

	message.number = entry->number;
	message.session = entry->session;
	message.uid = entry->uid;
	message.status = (Npumem__V1__Status)entry->status;
	message.digest = entry->digest;
	message.n_handles = entry->n_handles;
	message.handles = entry->handles;
	message.request = (ProtobufCBinaryData){entry->bytes, entry->request};
	reply_message(reply, RECORDED_ENTRIES, &message.base);
}

static int take(struct call *call, Npumem__V1__Recorded *rest)
{
	struct recorder *recorder = &call->rpc->service->recorder;
	size_t bytes = 0, n = 0, mark;
	int status;

	for (const struct recorder_entry *entry = recorder->first; entry; entry = entry->next) {
		if (n && bytes + entry_bytes(entry) > TAKE_BYTES)
			break;
		bytes += entry_bytes(entry);
		n++;
	}
	status = reply_reserve(&call->reply, bytes + 2 * RECORDER_REASON_BYTES, call->error);
	if (status)
		return status;
	mark = reply_open(&call->reply, NPUMEM__V1__RESPONSE__RESULT_RECORDED, bytes);
	while (n-- > 0) {
		struct recorder_entry *entry = recorder_take(recorder);

		add_entry(&call->reply, entry);
		recorder_free(recorder, entry);
	}
	rest->lost = recorder->lost;
	rest->reason = recorder->reason;
	reply_fields(&call->reply, &rest->base);
	reply_close(&call->reply, mark, bytes);
	return 0;
}

int handle_record(struct call *call, const Npumem__V1__RecordRequest *request)
{
	struct recorder *recorder = &call->rpc->service->recorder;
	Npumem__V1__Recorded rest = NPUMEM__V1__RECORDED__INIT;
	int status = 0;

	switch (request->action) {
	case NPUMEM__V1__RECORD_ACTION__RECORD_START:
		status = recorder_start(recorder, call->session, call->error);
		break;
	case NPUMEM__V1__RECORD_ACTION__RECORD_TAKE:
		/* After its end, too, whoever is admin takes what is left. */
		if (!session_is_admin(call->session) || (recorder->owner && recorder->owner != call->session))
			return npumem_error_set(call->error, NPUMEM_FAILED_PRECONDITION,
						"this session does not record");
		return take(call, &rest);
	case NPUMEM__V1__RECORD_ACTION__RECORD_STOP:
		if (recorder->owner != call->session)
			return npumem_error_set(call->error, NPUMEM_FAILED_PRECONDITION,
						"this session does not record");
		status = recorder_hash(call->session, &rest.hash, call->error);
		if (!status)
			recorder_stop(recorder);
		break;
	case NPUMEM__V1__RECORD_ACTION__RECORD_HASH:
		status = recorder_hash(call->session, &rest.hash, call->error);
		break;
	default:
		return npumem_error_set(call->error, NPUMEM_INVALID, "record action %d is none",
					(int)request->action);
	}
	rest.lost = recorder->lost;
	rest.reason = recorder->reason;
	return status ? status
		      : reply_result(&call->reply, NPUMEM__V1__RESPONSE__RESULT_RECORDED, &rest.base, call->error);
}
