/* The steps of a submit that has started: a step is one operation, a chain of them, or one parallel group with its
 * two queues at once. Each operation of a group has a reply of its own, as the two queues end in any order, and
 * they are put into the answer in the order of the list. */
#include "daemon/rpc/handlers/operations/submission.h"

#include "daemon/rpc/calls/charge.h"
#include "daemon/rpc/calls/perform.h"
#include "daemon/rpc/handlers/operations/chain.h"
#include "daemon/rpc/handlers/handler.h"
#include "daemon/service/operations.h"

enum {
	DRY_COST = 50000,	/* at most, of op_costs, in op_cost's unit */
	JOIN_BYTES = 256 << 10, /* of a group's replies; more are joined by a thread */
};

static bool is_refused(const struct submission *submission)
{
	return submission->call->error->status != 0;
}

static int end(struct submission *submission)
{
	struct call *call = submission->call;

	reply_close(&call->reply, submission->mark, submission->expected);
	call->keep_result = true;
	call->error = &call->rpc->error;
	if (submission->error.status)
		*call->error = submission->error;
	heap_free(call->rpc->heap, submission);
	call->submission = NULL;
	return call->error->status;
}

/* ---- a part, or a chain, on a thread ---- */

/* The call may be over after that. */
static void go_on(struct submission *submission)
{
	struct call *call = submission->call;

	submission->spent = 0;
	perform_go_on(call, submission_go_on(call));
}

static void part_done(void *arg)
{
	struct part *part = arg;

	part_end(part);
	go_on(part->submission);
}

static void on_chain_run(void *arg)
{
	struct submission *submission = arg;

	chain_end(submission);
	go_on(submission);
}

/* ---- one step ---- */

static void part_start(struct submission *submission, struct part *part)
{
	struct queue *queue = part_queue(submission, part);
	int64_t cost;

	if (part_begin(submission, part)) {
		queue->is_refused = true;
		part_refuse(submission, part, &part->operate.prepared.op);
		return;
	}
	queue->busy = part;
	cost = handler_op_cost(submission->call, &part->operate.prepared.op);
	if (part->operate.is_dry && cost < DRY_COST)
		cost = DRY_COST;
	if (chain_start(submission, cost, on_chain_run) || operate_run(&part->operate, cost, part_done))
		return;
	submission->spent += cost + CALL_OP_COST;
	part_end(part);
}

/* Room in the answer for all that a group may report: what has run must be in it. */
static void reserve(struct submission *submission)
{
	struct call *call = submission->call;
	size_t total = 0;

	for (size_t i = 0; i < submission->n; i++)
		total += part_bytes(&submission->parts[i]);
	if (!reply_check_cap(&call->reply, total, call->error))
		reply_make_room(&call->reply, total + submission->n * OPERATE_DETAILS_BYTES, call->error);
	charge_in_any_case(call);
}

static void gather(struct submission *submission, struct op *ops[OPERATIONS_GROUP_MAX])
{
	for (size_t i = 0; i < submission->n; i++)
		ops[i] = &submission->parts[i].operate.prepared.op;
}

static void compare(struct call *call)
{
	struct submission *submission = call->submission;
	struct op *ops[OPERATIONS_GROUP_MAX];

	gather(submission, ops);
	operations_check_group(call->session, ops, (unsigned)submission->n, (unsigned)submission->index,
			       call->error);
}

static int on_compared(struct call *call)
{
	struct submission *submission = call->submission;

	if (!is_refused(submission))
		reserve(submission);
	if (is_refused(submission))
		submission->n = 0;
	return submission_go_on(call);
}

/* Prepares the operations of the next step. 0; or, where its two queues are to be compared first, what a handler
 * returns. */
static int step_begin(struct submission *submission)
{
	struct call *call = submission->call;
	struct op *ops[OPERATIONS_GROUP_MAX];

	submission->n = part_group(submission->request, submission->index);
	submission->is_group = submission->n > 1;
	submission->is_chain = false;
	submission->queues[OP_DMA] = submission->queues[OP_COMPUTE] = (struct queue){.next = 0};
	for (size_t i = 0; i < submission->n && !is_refused(submission); i++)
		if (part_prepare(submission, i))
			part_refuse(submission, &submission->parts[i], NULL);
	if (is_refused(submission))
		submission->n = 0;
	if (!submission->n || !submission->is_group)
		return 0;
	gather(submission, ops);
	return perform_later(call, op_group_cost(ops, (unsigned)submission->n), compare, on_compared);
}

/* Puts what ran of a group into the answer, in the order of the list. */
static void join(struct call *call)
{
	struct submission *submission = call->submission;

	for (size_t i = 0; i < submission->n; i++) {
		struct part *part = &submission->parts[i];

		if (part->ran)
			reply_append(&call->reply, part->operate.reply);
		buffer_deinit(&part->out);
	}
}

static void step_over(struct submission *submission)
{
	submission->index += submission->n;
	submission->n = 0;
}

static int on_joined(struct call *call)
{
	step_over(call->submission);
	return submission_go_on(call);
}

/* 0; or, where the answer is to be put together first, what a handler returns. */
static int step_end(struct submission *submission)
{
	struct call *call = submission->call;
	size_t bytes = 0;

	for (size_t i = 0; i < submission->n; i++) {
		struct part *part = &submission->parts[i];

		if (!part->ran)
			continue;
		bytes += reply_used(part->operate.reply);
		operate_record(&part->operate);
	}
	if (submission->is_group)
		return perform_later(call, bytes > JOIN_BYTES ? INT64_MAX : 0, join, on_joined);
	step_over(submission);
	return 0;
}

/* The queue's next operation. What was refused ends its own queue: whether the other one runs must not depend on
 * which of the two is faster. */
static struct part *next_of(struct submission *submission, unsigned number)
{
	struct queue *queue = &submission->queues[number];

	if (queue->is_refused)
		return NULL;
	while (queue->next < submission->n) {
		struct part *part = &submission->parts[queue->next++];

		if (part_queue(submission, part) == queue)
			return part;
	}
	return NULL;
}

static bool is_spent(const struct submission *submission)
{
	return submission->spent > CALL_INLINE_COST;
}

static int yield(struct submission *submission)
{
	submission->spent = 0;
	return perform_pause(submission->call, submission_go_on);
}

/* Starts what the queues have next. 0 where the step is over, else what a handler returns. */
static int queues_go_on(struct submission *submission)
{
	for (unsigned number = 0; number < N_QUEUES; number++) {
		struct queue *queue = &submission->queues[number];
		struct part *part;

		while (!queue->busy && !is_spent(submission) && (part = next_of(submission, number)) &&
		       !part_is_cancelled(submission))
			part_start(submission, part);
	}
	if (is_spent(submission))
		return yield(submission);
	return submission->queues[OP_DMA].busy || submission->queues[OP_COMPUTE].busy ? CALL_ELSEWHERE : 0;
}

static int step_go_on(struct submission *submission)
{
	int status = submission->n ? queues_go_on(submission) : 0;

	return status || !submission->n ? status : step_end(submission);
}

int submission_go_on(struct call *call)
{
	struct submission *submission = call->submission;
	int status;

	call_attribute(call);
	/* An operation has ended elsewhere, and the call waits for its turn. */
	if (call->is_paused)
		return CALL_ELSEWHERE;
	for (;;) {
		status = step_go_on(submission);
		if (status)
			return status;
		if (is_refused(submission) || submission->index >= submission->request->n_operations ||
		    part_is_cancelled(submission))
			return end(submission);
		if (is_spent(submission))
			return yield(submission);
		status = step_begin(submission);
		if (status)
			return status;
	}
}

/* What waits for a thread runs here, which takes no time as it is cancelled. */
static bool withdraw_part(struct submission *submission, struct part *part)
{
	if (submission->is_chain)
		return chain_withdraw(submission);
	if (!operate_withdraw(&part->operate))
		return false;
	part_end(part);
	return true;
}

int submission_withdraw(struct call *call)
{
	struct submission *submission = call->submission;
	bool has_withdrawn = false, is_busy = false;

	for (unsigned i = 0; i < N_QUEUES; i++) {
		struct part *part = submission->queues[i].busy;

		has_withdrawn |= part && withdraw_part(submission, part);
		is_busy |= submission->queues[i].busy != NULL;
	}
	return has_withdrawn && !is_busy ? submission_go_on(call) : CALL_ELSEWHERE;
}

/* ---- its progress ---- */

const struct op *submission_running(const struct call *call, const char **label)
{
	const struct submission *submission = call->submission;
	const struct part *part = submission->queues[OP_COMPUTE].busy;

	if (!part)
		part = submission->queues[OP_DMA].busy;
	if (!part)
		return NULL;
	if (submission->is_chain)
		part = &submission->parts[atomic_load(&submission->n_begun) - 1];
	*label = part_label(call, submission->index + (size_t)(part - submission->parts));
	return &part->operate.prepared.op;
}

static uint64_t parts_done(const struct part *part)
{
	double done = (double)atomic_load(&part->operate.progress.done),
	       total = (double)atomic_load(&part->operate.progress.total);

	if (part->ran)
		return KERNEL_PARTS;
	/* All parts are done before its reply is. */
	return total > 0 ? (uint64_t)(done / total * (KERNEL_PARTS - 1)) : 0;
}

void submission_progress(const struct call *call, uint64_t *done, uint64_t *total)
{
	const struct submission *submission = call->submission;

	*total = submission->request->n_operations * KERNEL_PARTS;
	*done = submission->index * KERNEL_PARTS;
	for (size_t i = 0; i < submission->n; i++)
		*done += parts_done(&submission->parts[i]);
}
