/* All tensors of a submit are found before its first operation runs; where one is not there, nothing runs. */
#include <stdio.h>

#include "daemon/rpc/handlers/handler.h"
#include "daemon/rpc/handlers/submit.h"
#include "daemon/rpc/operate.h"
#include "daemon/service/operations.h"

enum {
	PAIR_COST = 400,     /* of comparing two operations of a group, in op_cost's unit */
	FOUND_AT_ONCE = 128, /* tensors in one turn of the loop: each takes up to 2 us */
};

size_t submit_group(const Npumem__V1__SubmitRequest *request, size_t index)
{
	Npumem__V1__Operation *const *operations = request->operations + index;
	size_t n = 1;

	if (operations[0]->group)
		while (index + n < request->n_operations && operations[n]->group == operations[0]->group)
			n++;
	return n;
}

const char *submit_label(const struct call *call, size_t index)
{
	const char *label = call->request->submit->operations[index]->label;
	struct npumem_error error;

	/* One that is not refused yet. */
	npumem_error_clear(&error);
	return names_check_label(label, &error) ? "" : label;
}

int submit_refuse(struct call *call, size_t index, const struct op *op)
{
	struct npumem_error *error = call->error;
	char message[NPUMEM_MESSAGE_BYTES], description[OP_DESCRIPTION_BYTES] = "";
	const char *label = submit_label(call, index);

	snprintf(message, sizeof(message), "%s", error->message);
	if (op)
		operations_describe(call->session, op, description, sizeof(description));
	snprintf(error->message, sizeof(error->message), "operation %zu%s%.63s%s%s%s: %.*s", index,
		 *label ? " " : "", label, op ? " (" : "", description, op ? ")" : "", op ? 300 : 480, message);
	if (*label)
		npumem_error_text(error, "label", label);
	npumem_error_number(error, "operation", (int64_t)index);
	return error->status;
}

static int resolve_operation(struct call *call, size_t index, const Npumem__V1__Operation *operation)
{
	struct prepare_op prepared;
	int status = names_check_label(operation->label, call->error);

	if (!status)
		status = prepare_operation(&call->binding, operation, &prepared, call->error);

	if (!status) {
		call->pending += OPERATE_DONE_BYTES + operate_payload_bytes(&prepared.op);
		status = call_claim_op(call, &prepared.op);
	}
	if (!status)
		return 0;
	return status < 0 ? status : submit_refuse(call, index, NULL);
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
		n = submit_group(request, i);
		if (n > OPERATIONS_GROUP_MAX) {
			npumem_error_set(call->error, NPUMEM_INVALID,
					 "its group has %zu operations, and at most %d are possible", n,
					 OPERATIONS_GROUP_MAX);
			return submit_refuse(call, i, NULL);
		}
		if (n > 1 && __builtin_add_overflow(call->cost, (int64_t)(n * n / 4) * PAIR_COST, &call->cost))
			call->cost = INT64_MAX;
	}
	return 0;
}

static void restart(struct call *call)
{
	binding_restart(&call->binding);
	claim_deinit(&call->claim);
	claim_init(&call->claim, call->rpc->heap);
	repeat_begin(&call->repeat, call->session);
	npumem_error_clear(call->error);
	call->cost = 0;
	call->reply_bytes = call->pending = call->n_resolved = 0;
}

/* Where others' requests had the same roots in between they have replaced marks of `repeat`, too. */
static void merge_claims(struct call *call)
{
	if (claim_merge(&call->claim) && call->repeat.stamp)
		repeat_never(&call->repeat);
}

/* In as many turns of the loop as it takes, and one more in which all enter their queues. */
int resolve_submit(struct call *call, const Npumem__V1__SubmitRequest *request)
{
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
		status = resolve_operation(call, call->n_resolved, request->operations[call->n_resolved]);
		call->n_resolved++;
	}
	if (was_paused && !status && !is_last_turn)
		return CALL_LATER;
	/* Nothing has held the tensors that were found in earlier turns. */
	if (was_paused && !binding_is_unchanged(&call->binding, call->resolved_at)) {
		restart(call);
		return CALL_LATER;
	}
	if (was_paused && !status)
		merge_claims(call);
	if (!status)
		status = reply_reserve(&call->reply, call->pending + REPLY_TAG_BYTES + REPLY_REST_BYTES,
				       call->error);
	return status;
}
