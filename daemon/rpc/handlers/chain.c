/* A long operation of a submit, and those that come after it: a thread runs them one after the other, so that it
 * and the loop are woken once for all. What follows is checked before the first one has run. A check reads no
 * bytes, but what the tensors are and where they lie; while the call has its accesses, nobody changes that. An
 * operation that is refused here is left to its own step, which refuses it in its turn. Invariant: an operation
 * that was begun and did not run is given up, and is not in the answer. */
#include "daemon/rpc/calls/perform.h"
#include "daemon/rpc/calls/charge.h"
#include "daemon/rpc/handlers/submission.h"

enum {
	CHAIN_COST = 10 * CALL_INLINE_COST, /* beside which waking a thread counts for nothing */
	CHAIN_DONE_BYTES = OPERATE_DONE_BYTES + OPERATE_DETAILS_BYTES,
};

static bool has_payload(const struct op *op)
{
	return op->kind == OP_READ && !op->system.segment;
}

/* What a state or a recording is told of an operation is told in its turn. */
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
	size_t n = submission->n, index = submission->index + n, at = call->binding.at;
	struct part *part = &submission->parts[n];
	struct operate *operate = &part->operate;

	if (index == submission->request->n_operations || submission->request->operations[index]->group)
		return false;
	part->submission = submission;
	part->ran = false;
	operate_init(operate, call);
	if (prepare_operation(&call->binding, submission->request->operations[index], &operate->prepared,
			      &operate->error) ||
	    has_payload(&operate->prepared.op) ||
	    reply_make_room(&call->reply, (n + 1) * CHAIN_DONE_BYTES, &operate->error) ||
	    operate_begin(operate, &call->reply, SUBMITTED_DONE, index)) {
		call->binding.at = at;
		return false;
	}
	part->is_prepared = true;
	part->bound = at;
	submission->n++;
	*cost += call_op_cost(call, &operate->prepared.op);
	return true;
}

/* Those from the n-th on have not run. */
static void give_up(struct submission *submission, size_t n)
{
	while (submission->n > n) {
		struct part *part = &submission->parts[--submission->n];

		operate_give_up(&part->operate);
		part->is_prepared = false;
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

static void chain_end(struct submission *submission)
{
	size_t n_begun = atomic_load(&submission->n_begun);

	give_up(submission, n_begun);
	for (size_t i = 0; i < n_begun; i++)
		submission_end_part(&submission->parts[i]);
	submission->queues[OP_DMA].next = submission->n;
	submission->spent = 0;
}

static void chain_done(void *arg)
{
	struct submission *submission = arg;

	chain_end(submission);
	submission_go_on(submission);
}

bool chain_start(struct submission *submission, int64_t cost)
{
	if (!may_chain(submission, cost))
		return false;
	while (submission->n < submission->n_parts && cost < CHAIN_COST && append(submission, &cost))
		;
	if (submission->n == 1)
		return false;
	charge_more(submission->call);
	atomic_store(&submission->n_begun, 1);
	submission->is_chain =
		perform_away(submission->call, &submission->work, run_chain, chain_done, submission);
	if (!submission->is_chain)
		give_up(submission, 1);
	return submission->is_chain;
}

void chain_withdraw(struct submission *submission)
{
	if (!perform_withdraw(&submission->work))
		return;
	run_chain(submission);
	chain_end(submission);
}
