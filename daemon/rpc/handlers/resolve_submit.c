/* All tensors of a submit are found before its first operation runs; where one is not there, nothing runs. */
#include <stdio.h>

#include "daemon/rpc/handlers/handler.h"
#include "daemon/rpc/handlers/submit.h"
#include "daemon/service/operations.h"

enum { PAIR_COST = 400 }; /* of comparing two operations of a group, in op_cost's unit */

size_t submit_group(const Npumem__V1__SubmitRequest *request, size_t index)
{
	Npumem__V1__Operation *const *operations = request->operations + index;
	size_t n = 1;

	if (operations[0]->group)
		while (index + n < request->n_operations && operations[n]->group == operations[0]->group)
			n++;
	return n;
}

int submit_refuse(struct call *call, size_t index, const struct op *op)
{
	struct npumem_error *error = call->error;
	char message[NPUMEM_MESSAGE_BYTES], description[OP_DESCRIPTION_BYTES];

	snprintf(message, sizeof(message), "%s", error->message);
	if (op)
		snprintf(error->message, sizeof(error->message), "operation %zu (%s): %.300s", index,
			 operations_describe(call->session, op, description, sizeof(description)), message);
	else
		snprintf(error->message, sizeof(error->message), "operation %zu: %.480s", index, message);
	npumem_error_number(error, "operation", (int64_t)index);
	return error->status;
}

static int resolve_operation(struct call *call, size_t index, const Npumem__V1__Operation *operation)
{
	int status = prepare_operation(&call->binding, operation, &call->prepared, call->error);

	if (!status) {
		call->pending += OPERATE_DONE_BYTES + operate_payload_bytes(&call->prepared.op);
		status = call_claim_op(call, &call->prepared.op);
	}
	if (!status)
		return 0;
	return status < 0 ? status : submit_refuse(call, index, NULL);
}

int resolve_submit(struct call *call, const Npumem__V1__SubmitRequest *request)
{
	int status = 0;

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
	for (size_t i = 0; i < request->n_operations && !status; i++)
		status = resolve_operation(call, i, request->operations[i]);
	if (!status)
		status = reply_reserve(&call->reply, call->pending + REPLY_TAG_BYTES + REPLY_REST_BYTES,
				       call->error);
	return status;
}
