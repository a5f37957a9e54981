/* Invariant: what ran is in the answer, and what is not in the answer did not run. */
#include "daemon/rpc/handlers/operations/part.h"

#include <stdio.h>

#include "daemon/service/operations.h"

/* ---- what its sender calls it ---- */

size_t part_group(const Npumem__V1__SubmitRequest *request, size_t index)
{
	Npumem__V1__Operation *const *operations = request->operations + index;
	size_t n = 1;

	if (operations[0]->group)
		while (index + n < request->n_operations && operations[n]->group == operations[0]->group)
			n++;
	return n;
}

const char *part_label(const struct call *call, size_t index)
{
	const char *label = call->request->submit->operations[index]->label;
	struct npumem_error error;

	/* One that is not refused yet. */
	npumem_error_clear(&error);
	return names_check_label(label, &error) ? "" : label;
}

int part_explain(struct call *call, size_t index, const struct op *op)
{
	struct npumem_error *error = call->error;
	char message[NPUMEM_MESSAGE_BYTES], description[OP_DESCRIPTION_BYTES] = "";
	const char *label = part_label(call, index);

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

/* ---- how it ends ---- */

bool part_is_cancelled(struct submission *submission)
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

void part_refuse(struct submission *submission, struct part *part, const struct op *op)
{
	struct call *call = submission->call;
	size_t index = submission->index + (size_t)(part - submission->parts);

	/* That it was cancelled is said in any case: it did not all run. */
	if (part->operate.error.status == NPUMEM_CANCELLED
		    ? index >= submission->refused && part_is_cancelled(submission)
		    : call->error->status == NPUMEM_CANCELLED)
		return;
	if (index >= submission->refused)
		return;
	submission->refused = index;
	*call->error = part->operate.error;
	part_explain(call, index, op);
}

size_t part_bytes(const struct part *part)
{
	return OPERATE_DONE_BYTES + prepare_payload_bytes(&part->operate.prepared.op);
}

/* What the rest of the answer takes, however this part's reply turns out. */
static size_t bytes_elsewhere(const struct submission *submission, const struct part *part)
{
	const struct call *call = submission->call;
	size_t bytes = call->pending - part_bytes(part);

	if (!submission->is_group)
		return bytes;
	bytes += reply_used(&call->reply);
	for (size_t i = 0; i < submission->n; i++)
		if (submission->parts[i].ran)
			bytes += reply_used(submission->parts[i].operate.reply);
	return bytes;
}

struct queue *part_queue(struct submission *submission, const struct part *part)
{
	return &submission->queues[submission->is_group ? op_queue(&part->operate.prepared.op) : OP_DMA];
}

void part_end(struct part *part)
{
	struct submission *submission = part->submission;
	struct queue *queue = part_queue(submission, part);

	operate_end(&part->operate, bytes_elsewhere(submission, part));
	part->ran = part->operate.status == 0;
	queue->busy = NULL;
	if (part->ran) {
		submission->call->pending -= part_bytes(part);
		return;
	}
	queue->is_refused = true;
	part_refuse(submission, part, &part->operate.prepared.op);
}

int part_prepare(struct submission *submission, size_t i)
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

/* Of a group each operation answers in a place of its own: only now, as those of all together are megabytes. */
int part_begin(const struct submission *submission, struct part *part)
{
	size_t index = submission->index + (size_t)(part - submission->parts);
	struct reply *reply = submission->is_group ? &part->own : &submission->call->reply;

	if (reply == &part->own && reply_begin(reply, &part->out))
		return heap_exhausted(&part->operate.error);
	return operate_begin(&part->operate, reply, SUBMITTED_DONE, index);
}
