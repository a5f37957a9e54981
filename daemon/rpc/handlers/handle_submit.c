/* A submit runs step by step; a step is one operation, or one parallel group with its two queues at once. Each
 * operation of a group has a reply of its own, as the two queues end in any order, and they are put into the
 * answer in the order of the list. Invariant: what ran is in the answer, and what is not in the answer did not
 * run. */
#include "daemon/rpc/calls/advance.h"
#include "daemon/rpc/calls/charge.h"
#include "daemon/rpc/handlers/handler.h"
#include "daemon/rpc/handlers/progress.h"
#include "daemon/rpc/handlers/submission.h"
#include "daemon/service/operations.h"

enum {
	DRY_COST = 50000,	/* at most, of op_costs, in op_cost's unit */
	JOIN_BYTES = 256 << 10, /* of a group's replies; more are joined by a thread */
};

/* ---- the end ---- */

static bool is_given_up(struct submission *submission)
{
	struct call *call = submission->call;

	if (!atomic_load(&call->progress.cancelled) && !call->peer->is_closing)
		return false;
	npumem_error_clear(call->error);
	npumem_error_set(call->error, NPUMEM_CANCELLED, "the submit was cancelled; what is told of has run");
	submission->refused = 0;
	return true;
}

/* The first refusal in the list is the submit's, whichever came first. */
static void refuse_part(struct submission *submission, struct part *part)
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
	submit_refuse(call, index, part->is_prepared ? &part->operate.prepared.op : NULL);
}

static bool is_refused(const struct submission *submission)
{
	return submission->call->error->status != 0;
}

static void end(struct submission *submission)
{
	struct call *call = submission->call;

	reply_close(&call->reply, submission->mark, submission->expected);
	call->keep_result = true;
	call->error = &call->rpc->error;
	if (submission->error.status)
		*call->error = submission->error;
	heap_free(call->rpc->heap, submission);
	call->submission = NULL;
	call_end(call, call->error->status);
}

/* ---- one operation ---- */

static size_t share(const struct part *part)
{
	return OPERATE_DONE_BYTES + operate_payload_bytes(&part->operate.prepared.op);
}

/* What the rest of the answer takes, however this part's reply turns out. */
static size_t bytes_elsewhere(const struct submission *submission, const struct part *part)
{
	const struct call *call = submission->call;
	size_t bytes = call->pending - share(part);

	for (size_t i = 0; submission->is_chain && i < submission->n; i++)
		bytes -= submission->parts[i].ran ? share(&submission->parts[i]) : 0;
	if (!submission->is_group)
		return bytes;
	bytes += reply_used(&call->reply);
	for (size_t i = 0; i < submission->n; i++)
		if (submission->parts[i].ran)
			bytes += reply_used(submission->parts[i].operate.reply) - share(&submission->parts[i]);
	return bytes;
}

static struct queue *queue_of(struct submission *submission, const struct part *part)
{
	return &submission->queues[submission->is_group ? op_queue(&part->operate.prepared.op) : OP_DMA];
}

void submission_end_part(struct part *part)
{
	struct submission *submission = part->submission;
	struct queue *queue = queue_of(submission, part);

	operate_end(&part->operate, bytes_elsewhere(submission, part));
	part->ran = part->operate.status == 0;
	queue->busy = NULL;
	if (part->ran)
		return;
	queue->is_refused = true;
	refuse_part(submission, part);
}

static void part_done(void *arg)
{
	struct part *part = arg;
	struct submission *submission = part->submission;

	submission_end_part(part);
	submission->spent = 0;
	submission_go_on(submission);
}

/* Of a group each operation answers in a place of its own: only now, as those of all together are megabytes. */
static int part_begin(const struct submission *submission, struct part *part, size_t index)
{
	struct reply *reply = submission->is_group ? &part->own : &submission->call->reply;

	if (reply == &part->own && reply_begin(reply, &part->out))
		return heap_exhausted(&part->operate.error);
	return operate_begin(&part->operate, reply, SUBMITTED_DONE, index);
}

static void part_start(struct submission *submission, struct part *part)
{
	struct queue *queue = queue_of(submission, part);
	int64_t cost;

	if (part_begin(submission, part, submission->index + (size_t)(part - submission->parts))) {
		queue->is_refused = true;
		refuse_part(submission, part);
		return;
	}
	queue->busy = part;
	cost = call_op_cost(submission->call, &part->operate.prepared.op);
	if (part->operate.is_dry && cost < DRY_COST)
		cost = DRY_COST;
	if (chain_start(submission, cost) || operate_run(&part->operate, cost, part_done))
		return;
	submission->spent += cost + CALL_OP_COST;
	submission_end_part(part);
}

/* ---- one step ---- */

/* Room in the answer for all that a group may say, so that what ran can be told. */
static int reserve(struct submission *submission)
{
	struct call *call = submission->call;
	size_t total = 0;
	int status;

	for (size_t i = 0; i < submission->n; i++)
		total += share(&submission->parts[i]);
	status = reply_check_cap(&call->reply, total, call->error);
	if (!status)
		status = reply_make_room(&call->reply, total + submission->n * OPERATE_DETAILS_BYTES, call->error);
	charge_more(call);
	return status;
}

static void gather(struct submission *submission, struct op *ops[OPERATIONS_GROUP_MAX])
{
	for (size_t i = 0; i < submission->n; i++)
		ops[i] = &submission->parts[i].operate.prepared.op;
}

static void compare(void *arg)
{
	struct submission *submission = arg;
	struct call *call = submission->call;
	struct op *ops[OPERATIONS_GROUP_MAX];

	gather(submission, ops);
	operations_check_group(call->session, ops, (unsigned)submission->n, (unsigned)submission->index,
			       call->error);
}

static void compared(void *arg)
{
	struct submission *submission = arg;

	submission->is_comparing = false;
	if (!is_refused(submission))
		reserve(submission);
	submission_go_on(submission);
}

/* Prepares the operations of the next step and has its queues compared. */
static void step_begin(struct submission *submission)
{
	struct call *call = submission->call;
	struct op *ops[OPERATIONS_GROUP_MAX];

	submission->n = submit_group(submission->request, submission->index);
	submission->is_group = submission->n > 1;
	submission->is_chain = false;
	submission->queues[OP_DMA] = submission->queues[OP_COMPUTE] = (struct queue){.next = 0};
	for (size_t i = 0; i < submission->n; i++)
		submission->parts[i].is_prepared = submission->parts[i].ran = false;
	for (size_t i = 0; i < submission->n && !is_refused(submission); i++) {
		struct part *part = &submission->parts[i];
		int status;

		part->submission = submission;
		operate_init(&part->operate, call);
		status = prepare_operation(&call->binding, submission->request->operations[submission->index + i],
					   &part->operate.prepared, &part->operate.error);
		if (status)
			refuse_part(submission, part);
		part->is_prepared = !status;
	}
	if (is_refused(submission) || !submission->is_group)
		return;
	gather(submission, ops);
	if (call_is_long(op_group_cost(ops, (unsigned)submission->n))) {
		submission->is_comparing = perform_away(call, &submission->work, compare, compared, submission);
		if (submission->is_comparing)
			return;
	}
	compare(submission);
	if (!is_refused(submission))
		reserve(submission);
}

static bool has_run(const struct part *part)
{
	return part->is_prepared && part->ran;
}

/* Puts what ran of a group into the answer, in the order of the list. */
static void join(void *arg)
{
	struct submission *submission = arg;

	for (size_t i = 0; submission->is_group && i < submission->n; i++) {
		struct part *part = &submission->parts[i];

		if (has_run(part))
			reply_append(&submission->call->reply, part->operate.reply);
		buffer_deinit(&part->out);
	}
}

static void step_over(struct submission *submission)
{
	submission->index += submission->n;
	submission->n = 0;
}

static void joined(void *arg)
{
	struct submission *submission = arg;

	submission->is_joining = false;
	step_over(submission);
	submission_go_on(submission);
}

/* False where the answer is put together elsewhere. */
static bool step_end(struct submission *submission)
{
	struct call *call = submission->call;
	size_t bytes = 0;

	for (size_t i = 0; i < submission->n; i++) {
		struct part *part = &submission->parts[i];

		if (!has_run(part))
			continue;
		call->pending -= share(part);
		bytes += submission->is_group ? reply_used(part->operate.reply) : 0;
		operate_record(&part->operate);
	}
	submission->is_joining =
		bytes > JOIN_BYTES && perform_away(call, &submission->work, join, joined, submission);
	if (submission->is_joining)
		return false;
	join(submission);
	step_over(submission);
	return true;
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

/* Whether others are to have a turn of the loop first. */
static bool is_tired(const struct submission *submission)
{
	const struct call *call = submission->call;

	return submission->spent > CALL_INLINE_COST && rpc_has_loop(call->rpc) && call_outlives_message(call);
}

static void yield(struct submission *submission)
{
	submission->spent = 0;
	advance_ready(submission->call);
}

/* Starts what the queues have next. True while something of the step runs elsewhere, or waits for another turn. */
static bool queues_go_on(struct submission *submission)
{
	for (unsigned number = 0; number < N_QUEUES; number++) {
		struct queue *queue = &submission->queues[number];
		struct part *part;

		while (!queue->busy && !is_tired(submission) && (part = next_of(submission, number)) &&
		       !is_given_up(submission))
			part_start(submission, part);
	}
	if (is_tired(submission)) {
		yield(submission);
		return true;
	}
	return submission->queues[OP_DMA].busy || submission->queues[OP_COMPUTE].busy;
}

/* Goes on until something runs elsewhere, others are to have a turn, or all is done. */
void submission_go_on(struct submission *submission)
{
	struct call *call = submission->call;

	call_attribute(call);
	/* It comes here again when the queues were compared, the replies joined, or its turn has come. */
	if (submission->is_comparing || submission->is_joining || call->state == CALL_READY)
		return;
	for (;;) {
		bool is_broken = submission->n && is_refused(submission) && !submission->queues[OP_DMA].next &&
				 !submission->queues[OP_COMPUTE].next;

		if (submission->n && !is_broken && queues_go_on(submission))
			return;
		if (!step_end(submission))
			return;
		if (is_refused(submission) || submission->index >= submission->request->n_operations ||
		    is_given_up(submission)) {
			end(submission);
			return;
		}
		if (is_tired(submission)) {
			yield(submission);
			return;
		}
		step_begin(submission);
		if (submission->is_comparing)
			return;
	}
}

void submit_hurry(struct call *call)
{
	struct submission *submission = call->submission;
	bool is_busy = false;

	for (unsigned i = 0; i < N_QUEUES; i++) {
		struct part *part = submission->queues[i].busy;

		if (part && submission->is_chain)
			chain_withdraw(submission);
		else if (part && operate_withdraw(&part->operate))
			submission_end_part(part);
		is_busy |= submission->queues[i].busy != NULL;
	}
	if (!is_busy)
		submission_go_on(submission);
}

void submit_go_on(struct call *call)
{
	submission_go_on(call->submission);
}

/* Operations of the longest group; 1 where there is none. */
static size_t longest_group(const Npumem__V1__SubmitRequest *request)
{
	size_t n_parts = 1;

	for (size_t i = 0, n; i < request->n_operations; i += n) {
		n = submit_group(request, i);
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

int handle_submit(struct call *call, const Npumem__V1__SubmitRequest *request)
{
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
	progress_follow(call);
	submission_go_on(submission);
	return CALL_ELSEWHERE;
}

/* ---- progress ---- */

const struct op *submit_running(const struct call *call, const char **label)
{
	const struct submission *submission = call->submission;
	const struct part *part = submission->queues[OP_COMPUTE].busy;

	if (!part)
		part = submission->queues[OP_DMA].busy;
	if (!part)
		return NULL;
	if (submission->is_chain)
		part = &submission->parts[atomic_load(&submission->n_begun) - 1];
	*label = submit_label(call, submission->index + (size_t)(part - submission->parts));
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

void submit_progress(const struct call *call, uint64_t *done, uint64_t *total)
{
	const struct submission *submission = call->submission;

	*total = submission->request->n_operations * KERNEL_PARTS;
	*done = submission->index * KERNEL_PARTS;
	for (size_t i = 0; i < submission->n && submission->parts[i].is_prepared; i++)
		*done += parts_done(&submission->parts[i]);
}
