/* Requests that operate: one operation, or a submit of many. All tensors of a submit are found before its first
 * operation runs; where one is not there, nothing runs. Then it runs step by step (submission.h). */
#include "daemon/rpc/calls/charge.h"
#include "daemon/rpc/calls/perform.h"
#include "daemon/rpc/handlers/handler.h"
#include "daemon/rpc/handlers/operations/progress.h"
#include "daemon/rpc/handlers/operations/submission.h"
#include "daemon/service/operations.h"

enum {
	PAIR_COST = 400,     /* of comparing two operations of a group, in op_cost's unit */
	FOUND_AT_ONCE = 128, /* tensors in one turn of the loop: each takes up to 2 us */
};

/* ---- one: write, read, fill, copy, run ---- */

/* The payload may have moved since the request was resolved. */
static void find_payload(struct call *call)
{
	struct op *op = &call->operate->prepared.op;

	if (op->kind == OP_WRITE && !op->system.segment)
		op->system.base = call->request->write->data.data;
}

static int end_single(struct call *call)
{
	struct operate *operate = call->operate;

	call->rpc->clock_ns = operate->end_ns;
	operate_end(operate, 0);
	if (!operate->status)
		operate_record(operate);
	return operate->status;
}

static void on_run(void *arg)
{
	struct call *call = ((struct operate *)arg)->call;

	call_attribute(call);
	perform_go_on(call, end_single(call));
}

static int withdraw_single(struct call *call)
{
	return operate_withdraw(call->operate) ? end_single(call) : CALL_ELSEWHERE;
}

int handle_operation(struct call *call)
{
	struct operate *operate = call->operate;
	struct op *op = &operate->prepared.op;
	int64_t cost = call->cost;
	int status;

	find_payload(call);
	call->withdraw = withdraw_single;
	status = operate_begin(operate, &call->reply, NPUMEM__V1__RESPONSE__RESULT_DONE, 0);
	if (status)
		return status;
	/* What went before it may have written what it reads; and of a run that was checked more is known. */
	if (call->is_in_scheduler || call_is_long(cost))
		cost = handler_op_cost(call, op);
	if (call_is_long(cost) || call_waits_for_disk(call, op))
		progress_follow(call);
	return operate_run(operate, cost, on_run) ? CALL_ELSEWHERE : end_single(call);
}

_Static_assert(NPUMEM__V1__REQUEST__CALL_RUN - NPUMEM__V1__REQUEST__CALL_WRITE ==
		       NPUMEM__V1__OPERATION__KIND_RUN - NPUMEM__V1__OPERATION__KIND_WRITE,
	       "the requests are numbered as the operations of a submit");

int resolve_operation(struct call *call)
{
	const Npumem__V1__Request *request = call->request;
	Npumem__V1__Operation operation = NPUMEM__V1__OPERATION__INIT;
	int status = operate_new(call);

	if (status)
		return status;
	operation.kind_case =
		(Npumem__V1__Operation__KindCase)(NPUMEM__V1__OPERATION__KIND_WRITE + request->call_case -
						  NPUMEM__V1__REQUEST__CALL_WRITE);
	operation.write = request->write; /* or what it is, in the same place */
	status = prepare_operation(&call->binding, &operation, &call->operate->prepared, call->error);
	return status ? status : operate_claim(call);
}

/* ---- a submit: its tensors ---- */

static int resolve_part(struct call *call, size_t index, const Npumem__V1__Operation *operation)
{
	struct prepare_op prepared;
	int status = names_check_label(operation->label, call->error);

	if (!status)
		status = prepare_operation(&call->binding, operation, &prepared, call->error);

	if (!status) {
		call->pending += OPERATE_DONE_BYTES + prepare_payload_bytes(&prepared.op);
		status = handler_claim_op(call, &prepared.op);
	}
	if (!status)
		return 0;
	return status < 0 ? status : part_explain(call, index, NULL);
}

static int check_groups(struct call *call, const Npumem__V1__SubmitRequest *request)
{
	int status = names_check_label(request->label, call->error);

	if (status)
		return status;
	if (request->n_operations > OPERATIONS_MAX)
		return npumem_error_set(call->error, NPUMEM_INVALID, "%zu operations, and at most %d are possible",
					request->n_operations, OPERATIONS_MAX);
	for (size_t i = 0, n; i < request->n_operations; i += n) {
		n = part_group(request, i);
		if (n > OPERATIONS_GROUP_MAX) {
			npumem_error_set(call->error, NPUMEM_INVALID,
					 "its group has %zu operations, and at most %d are possible", n,
					 OPERATIONS_GROUP_MAX);
			return part_explain(call, i, NULL);
		}
		if (n > 1 && __builtin_add_overflow(call->cost, (int64_t)(n * n / 4) * PAIR_COST, &call->cost))
			call->cost = INT64_MAX;
	}
	return 0;
}

static void restart(struct call *call)
{
	binding_restart(&call->binding);
	claim_restart(&call->claim);
	repeat_begin(&call->repeat, call->session);
	npumem_error_clear(call->error);
	call->cost = 0;
	call->reply_bytes = call->pending = call->n_resolved = 0;
}

/* In as many turns of the loop as it takes, and one more in which all enter their queues. */
int resolve_submit(struct call *call)
{
	const Npumem__V1__SubmitRequest *request = call->request->submit;
	bool may_pause = rpc_has_loop(call->rpc), was_paused = call->n_resolved;
	bool is_last_turn = call->n_resolved == request->n_operations;
	size_t most = call->binding.n + FOUND_AT_ONCE;
	int status = was_paused ? 0 : check_groups(call, request);

	/* It changes nothing, however often it is done. */
	if (call->method == METHODS_DRY_RUN)
		call->repeat.stamp = 0;
	if (!was_paused)
		call->resolved_at = call->rpc->service->changes;
	while (!status && call->n_resolved < request->n_operations) {
		if (may_pause && call->binding.n >= most)
			return CALL_LATER;
		status = resolve_part(call, call->n_resolved, request->operations[call->n_resolved]);
		call->n_resolved++;
	}
	if (was_paused && !status && !is_last_turn)
		return CALL_LATER;
	/* Nothing has held the tensors that were found in earlier turns. */
	if (was_paused && !binding_is_unchanged(&call->binding, call->resolved_at)) {
		restart(call);
		return CALL_LATER;
	}
	/* Other requests that had the same roots in between have replaced marks of `repeat`, too. */
	if (was_paused && !status && claim_merge(&call->claim) && call->repeat.stamp)
		repeat_never(&call->repeat);
	if (!status)
		status = reply_reserve(&call->reply, call->pending + REPLY_TAG_BYTES + REPLY_REST_BYTES,
				       call->error);
	return status;
}

/* ---- its run ---- */

/* Operations of the longest group; 1 where there is none. */
static size_t longest_group(const Npumem__V1__SubmitRequest *request)
{
	size_t n_parts = 1;

	for (size_t i = 0, n; i < request->n_operations; i += n) {
		n = part_group(request, i);
		n_parts = n > n_parts ? n : n_parts;
	}
	return n_parts;
}

/* Host memory of a submission, and no less than the replies of a group take: each in a buffer, which begins with
 * BUFFER_LEAST_BYTES and at most doubles, or grows by what is asked for. */
static size_t run_bytes(const struct call *call, size_t n_group, size_t n_parts)
{
	enum {
		PART_REPLY_BYTES =
			BUFFER_LEAST_BYTES + OPERATE_DETAILS_BYTES + REPLY_REST_BYTES + 2 * OPERATE_DONE_BYTES
	};
	size_t bytes = sizeof(struct submission) + n_parts * sizeof(struct part);

	return n_group > 1 ? bytes + n_group * PART_REPLY_BYTES + call->pending : bytes;
}

static struct submission *submission_new(struct call *call, const Npumem__V1__SubmitRequest *request,
					 size_t n_parts)
{
	struct submission *submission;

	/* Megabytes, most of which is never used. */
	submission = heap_alloc(call->rpc->heap, sizeof(*submission) + n_parts * sizeof(struct part));
	if (!submission)
		return NULL;
	memset(submission, 0, offsetof(struct submission, error));
	npumem_error_clear(&submission->error);
	submission->call = call;
	submission->request = request;
	submission->refused = SIZE_MAX;
	submission->n_parts = n_parts;
	for (size_t i = 0; n_parts > 1 && i < n_parts; i++)
		buffer_init(&submission->parts[i].out, call->rpc->heap);
	return submission;
}

int handle_submit(struct call *call)
{
	const Npumem__V1__SubmitRequest *request = call->request->submit;
	struct submission *submission;
	size_t n_group = longest_group(request), n_parts = n_group;

	/* Whether a group's queues are compared elsewhere is not known yet; and payloads must not move once
	 * operations point to them. */
	if (call_is_long(call->cost) && n_parts < CHAIN_MAX)
		n_parts = request->n_operations < CHAIN_MAX ? request->n_operations : CHAIN_MAX;
	if ((call_is_long(call->cost) || n_group > 1) && charge_run(call, run_bytes(call, n_group, n_parts)))
		return call->error->status;
	submission = submission_new(call, request, n_parts);
	if (!submission)
		return heap_exhausted(call->error);
	call->submission = submission;
	call->error = &submission->error;
	submission->expected = call->pending;
	reply_expect(&call->reply, submission->expected);
	submission->mark = reply_open(&call->reply, NPUMEM__V1__RESPONSE__RESULT_SUBMITTED, submission->expected);
	call->withdraw = submission_withdraw;
	progress_follow(call);
	return submission_go_on(call);
}
