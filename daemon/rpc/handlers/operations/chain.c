/* A long operation, and those behind it: a thread runs them one after the other, so that it and the loop are woken
 * once for all. A check reads no bytes: it depends on what the tensors are and where they lie, which no request
 * changes while the call has its accesses. So operations are checked before an earlier one has run. One that is
 * refused here is left to its own step. One that was begun and has not run is given up, and is not in the answer.
 */
#include "daemon/rpc/handlers/operations/chain.h"

#include "daemon/rpc/calls/charge.h"
#include "daemon/rpc/calls/perform.h"
#include "daemon/rpc/handlers/handler.h"
#include "daemon/service/observed/recorder.h"

enum {
	CHAIN_COST = 10 * CALL_INLINE_COST, /* to wake a thread costs little beside it */
	CHAIN_DONE_BYTES = OPERATE_DONE_BYTES + OPERATE_DETAILS_BYTES,
};

static bool has_payload(const struct op *op)
{
	return op->kind == OP_READ && !op->system.segment;
}

/* With a state or a recording each operation is noted in its turn. */
static bool may_chain(const struct submission *submission, int64_t cost)
{
	const struct call *call = submission->call;
	const struct service *service = call->rpc->service;

	return !submission->is_group && submission->n_parts > 1 && call_is_long(cost) && cost < CHAIN_COST &&
	       !has_payload(&submission->parts[0].operate.prepared.op) && call->rpc->executor.submit &&
	       call_outlives_message(call) && !persist_is_on(&service->persist) &&
	       !recorder_is_on(&service->recorder);
}

/* The next operation of the list, begun. False where it is not for the chain. */
static bool append(struct submission *submission, int64_t *cost)
{
	struct call *call = submission->call;
	size_t n = submission->n, index = submission->index + n;
	struct part *part = &submission->parts[n];
	struct operate *operate = &part->operate;

	if (index == submission->request->n_operations || submission->request->operations[index]->group)
		return false;
	if (part_prepare(submission, n) || has_payload(&operate->prepared.op) ||
	    reply_make_room(&call->reply, (n + 1) * CHAIN_DONE_BYTES, &operate->error) ||
	    operate_begin(operate, &call->reply, SUBMITTED_DONE, index)) {
		call->binding.at = part->bound;
		return false;
	}
	submission->n++;
	*cost += handler_op_cost(call, &operate->prepared.op);
	return true;
}

/* Those from the n-th on have not run. */
static void give_up(struct submission *submission, size_t n)
{
	while (submission->n > n) {
		struct part *part = &submission->parts[--submission->n];

		operate_give_up(&part->operate);
		submission->call->binding.at = part->bound;
	}
}

static void run_chain(void *arg)
{
	struct submission *submission = arg;

	for (size_t i = 0; i < submission->n; i++) {
		struct operate *operate = &submission->parts[i].operate;

		if (i && atomic_load(&submission->call->progress.cancelled))
			return;
		atomic_store(&submission->n_begun, i + 1);
		operate_work(operate);
		if (operate->status)
			return;
	}
}

void chain_end(struct submission *submission)
{
	size_t n_begun = atomic_load(&submission->n_begun);

	give_up(submission, n_begun);
	for (size_t i = 0; i < n_begun; i++)
		part_end(&submission->parts[i]);
	submission->queues[OP_DMA].next = submission->n;
}

bool chain_start(struct submission *submission, int64_t cost, void (*done)(void *submission))
{
	if (!may_chain(submission, cost))
		return false;
	while (submission->n < submission->n_parts && cost < CHAIN_COST && append(submission, &cost))
		;
	if (submission->n == 1)
		return false;
	charge_in_any_case(submission->call);
	atomic_store(&submission->n_begun, 1);
	submission->is_chain =
		perform_away(submission->call, &submission->call->away, false, run_chain, done, submission);
	if (!submission->is_chain)
		give_up(submission, 1);
	return submission->is_chain;
}

bool chain_withdraw(struct submission *submission)
{
	if (!perform_withdraw(&submission->call->away))
		return false;
	run_chain(submission);
	chain_end(submission);
	return true;
}
