/* Many operations in one message. */
#include <string.h>

#include "client/lib/call.h"
#include "client/lib/reply.h"
#include "client/lib/request.h"
#include "client/lib/run.h"

/* One operation as a message. */
struct submitted {
	Npumem__V1__Operation message;
	union {
		Npumem__V1__WriteRequest write;
		Npumem__V1__ReadRequest read;
		Npumem__V1__FillRequest fill;
		Npumem__V1__CopyRequest copy;
		Npumem__V1__RunRequest run;
	};
	Npumem__V1__Ref refs[2];
	Npumem__V1__Dims stride;
};

/* The memory of a list's messages. */
struct submit {
	struct submitted *operations;
	Npumem__V1__Operation **list;
	struct run_parts runs;
	size_t n_operands, n_params;
};

static void submit_free(struct npumem *npumem, struct submit *submit)
{
	memory_free(npumem->memory, submit->operations);
	memory_free(npumem->memory, submit->list);
	memory_free(npumem->memory, submit->runs.operands);
	memory_free(npumem->memory, submit->runs.operand_list);
	memory_free(npumem->memory, submit->runs.refs);
	memory_free(npumem->memory, submit->runs.params);
	memory_free(npumem->memory, submit->runs.param_list);
}

static int submit_alloc(struct npumem *npumem, unsigned n, struct submit *submit, struct npumem_error *error)
{
	const struct memory *memory = npumem->memory;
	struct run_parts *runs = &submit->runs;
	submit->operations = memory_array(memory, n, sizeof(*submit->operations));
	submit->list = memory_array(memory, n, sizeof(*submit->list));
	runs->operands = memory_array(memory, submit->n_operands, sizeof(*runs->operands));
	runs->operand_list = memory_array(memory, submit->n_operands, sizeof(*runs->operand_list));
	runs->refs = memory_array(memory, submit->n_operands, sizeof(*runs->refs));
	runs->params = memory_array(memory, submit->n_params, sizeof(*runs->params));
	runs->param_list = memory_array(memory, submit->n_params, sizeof(*runs->param_list));
	if (submit->operations && submit->list && runs->operands && runs->operand_list && runs->refs &&
	    runs->params && runs->param_list)
		return 0;
	submit_free(npumem, submit);
	return npumem_error_set(error, NPUMEM_RESOURCE_EXHAUSTED,
				"no memory in this process for a list of %u operations", n);
}

/* Fills one operation; a run takes its parts from `runs` and moves it on. */
static void submit_operation(const struct npumem_operation *from, struct submitted *to, struct run_parts *runs)
{
	npumem__v1__operation__init(&to->message);
	to->message.group = from->group;
	switch (from->kind) {
	case NPUMEM_OP_WRITE:
		npumem__v1__write_request__init(&to->write);
		to->write.tensor = request_ref(from->handle, &to->refs[0]);
		to->write.data.data = from->data;
		to->write.data.len = from->bytes;
		if (from->segment) {
			to->write.data.len = 0;
			to->write.segment = from->segment->id;
			to->write.segment_offset = from->segment_offset;
			to->write.segment_stride = request_stride(from->segment_stride, &to->stride);
		}
		to->message.kind_case = NPUMEM__V1__OPERATION__KIND_WRITE;
		to->message.write = &to->write;
		break;
	case NPUMEM_OP_READ:
		npumem__v1__read_request__init(&to->read);
		to->read.tensor = request_ref(from->handle, &to->refs[0]);
		if (from->segment) {
			to->read.segment = from->segment->id;
			to->read.segment_offset = from->segment_offset;
			to->read.segment_stride = request_stride(from->segment_stride, &to->stride);
		}
		to->message.kind_case = NPUMEM__V1__OPERATION__KIND_READ;
		to->message.read = &to->read;
		break;
	case NPUMEM_OP_FILL:
		npumem__v1__fill_request__init(&to->fill);
		to->fill.tensor = request_ref(from->handle, &to->refs[0]);
		to->fill.value_case = NPUMEM__V1__FILL_REQUEST__VALUE_INTEGER;
		to->fill.integer = from->value;
		to->message.kind_case = NPUMEM__V1__OPERATION__KIND_FILL;
		to->message.fill = &to->fill;
		break;
	case NPUMEM_OP_COPY:
		npumem__v1__copy_request__init(&to->copy);
		to->copy.destination = request_ref(from->handle, &to->refs[0]);
		to->copy.source = request_ref(from->source, &to->refs[1]);
		to->message.kind_case = NPUMEM__V1__OPERATION__KIND_COPY;
		to->message.copy = &to->copy;
		break;
	case NPUMEM_OP_RUN:
		run_message(from->kernel, from->operands, from->n_operands, from->params, from->n_params, runs,
			    &to->run);
		to->message.kind_case = NPUMEM__V1__OPERATION__KIND_RUN;
		to->message.run = &to->run;
		runs->operands += from->n_operands;
		runs->operand_list += from->n_operands;
		runs->refs += from->n_operands;
		runs->params += from->n_params;
		runs->param_list += from->n_params;
		break;
	}
}

/* Counts what the messages need, and checks what the daemon cannot. */
static int submit_check(const struct npumem_operation *operations, unsigned n, struct submit *submit,
			struct npumem_error *error)
{
	for (unsigned i = 0; i < n; i++) {
		const struct npumem_operation *op = &operations[i];
		if (op->kind < NPUMEM_OP_WRITE || op->kind > NPUMEM_OP_RUN)
			return npumem_error_set(error, NPUMEM_INVALID, "operation %u has no kind (%d)", i,
						(int)op->kind);
		if (op->kind != NPUMEM_OP_RUN)
			continue;
		int status = run_check(op->kernel, op->n_operands, op->params, op->n_params, error);
		if (status)
			return status;
		submit->n_operands += op->n_operands;
		submit->n_params += op->n_params;
	}
	return 0;
}

/* What the answer is taken into. */
struct submit_answer {
	const struct npumem_operation *operations;
	struct npumem_done *done;
	unsigned n_ran;
};

static int take_submitted(struct call *call, const Npumem__V1__Response *response)
{
	struct submit_answer *answer = call->result;
	const Npumem__V1__Submitted *submitted = response->submitted;
	if (submitted->n_done > call->n || (!response->status && submitted->n_done != call->n))
		return -1;
	for (size_t i = 0; i < submitted->n_done; i++) {
		const Npumem__V1__Done *done = submitted->done[i];
		const struct npumem_operation *op = &answer->operations[i];
		if (op->kind == NPUMEM_OP_READ && done->data.len != (op->segment ? 0 : op->bytes))
			return -1;
		if (op->kind == NPUMEM_OP_READ && done->data.len)
			memcpy(op->data, done->data.data, done->data.len);
		if (answer->done)
			reply_done(done, &answer->done[i]);
	}
	answer->n_ran = (unsigned)submitted->n_done;
	return 0;
}

int npumem_submit(struct npumem *npumem, const struct npumem_operation *operations, unsigned n,
		  struct npumem_done *done, unsigned *n_ran, struct npumem_error *error)
{
	Npumem__V1__Request request = NPUMEM__V1__REQUEST__INIT;
	Npumem__V1__SubmitRequest message = NPUMEM__V1__SUBMIT_REQUEST__INIT;
	struct submit submit = {.operations = NULL};
	struct submit_answer answer = {.operations = operations, .done = done};
	struct call call = {.take = take_submitted, .result = &answer, .n = n};
	unsigned ignored;
	n_ran = n_ran ? n_ran : &ignored;
	*n_ran = 0;
	int status = call_begin(npumem, error);
	if (!status)
		status = submit_check(operations, n, &submit, error);
	if (!status)
		status = submit_alloc(npumem, n, &submit, error);
	if (status)
		return status;
	struct run_parts runs = submit.runs;
	for (unsigned i = 0; i < n; i++) {
		submit_operation(&operations[i], &submit.operations[i], &runs);
		submit.list[i] = &submit.operations[i].message;
	}
	message.n_operations = n;
	message.operations = submit.list;
	request.call_case = NPUMEM__V1__REQUEST__CALL_SUBMIT;
	request.submit = &message;
	status = call_send(npumem, &request, NPUMEM__V1__RESPONSE__RESULT_SUBMITTED, &call, error);
	submit_free(npumem, &submit);
	if (status)
		return status;
	status = call_wait(npumem, &call);
	*n_ran = answer.n_ran;
	return status;
}
