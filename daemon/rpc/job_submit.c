/* A submit that runs step by step: operation after operation, a parallel group's two lanes at once.
 *
 * A step is one operation or one group; each of its operations has a reply of its own, as the two lanes end in any
 * order, and they are put into the answer in the order of the list. What is refused ends the submit after the
 * other lane's present operation. */
#include <inttypes.h>

#include "daemon/rpc/progress.h"
#include "daemon/rpc/submit.h"
#include "daemon/rpc/touch.h"
#include "daemon/service/operations.h"

enum { N_LANES = 2 };

struct part {
	struct submission *submission;
	struct prepare_op prepared;
	struct call call; /* with a reply of its own */
	struct npumem_error error;
	struct buffer out;
	struct operate operate;
	struct kernel_progress progress;
	int status;
	bool ran;
};

struct lane {
	size_t next;
	struct part *busy;
};

struct submission {
	struct job *job;
	const Npumem__V1__SubmitRequest *request;
	struct submit_mark mark;
	size_t index; /* of the step's first operation */
	size_t n;     /* operations of the step */
	struct part *parts;
	struct lane lanes[N_LANES];
	int64_t spent; /* cost of what was done in the loop since something was last done elsewhere */
	int status;
	bool stepping; /* the loop over lanes is on the stack */
	bool checking; /* the lanes of the step are being compared elsewhere */
};

static void step_lanes(struct submission *submission);

static size_t index_of(const struct submission *submission, const struct part *part)
{
	return submission->index + (size_t)(part - submission->parts);
}

/* The first refusal is the submit's. */
static void refuse(struct submission *submission, const struct part *part, int status, bool prepared)
{
	struct job *job = submission->job;

	if (submission->status)
		return;
	job->error = part->error;
	submission->status = status;
	submit_refuse(&job->call, index_of(submission, part), prepared ? &part->prepared.op : NULL);
}

static void parts_free(struct submission *submission)
{
	const struct heap *heap = submission->job->rpc->heap;

	/* Those after a refused one were never begun. */
	for (size_t i = 0; submission->parts && i < submission->n; i++)
		if (submission->parts[i].submission)
			buffer_deinit(&submission->parts[i].out);
	heap_free(heap, submission->parts);
	submission->parts = NULL;
}

static void submission_end(struct submission *submission)
{
	struct job *job = submission->job;
	int status = submission->status;

	submit_close(&job->call, &submission->mark);
	heap_free(job->rpc->heap, submission);
	job->submission = NULL;
	job_end(job, status);
}

/* ---- one operation ---- */

static void work_part(void *arg)
{
	struct part *part = arg;

	part->status = operate_run(&part->operate, &part->error);
}

static size_t share(const struct part *part)
{
	return OPERATE_DONE_BYTES + operate_payload_bytes(&part->prepared.op);
}

/* What the rest of the answer takes, however this part's reply turns out. */
static size_t bytes_elsewhere(const struct submission *submission, const struct part *part)
{
	const struct call *call = &submission->job->call;
	size_t bytes = call->pending + reply_used(&call->reply) - share(part);

	for (size_t i = 0; i < submission->n; i++) {
		const struct part *other = &submission->parts[i];

		if (other->ran)
			bytes += reply_used(&other->call.reply) - share(other);
	}
	return bytes;
}

static void part_done(void *arg)
{
	struct part *part = arg;
	struct submission *submission = part->submission;

	part->call.pending = bytes_elsewhere(submission, part);
	operate_end(&part->operate, part->status);
	part->ran = part->status == 0;
	if (part->status)
		refuse(submission, part, part->status, true);
	submission->lanes[op_queue(&part->prepared.op)].busy = NULL;
	step_lanes(submission);
}

/* Many short ones are long together: now and then one is done elsewhere, so that the loop sees to others. */
static bool is_long(struct submission *submission, const struct op *op)
{
	if (!__builtin_add_overflow(submission->spent, op_cost(submission->job->call.rpc->service->device, op),
				    &submission->spent) &&
	    !__builtin_add_overflow(submission->spent, TOUCH_OP_COST, &submission->spent) &&
	    submission->spent <= JOB_INLINE_COST)
		return false;
	submission->spent = 0;
	return true;
}

static void part_start(struct submission *submission, struct part *part)
{
	struct op *op = &part->prepared.op;
	int status;

	part->progress.whole = &submission->job->progress;
	op->progress = &part->progress;
	status = operate_begin(&part->operate, &part->call, SUBMITTED_DONE, op);
	if (status) {
		refuse(submission, part, status, true);
		return;
	}
	submission->lanes[op_queue(op)].busy = part;
	job_work(&submission->job->call, is_long(submission, op), work_part, part_done, part);
}

/* ---- one step ---- */

static bool part_init(struct submission *submission, struct part *part)
{
	struct job *job = submission->job;

	part->submission = submission;
	memset(&part->progress, 0, sizeof(part->progress));
	part->status = 0;
	npumem_error_clear(&part->error);
	buffer_init(&part->out, job->rpc->heap);
	part->call = job->call;
	part->call.error = &part->error;
	part->call.prepared = &part->prepared;
	recording_begin(&part->call.recording);
	return !reply_begin(&part->call.reply, &part->out);
}

/* Room in the answer for all that the step may say, so that what ran can be told. */
static int reserve_step(struct submission *submission)
{
	struct call *call = &submission->job->call;
	size_t total = 0;
	int status;

	for (size_t i = 0; i < submission->n; i++)
		total += share(&submission->parts[i]);
	status = reply_check_cap(&call->reply, total, call->error);
	if (!status)
		status = reply_make_room(&call->reply, total + submission->n * OPERATE_DETAILS_BYTES, call->error);
	return status;
}

/* The step may run, or is refused. */
static void step_ready(struct submission *submission)
{
	if (!submission->status)
		submission->status = reserve_step(submission);
	if (submission->status)
		submission->lanes[0].next = submission->lanes[1].next = submission->n;
}

static void gather(const struct submission *submission, struct op *ops[OPERATIONS_GROUP_MAX])
{
	for (size_t i = 0; i < submission->n; i++)
		ops[i] = &submission->parts[i].prepared.op;
}

static void check_group(void *arg)
{
	struct submission *submission = arg;
	struct job *job = submission->job;
	struct op *ops[OPERATIONS_GROUP_MAX];

	gather(submission, ops);
	submission->status = operations_check_group(job->call.session, ops, (unsigned)submission->n,
						    (unsigned)submission->index, &job->error);
}

static void group_checked(void *arg)
{
	struct submission *submission = arg;

	submission->checking = false;
	step_ready(submission);
	step_lanes(submission);
}

/* All pairs of a large group's two lanes take milliseconds. */
static int64_t group_cost(const struct submission *submission)
{
	struct op *ops[OPERATIONS_GROUP_MAX];

	gather(submission, ops);
	return op_group_cost(ops, (unsigned)submission->n);
}

/* Prepares the operations of the next step and has its lanes compared. */
static void step_begin(struct submission *submission)
{
	struct job *job = submission->job;
	size_t n = submit_group(submission->request, submission->index);

	submission->n = n > OPERATIONS_GROUP_MAX ? 1 : n;
	submission->lanes[0] = submission->lanes[1] = (struct lane){.next = 0};
	/* Megabytes, most of which is never used. */
	submission->parts = heap_alloc(job->rpc->heap, submission->n * sizeof(*submission->parts));
	if (!submission->parts) {
		submission->status = npumem_error_set(&job->error, NPUMEM_RESOURCE_EXHAUSTED,
						      "the daemon is out of host memory");
		step_ready(submission);
		return;
	}
	for (size_t i = 0; i < submission->n; i++) {
		submission->parts[i].submission = NULL;
		submission->parts[i].ran = false;
	}
	for (size_t i = 0; i < submission->n && !submission->status; i++) {
		struct part *part = &submission->parts[i];
		int status;

		if (!part_init(submission, part))
			status = npumem_error_set(&part->error, NPUMEM_RESOURCE_EXHAUSTED,
						  "the daemon is out of host memory");
		else if (n > OPERATIONS_GROUP_MAX)
			status = npumem_error_set(&part->error, NPUMEM_INVALID,
						  "its group has %zu operations, and at most %d are possible", n,
						  OPERATIONS_GROUP_MAX);
		else
			status = prepare_operation(job->call.session,
						   submission->request->operations[submission->index + i],
						   &part->prepared, &part->error);
		if (status)
			refuse(submission, part, status, false);
	}
	if (!submission->status && n > 1) {
		submission->checking =
			group_cost(submission) > JOB_INLINE_COST &&
			job_submit_work(job->rpc, job->call.session->uid, check_group, group_checked, submission);
		if (submission->checking)
			return;
		check_group(submission);
	}
	step_ready(submission);
}

/* Puts what ran into the answer, in the order of the list. */
static void step_end(struct submission *submission)
{
	struct job *job = submission->job;

	for (size_t i = 0; submission->parts && i < submission->n; i++) {
		struct part *part = &submission->parts[i];

		if (!part->ran)
			continue;
		job->call.pending -= share(part);
		reply_append(&job->call.reply, &part->call.reply);
		operate_record(&part->operate, &job->call, index_of(submission, part));
	}
	parts_free(submission);
	submission->index += submission->n;
}

static struct part *next_of_lane(struct submission *submission, unsigned lane)
{
	size_t *next = &submission->lanes[lane].next;

	while (*next < submission->n && op_queue(&submission->parts[*next].prepared.op) != (enum op_queue)lane)
		(*next)++;
	return *next < submission->n ? &submission->parts[(*next)++] : NULL;
}

static void refuse_cancelled(struct submission *submission)
{
	if (!submission->status && atomic_load(&submission->job->progress.cancelled))
		submission->status = npumem_error_set(&submission->job->error, NPUMEM_CANCELLED,
						      "the submit was cancelled; what is told of has run");
}

static bool is_over(const struct submission *submission)
{
	return submission->status || submission->job->peer->is_closing;
}

/* Starts what the lanes have next. True while something of the step runs. */
static bool lanes_go_on(struct submission *submission)
{
	for (unsigned lane = 0; lane < N_LANES; lane++) {
		struct part *part;

		while (!is_over(submission) && !submission->lanes[lane].busy &&
		       (part = next_of_lane(submission, lane))) {
			refuse_cancelled(submission);
			if (!submission->status)
				part_start(submission, part);
		}
	}
	return submission->lanes[OP_DMA].busy || submission->lanes[OP_COMPUTE].busy;
}

/* Goes on until something runs elsewhere or all is done. Short operations end inside of it and come back here:
 * those only leave a mark, so that a long list does not become a deep stack. */
static void step_lanes(struct submission *submission)
{
	if (submission->stepping)
		return;
	submission->stepping = true;
	while (!lanes_go_on(submission)) {
		step_end(submission);
		if (is_over(submission) || submission->index >= submission->request->n_operations) {
			submission_end(submission);
			return;
		}
		step_begin(submission);
		if (submission->checking)
			break;
	}
	submission->stepping = false;
}

void job_submit(struct job *job)
{
	struct submission *submission = heap_zalloc(job->rpc->heap, 1, sizeof(*submission));
	int status = 0;

	if (!submission)
		status = npumem_error_set(&job->error, NPUMEM_RESOURCE_EXHAUSTED,
					  "the daemon is out of host memory");
	else
		status = submit_open(&job->call, job->request->submit, &submission->mark);
	if (status) {
		heap_free(job->rpc->heap, submission);
		job_end(job, status);
		return;
	}
	submission->job = job;
	submission->request = job->request->submit;
	job->submission = submission;
	progress_follow(job);
	step_lanes(submission);
}

static uint64_t parts_done(const struct part *part)
{
	double done = (double)atomic_load(&part->progress.done),
	       total = (double)atomic_load(&part->progress.total);

	if (part->ran)
		return KERNEL_PARTS;
	/* All parts are done before its reply is. */
	return total > 0 ? (uint64_t)(done / total * (KERNEL_PARTS - 1)) : 0;
}

void job_submit_progress(const struct job *job, uint64_t *done, uint64_t *total)
{
	const struct submission *submission = job->submission;

	*done = *total = 0;
	if (!submission)
		return;
	*total = submission->request->n_operations * KERNEL_PARTS;
	*done = submission->index * KERNEL_PARTS;
	for (size_t i = 0; submission->parts && i < submission->n; i++)
		*done += parts_done(&submission->parts[i]);
}
