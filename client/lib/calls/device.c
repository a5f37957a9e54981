/* Calls about the device as a whole: info, dump, compact, plan, shutdown. */
#include <string.h>

#include "client/lib/calls/calls.h"
#include "client/lib/connection/engine/engine.h"
#include "client/lib/messages/message.h"
#include "client/lib/messages/reply.h"
#include "proto/convert_numeric.h"

/* What this library knows of; a daemon never refuses over it. */
#define DEVICE_FEATURES (NPUMEM__V1__FEATURE__FEATURE_SUBMIT | NPUMEM__V1__FEATURE__FEATURE_RESUME)

/* ---- info ---- */

static int take_info(struct npumem_request *request, const Npumem__V1__Response *response,
		     struct npumem_error *error)
{
	struct npumem_info *info = result_take(request->results, sizeof(*info));
	if (!info)
		return request_no_memory(error);
	request->answer = info;
	int status = reply_info(response->info, info);
	info->remote = address_is_remote(&request->npumem->remote);
	return status;
}

int npumem_info_async(struct npumem *npumem, NPUMEM_ASYNC)
{
	static const struct request_kind kind = {NPUMEM__V1__RESPONSE__RESULT_INFO, .take = take_info};
	Npumem__V1__InfoRequest info = NPUMEM__V1__INFO_REQUEST__INIT;
	info.features = DEVICE_FEATURES;
	info.details = true;
	return request_call(npumem, &kind, &MESSAGE_REQUEST(INFO, info, &info), NULL, callback, context, request,
			    error);
}

/* ---- dump ---- */

int npumem_dump_async(struct npumem *npumem, int64_t npu, int64_t offset, int64_t bytes, void *to, NPUMEM_ASYNC)
{
	static const struct request_kind kind = {.result = NPUMEM__V1__RESPONSE__RESULT_DUMP};
	Npumem__V1__DumpRequest dump = NPUMEM__V1__DUMP_REQUEST__INIT;
	struct request_extra extra = {.to = to, .to_bytes = bytes > 0 ? (size_t)bytes : 0};
	dump.npu = npu;
	dump.offset = offset;
	dump.bytes = bytes;
	return request_call(npumem, &kind, &MESSAGE_REQUEST(DUMP, dump, &dump), &extra, callback, context, request,
			    error);
}

/* ---- compact ---- */

static int take_compacted(struct npumem_request *request, const Npumem__V1__Response *response,
			  struct npumem_error *error)
{
	const Npumem__V1__Compacted *from = response->compacted;
	struct npumem_compacted *compacted = result_take(request->results, sizeof(*compacted));
	struct npumem_move **moves = reply_rows(request->results, from->n_moves, sizeof(**moves));
	if (!compacted || !moves)
		return request_no_memory(error);
	for (size_t i = 0; i < from->n_moves; i++)
		reply_move(from->moves[i], moves[i]);
	compacted->largest_free_before = from->largest_free_before;
	compacted->largest_free_after = from->largest_free_after;
	compacted->n_moves = (unsigned)from->n_moves;
	compacted->cut = from->cut;
	compacted->moves = (const struct npumem_move *const *)moves;
	request->answer = compacted;
	return 0;
}

int npumem_compact_async(struct npumem *npumem, bool dry_run, NPUMEM_ASYNC)
{
	static const struct request_kind kind = {NPUMEM__V1__RESPONSE__RESULT_COMPACTED, .take = take_compacted};
	Npumem__V1__CompactRequest compact = NPUMEM__V1__COMPACT_REQUEST__INIT;
	compact.dry_run = dry_run;
	return request_call(npumem, &kind, &MESSAGE_REQUEST(COMPACT, compact, &compact), NULL, callback, context,
			    request, error);
}

/* ---- plan ---- */

static int take_plan(struct npumem_request *request, const Npumem__V1__Response *response,
		     struct npumem_error *error)
{
	struct npumem_plan *plan = result_take(request->results, sizeof(*plan));
	if (!plan)
		return request_no_memory(error);
	request->answer = plan;
	return reply_plan(response->plan, plan);
}

int npumem_plan_remote_async(struct npumem *npumem, const struct npumem_spec *spec, NPUMEM_ASYNC)
{
	static const struct request_kind kind = {NPUMEM__V1__RESPONSE__RESULT_PLAN, .take = take_plan};
	Npumem__V1__PlanRequest plan = NPUMEM__V1__PLAN_REQUEST__INIT;
	struct convert_spec converted;
	convert_spec_to(spec, &converted);
	plan.spec = &converted.message;
	return request_call(npumem, &kind, &MESSAGE_REQUEST(PLAN, plan, &plan), NULL, callback, context, request,
			    error);
}

/* ---- shutdown ---- */

/* Who ends a daemon does not look for the next one. */
static int take_shutting_down(struct npumem_request *request, const Npumem__V1__Response *response,
			      struct npumem_error *error)
{
	(void)response;
	(void)error;
	resume_forget(request->npumem);
	return 0;
}

int npumem_shutdown_async(struct npumem *npumem, NPUMEM_ASYNC)
{
	static const struct request_kind kind = {NPUMEM__V1__RESPONSE__RESULT_SHUTTING_DOWN,
						 .take = take_shutting_down};
	Npumem__V1__ShutdownRequest shutdown = NPUMEM__V1__SHUTDOWN_REQUEST__INIT;
	return request_call(npumem, &kind, &MESSAGE_REQUEST(SHUTDOWN, shutdown, &shutdown), NULL, callback,
			    context, request, error);
}

/* ---- Following what happens on the device. ---- */

/* What was subscribed before, for where the daemon refuses this. */
struct before {
	npumem_event_callback *on_event;
	void *context;
};

static void restore(struct npumem_request *request)
{
	const struct before *before = request->state;
	request->npumem->on_event = before->on_event;
	request->npumem->event_context = before->context;
}

int npumem_subscribe_async(struct npumem *npumem, const char *const *kinds, unsigned n,
			   npumem_event_callback *on_event, void *event_context, NPUMEM_ASYNC)
{
	static const struct request_kind kind = {.result = NPUMEM__V1__RESPONSE__RESULT_SUBSCRIBED,
						 .failed = restore};
	Npumem__V1__SubscribeRequest subscribe = NPUMEM__V1__SUBSCRIBE_REQUEST__INIT;
	struct npumem_request *made;
	int status = request_new(npumem, &kind, 0, callback, context, &made, error);
	if (status)
		return status;
	subscribe.n_kinds = n;
	subscribe.kinds = (char **)(uintptr_t)kinds;
	struct before *before = made->state = result_take(made->results, sizeof(*before));
	*before = (struct before){npumem->on_event, npumem->event_context};
	status = request_start(made, &MESSAGE_REQUEST(SUBSCRIBE, subscribe, &subscribe), NULL, request, error);
	if (status)
		return status;
	/* Events may come with the answer. */
	npumem->on_event = on_event;
	npumem->event_context = event_context;
	return 0;
}

/* ---- Numeric planning by the daemon: the same questions and answers as numeric.h, over the wire. ---- */

/* The answer must be to the question's kind. */
static int take_answer(struct npumem_request *request, const Npumem__V1__Response *response,
		       struct npumem_error *error)
{
	const Npumem__V1__Numeric *message = response->numeric;
	struct npumem_numeric_answer *answer = result_take(request->results, sizeof(*answer));
	if (!answer)
		return request_no_memory(error);
	request->answer = answer;
	answer->kind = (enum npumem_numeric_kind)request->n;
	return convert_answer_from(message, answer);
}

int npumem_numeric_remote_async(struct npumem *npumem, const struct npumem_numeric *question, NPUMEM_ASYNC)
{
	static const struct request_kind kind = {NPUMEM__V1__RESPONSE__RESULT_NUMERIC, .take = take_answer};
	struct npumem_request *made;
	struct convert_question asked;
	request_clear(error);
	int status = convert_question_to(question, &asked, error);
	if (!status)
		status = request_new(npumem, &kind, result_room(sizeof(struct npumem_numeric_answer)), callback,
				     context, &made, error);
	if (status)
		return status;
	made->n = question->kind;
	return request_start(made, &MESSAGE_REQUEST(NUMERIC, numeric, &asked.message), NULL, request, error);
}

/* ---- A snapshot, piece by piece. ---- */

int snapshot_take(struct npumem_request *request, const Npumem__V1__Response *response, struct npumem_error *error)
{
	const Npumem__V1__SnapshotPiece *from = response->snapshot;
	struct npumem_piece *piece = result_take(request->results, sizeof(*piece));
	size_t file_bytes = strlen(from->file) + 1;
	char *file = result_array(request->results, file_bytes, 1);
	uint8_t *data = result_array(request->results, from->data.len, 1);
	if (!piece || !file || !data)
		return request_no_memory(error);
	memcpy(file, from->file, file_bytes);
	if (from->data.len)
		memcpy(data, from->data.data, from->data.len);
	*piece = (struct npumem_piece){.snapshot = from->snapshot,
				       .file = file,
				       .file_bytes = from->file_bytes,
				       .offset = from->offset,
				       .data = data,
				       .bytes = from->data.len,
				       .last = from->last};
	request->answer = piece;
	return 0;
}

int snapshot_ask(struct npumem_request *request, uint64_t number, bool record, struct npumem_error *error)
{
	Npumem__V1__SnapshotRequest ask = NPUMEM__V1__SNAPSHOT_REQUEST__INIT;
	ask.snapshot = number;
	ask.record = record;
	return request_send(request, &MESSAGE_REQUEST(SNAPSHOT, snapshot, &ask), NULL, error);
}

int npumem_snapshot_async(struct npumem *npumem, uint64_t snapshot, NPUMEM_ASYNC)
{
	static const struct request_kind kind = {NPUMEM__V1__RESPONSE__RESULT_SNAPSHOT, .take = snapshot_take};
	struct npumem_request *made;
	int status = request_new(npumem, &kind, 0, callback, context, &made, error);
	if (status)
		return status;
	return request_sent(made, snapshot_ask(made, snapshot, false, error), request);
}
