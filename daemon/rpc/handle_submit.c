/* Many operations in one request, in order, with parallel groups.
 * Invariant: what ran is in the answer, and what is not in the answer did not run. */
#include <inttypes.h>
#include <stdio.h>

#include "daemon/rpc/operate.h"
#include "daemon/rpc/submit.h"
#include "daemon/service/operations.h"

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

static int run_one(struct call *call, size_t index, struct prepare_op *prepared)
{
	int status;

	/* Its own share of what was set aside for all is used up now. */
	call->pending -= OPERATE_DONE_BYTES + operate_payload_bytes(&prepared->op);
	status = operate(call, SUBMITTED_DONE, &prepared->op, index);
	return status ? submit_refuse(call, index, &prepared->op) : 0;
}

static int run_single(struct call *call, size_t index, const Npumem__V1__Operation *operation)
{
	struct prepare_op *prepared = call->prepared;

	if (prepare_operation(call->session, operation, prepared, call->error))
		return submit_refuse(call, index, NULL);
	return run_one(call, index, prepared);
}

/* The whole group is prepared and its lanes compared before any of it runs; then each operation is checked as it
 * starts, since it may need what an earlier one of its own lane wrote. */
static int run_group(struct call *call, size_t index, Npumem__V1__Operation *const *operations, unsigned n)
{
	struct op *ops[OPERATIONS_GROUP_MAX];
	struct prepare_op *prepared;
	int status = 0;

	if (n > OPERATIONS_GROUP_MAX) {
		npumem_error_set(call->error, NPUMEM_INVALID,
				 "group %" PRIu32 " has %u operations, and at most %d are possible",
				 operations[0]->group, n, OPERATIONS_GROUP_MAX);
		return submit_refuse(call, index, NULL);
	}
	prepared = heap_zalloc(call->rpc->heap, n, sizeof(*prepared));
	if (!prepared)
		return npumem_error_set(call->error, NPUMEM_RESOURCE_EXHAUSTED,
					"the daemon is out of host memory");
	for (unsigned i = 0; i < n && !status; i++) {
		ops[i] = &prepared[i].op;
		if (prepare_operation(call->session, operations[i], &prepared[i], call->error))
			status = submit_refuse(call, index + i, NULL);
	}
	if (!status)
		status = operations_check_group(call->session, ops, n, (unsigned)index, call->error);
	for (unsigned i = 0; i < n && !status; i++)
		status = run_one(call, index + i, &prepared[i]);
	heap_free(call->rpc->heap, prepared);
	return status;
}

/* What the whole answer needs at least; tensors that are not found are refused in their turn. */
static int reserve(struct call *call, const Npumem__V1__SubmitRequest *request)
{
	struct prepare_op *prepared = call->prepared;
	size_t total = 0;

	for (size_t i = 0; i < request->n_operations; i++) {
		const Npumem__V1__Operation *operation = request->operations[i];
		uint64_t payload = 0;

		if (operation->kind_case == NPUMEM__V1__OPERATION__KIND_READ &&
		    !prepare_read(call->session, operation->read, prepared, NULL))
			payload = operate_payload_bytes(&prepared->op);
		/* At most 2^10 times a tensor's 2^40: it cannot wrap. */
		total += payload + OPERATE_DONE_BYTES;
	}
	call->pending = total;
	return reply_reserve(&call->reply, total + REPLY_TAG_BYTES + REPLY_REST_BYTES, call->error);
}

int submit_open(struct call *call, const Npumem__V1__SubmitRequest *request, struct submit_mark *mark)
{
	int status;

	if (request->n_operations > OPERATIONS_MAX)
		return npumem_error_set(call->error, NPUMEM_INVALID, "%zu operations, and at most %d are possible",
					request->n_operations, OPERATIONS_MAX);
	status = reserve(call, request);
	if (status)
		return status;
	mark->expected = call->pending;
	reply_expect(&call->reply, mark->expected);
	mark->mark = reply_open(&call->reply, NPUMEM__V1__RESPONSE__RESULT_SUBMITTED, mark->expected);
	return 0;
}

void submit_close(struct call *call, const struct submit_mark *mark)
{
	reply_close(&call->reply, mark->mark, mark->expected);
	call->keep_result = true;
}

size_t submit_group(const Npumem__V1__SubmitRequest *request, size_t index)
{
	Npumem__V1__Operation *const *operations = request->operations + index;
	size_t n = 1;

	if (operations[0]->group)
		while (index + n < request->n_operations && operations[n]->group == operations[0]->group)
			n++;
	return n;
}

int handle_submit(struct call *call, const Npumem__V1__SubmitRequest *request)
{
	struct submit_mark mark;
	int status = submit_open(call, request, &mark);

	if (status)
		return status;
	for (size_t i = 0; i < request->n_operations && !status;) {
		Npumem__V1__Operation *const *operations = request->operations + i;
		size_t n = submit_group(request, i);

		status = operations[0]->group ? run_group(call, i, operations, (unsigned)n)
					      : run_single(call, i, operations[0]);
		i += n;
	}
	submit_close(call, &mark);
	return status;
}
