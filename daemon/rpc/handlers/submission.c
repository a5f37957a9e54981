/* The steps of a submit that has started: a step is one operation, a chain of them, or one parallel group with its
 * two queues at once. Each operation of a group has a reply of its own, as the two queues end in any order, and
 * they are put into the answer in the order of the list. Invariant: what ran is in the answer, and what is not in
 * the answer did not run. */
#include "daemon/rpc/handlers/submission.h"

#include "daemon/rpc/calls/charge.h"
#include "daemon/rpc/calls/perform.h"
#include "daemon/rpc/handlers/handler.h"
#include "daemon/service/observed/recorder.h"
#include "daemon/service/operations.h"

enum {
	DRY_COST = 50000,		    /* at most, of op_costs, in op_cost's unit */
	JOIN_BYTES = 256 << 10,		    /* of a group's replies; more are joined by a thread */
	CHAIN_COST = 10 * CALL_INLINE_COST, /* to wake a thread costs little beside it */
	CHAIN_DONE_BYTES = OPERATE_DONE_BYTES + OPERATE_DETAILS_BYTES,
};

static bool is_given_up(struct submission *submission)
{
	struct call *call = submission->call;

	if (!atomic_load(&call->progress.cancelled) && !call->peer->is_closing)
		return false;
	npumem_error_clear(call->error);
	npumem_error_set(call->error, NPUMEM_CANCELLED,
			 "the submit was cancelled; the operations in the answer have run");
	submission->refused = 0;
	return true;
}

/* The first refusal in the list is the submit's, whichever came first. */
static void refuse_part(struct submission *submission, struct part *part, const struct op *op)
{
	struct call *call = submission->call;
	size_t index = submission->index + (size_t)(part - submission->parts);

	/* That it was cancelled is said in any case: it did not all run. */
	if (part->operate.error.status == NPUMEM_CANCELLED
		    ? index >= submission->refused && is_given_up(submission)
		    : call->error->status == NPUMEM_CANCELLED)
		return;
	if (index >= submission->refused)
		return;
	submission->refused = index;
	*call->error = part->operate.error;
	submission_refuse(call, index, op);
}

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

/* ---- one operation ---- */

static size_t share(const struct part *part)
{
	return OPERATE_DONE_BYTES + prepare_payload_bytes(&part->operate.prepared.op);
}

/* What the rest of the answer takes, however this part's reply turns out. */
static size_t bytes_elsewhere(const struct submission *submission, const struct part *part)
{
	const struct call *call = submission->call;
	size_t bytes = call->pending - share(part);

	if (!submission->is_group)
		return bytes;
	bytes += reply_used(&call->reply);
	for (size_t i = 0; i < submission->n; i++)
		if (submission->parts[i].ran)
			bytes += reply_used(submission->parts[i].operate.reply);
	return bytes;
}

static struct queue *queue_of(struct submission *submission, const struct part *part)
{
	return &submission->queues[submission->is_group ? op_queue(&part->operate.prepared.op) : OP_DMA];
}

/* It has run, or was refused: it is in the answer, or its queue is over. */
static void end_part(struct part *part)
{
	struct submission *submission = part->submission;
	struct queue *queue = queue_of(submission, part);

	operate_end(&part->operate, bytes_elsewhere(submission, part));
	part->ran = part->operate.status == 0;
	queue->busy = NULL;
	if (part->ran) {
		submission->call->pending -= share(part);
		return;
	}
	queue->is_refused = true;
	refuse_part(submission, part, &part->operate.prepared.op);
}

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

	end_part(part);
	go_on(part->submission);
}

/* Part i takes the operation `index` + i of the request. 0, or what prepare_operation says. */
static int prepare_part(struct submission *submission, size_t i)
{
	struct call *call = submission->call;
	struct part *part = &submission->parts[i];

	part->submission = submission;
	part->ran = false;
	part->bound = call->binding.at;
	operate_init(&part->operate, call);
	return prepare_operation(&call->binding, submission->request->operations[submission->index + i],
				 &part->operate.prepared, &part->operate.error);
}

/* ---- a chain ---- */

/* A long operation, and those behind it: a thread runs them one after the other, so that it and the loop are woken
 * once for all. A check reads no bytes: it depends on what the tensors are and where they lie, which no request
 * changes while the call has its accesses. So operations are checked before an earlier one has run. One that is
 * refused here is left to its own step. One that was begun and has not run is given up, and is not in the answer.
 */

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
	if (prepare_part(submission, n) || has_payload(&operate->prepared.op) ||
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

static void chain_end(struct submission *submission)
{
	size_t n_begun = atomic_load(&submission->n_begun);

	give_up(submission, n_begun);
	for (size_t i = 0; i < n_begun; i++)
		end_part(&submission->parts[i]);
	submission->queues[OP_DMA].next = submission->n;
}

static void on_chain_run(void *arg)
{
	struct submission *submission = arg;

	chain_end(submission);
	go_on(submission);
}

/* The step's one operation, which was begun and costs `cost`, and those behind it run on a thread, as parts of the
 * step. False: the operation is too short or too long for a chain, or is alone; nothing was done. */
static bool chain_start(struct submission *submission, int64_t cost)
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
		perform_away(submission->call, &submission->call->away, run_chain, on_chain_run, submission);
	if (!submission->is_chain)
		give_up(submission, 1);
	return submission->is_chain;
}

/* The call is cancelled. True: no thread had begun the chain, and it has ended. */
static bool chain_withdraw(struct submission *submission)
{
	if (!perform_withdraw(&submission->call->away))
		return false;
	run_chain(submission);
	chain_end(submission);
	return true;
}

/* ---- one step ---- */

/* Of a group each operation answers in a place of its own: only now, as those of all together are megabytes. */
static int part_begin(const struct submission *submission, struct part *part)
{
	size_t index = submission->index + (size_t)(part - submission->parts);
	struct reply *reply = submission->is_group ? &part->own : &submission->call->reply;

	if (reply == &part->own && reply_begin(reply, &part->out))
		return heap_exhausted(&part->operate.error);
	return operate_begin(&part->operate, reply, SUBMITTED_DONE, index);
}

static void part_start(struct submission *submission, struct part *part)
{
	struct queue *queue = queue_of(submission, part);
	int64_t cost;

	if (part_begin(submission, part)) {
		queue->is_refused = true;
		refuse_part(submission, part, &part->operate.prepared.op);
		return;
	}
	queue->busy = part;
	cost = handler_op_cost(submission->call, &part->operate.prepared.op);
	if (part->operate.is_dry && cost < DRY_COST)
		cost = DRY_COST;
	if (chain_start(submission, cost) || operate_run(&part->operate, cost, part_done))
		return;
	submission->spent += cost + CALL_OP_COST;
	end_part(part);
}

/* Room in the answer for all that a group may report: what has run must be in it. */
static void reserve(struct submission *submission)
{
	struct call *call = submission->call;
	size_t total = 0;

	for (size_t i = 0; i < submission->n; i++)
		total += share(&submission->parts[i]);
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

	submission->n = submission_group(submission->request, submission->index);
	submission->is_group = submission->n > 1;
	submission->is_chain = false;
	submission->queues[OP_DMA] = submission->queues[OP_COMPUTE] = (struct queue){.next = 0};
	for (size_t i = 0; i < submission->n && !is_refused(submission); i++)
		if (prepare_part(submission, i))
			refuse_part(submission, &submission->parts[i], NULL);
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

		if (queue_of(submission, part) == queue)
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
		       !is_given_up(submission))
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
		    is_given_up(submission))
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
	end_part(part);
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
