/* Many operations in one message. */
#include <string.h>

#include "client/lib/calls/calls.h"
#include "client/lib/connection/engine/engine.h"
#include "client/lib/messages/message.h"
#include "client/lib/messages/payload.h"
#include "client/lib/messages/reply.h"

enum { SUBMIT_OPERATION_FIRST = SIZED_UP_TO(struct npumem_operation, n_params) };

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

/* Fills one operation; a run takes its parts from `runs` and moves it on. With `staging`, a segment's elements are
 * data. */
static void submit_operation(const struct npumem_operation *from, const struct staging *staging,
			     struct submitted *to, struct run_parts *runs)
{
	npumem__v1__operation__init(&to->message);
	to->message.group = from->group;
	to->message.label = message_text(from->label);
	switch (from->kind) {
	case NPUMEM_OP_WRITE:
		npumem__v1__write_request__init(&to->write);
		to->write.tensor = message_ref(from->handle, &to->refs[0]);
		to->write.data.data = from->data;
		to->write.data.len = from->bytes;
		if (staging) {
			to->write.data.data = staging->array;
			to->write.data.len = staging->region.bytes;
		} else if (from->segment) {
			to->write.data.len = 0;
			to->write.segment = from->segment->id;
			to->write.segment_offset = from->segment_offset;
			to->write.segment_stride = message_dims(from->segment_stride, &to->stride);
		}
		to->message.kind_case = NPUMEM__V1__OPERATION__KIND_WRITE;
		to->message.write = &to->write;
		break;
	case NPUMEM_OP_READ:
		npumem__v1__read_request__init(&to->read);
		to->read.tensor = message_ref(from->handle, &to->refs[0]);
		if (from->segment && !staging) {
			to->read.segment = from->segment->id;
			to->read.segment_offset = from->segment_offset;
			to->read.segment_stride = message_dims(from->segment_stride, &to->stride);
		}
		to->message.kind_case = NPUMEM__V1__OPERATION__KIND_READ;
		to->message.read = &to->read;
		break;
	case NPUMEM_OP_FILL:
		npumem__v1__fill_request__init(&to->fill);
		to->fill.tensor = message_ref(from->handle, &to->refs[0]);
		to->fill.value_case = NPUMEM__V1__FILL_REQUEST__VALUE_INTEGER;
		to->fill.integer = from->value;
		if (from->is_real) {
			to->fill.value_case = NPUMEM__V1__FILL_REQUEST__VALUE_REAL;
			to->fill.real = from->real;
		}
		to->message.kind_case = NPUMEM__V1__OPERATION__KIND_FILL;
		to->message.fill = &to->fill;
		break;
	case NPUMEM_OP_COPY:
		npumem__v1__copy_request__init(&to->copy);
		to->copy.destination = message_ref(from->handle, &to->refs[0]);
		to->copy.source = message_ref(from->source, &to->refs[1]);
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
	int status = sized_check(operations, n, SUBMIT_OPERATION_FIRST, sizeof(*operations), "operation", error);
	for (unsigned i = 0; i < n && !status; i++) {
		struct npumem_operation op;
		sized_get(operations, i, &op, sizeof(op));
		if (op.kind < NPUMEM_OP_WRITE || op.kind > NPUMEM_OP_RUN)
			return npumem_error_set(error, NPUMEM_INVALID, "operation %u has no kind (%d)", i,
						(int)op.kind);
		if (op.kind != NPUMEM_OP_RUN)
			continue;
		status = run_check(op.kernel, op.n_operands, op.params, op.n_params, error);
		submit->n_operands += op.n_operands;
		submit->n_params += op.n_params;
	}
	return status;
}

/* ---- the answer ---- */

/* Where an operation's data go, if it reads any. */
struct reading {
	bool is_read;
	void *to;
	size_t bytes;
	struct staging staging; /* instead */
	bool is_last;		/* of the list */
};

static void end_readings(void *object)
{
	struct reading *reading = object;
	do
		staging_end(&reading->staging);
	while (!reading++->is_last);
}

static int take_reading(struct reading *reading, const Npumem__V1__Done *done)
{
	if (!reading->is_read)
		return 0;
	if (done->data.len != reading->bytes)
		return -1;
	if (reading->staging.segment)
		staging_put(&reading->staging, done->data.data);
	else if (done->data.len)
		memcpy(reading->to, done->data.data, done->data.len);
	return 0;
}

static int take_submitted(struct npumem_request *request, const Npumem__V1__Response *response,
			  struct npumem_error *error)
{
	const Npumem__V1__Submitted *from = response->submitted;
	struct reading *readings = request->state;
	if (from->n_done > request->n || (!response->status && from->n_done != request->n))
		return -1;
	struct npumem_submitted *submitted = result_take(request->results, sizeof(*submitted));
	const struct npumem_done **done =
		result_array(request->results, from->n_done, sizeof(struct npumem_done *));
	if (!submitted || !done)
		return request_no_memory(error);
	for (size_t i = 0; i < from->n_done; i++) {
		/* They are in order, so that one's place is no less than the number of those before it. A daemon
		 * that does not tell the place says 0. */
		size_t at = from->done[i]->operation > i ? from->done[i]->operation : i;
		if (at >= request->n || take_reading(&readings[at], from->done[i]))
			return -1;
		struct npumem_done *one = reply_done(from->done[i], request->results);
		if (!one)
			return request_no_memory(error);
		one->operation = (unsigned)at;
		done[i] = one;
	}
	submitted->n_ran = (unsigned)from->n_done;
	submitted->done = done;
	request->answer = submitted;
	return 0;
}

/* ---- asking ---- */

/* Of an operation with a segment, over a connection without shared memory. */
static int stage(struct npumem *npumem, const struct npumem_operation *op, struct reading *reading,
		 struct npumem_error *error)
{
	const struct staging_ask ask = {.handle = op->handle,
					.segment = op->segment,
					.offset = op->segment_offset,
					.stride = op->segment_stride,
					.is_read = op->kind == NPUMEM_OP_READ};
	int status = staging_begin(npumem, &ask, &reading->staging, error);
	if (!status && reading->is_read)
		reading->bytes = reading->staging.region.bytes;
	return status;
}

/* The operations as messages, and where those that read put it. With `stages` a segment's elements are data. */
static int submit_fill(struct npumem_request *made, const struct npumem_operation *operations, unsigned n,
		       bool stages, struct submit *submit, struct reading *readings, struct npumem_error *error)
{
	struct run_parts runs = submit->runs;
	for (unsigned i = 0; i < n; i++) {
		struct npumem_operation op;
		sized_get(operations, i, &op, sizeof(op));
		bool is_read = op.kind == NPUMEM_OP_READ;
		bool is_staged = stages && op.segment && (is_read || op.kind == NPUMEM_OP_WRITE);
		readings[i] = (struct reading){.is_read = is_read,
					       .to = op.data,
					       .bytes = op.segment ? 0 : op.bytes,
					       .is_last = i == n - 1};
		int status = is_staged ? stage(made->npumem, &op, &readings[i], error) : 0;
		if (status)
			return status;
		submit_operation(&op, is_staged ? &readings[i].staging : NULL, &submit->operations[i], &runs);
		submit->list[i] = &submit->operations[i].message;
	}
	return 0;
}

static int submit_start(struct npumem_request *made, Npumem__V1__Request__CallCase call,
			const struct npumem_operation *operations, unsigned n, struct submit *submit,
			struct npumem_request **request, struct npumem_error *error)
{
	Npumem__V1__Request message = NPUMEM__V1__REQUEST__INIT;
	Npumem__V1__SubmitRequest list = NPUMEM__V1__SUBMIT_REQUEST__INIT;
	struct reading *readings = made->state = result_array(made->results, n, sizeof(*readings));
	bool stages = n && address_is_remote(&made->npumem->remote);
	if (stages) {
		readings[n - 1].is_last = true;
		made->results->destroy = end_readings;
	}
	int status = submit_fill(made, operations, n, stages, submit, readings, error);
	if (status) {
		request_end(made);
		return status;
	}
	/* A dry run reads nothing. */
	for (unsigned i = 0; call == NPUMEM__V1__REQUEST__CALL_DRY_RUN && i < n; i++)
		readings[i].is_read = false;
	made->n = n;
	list.n_operations = n;
	list.operations = submit->list;
	message.call_case = call;
	message.submit = &list;
	return request_start(made, &message, NULL, request, error);
}

static int send_list(struct npumem *npumem, Npumem__V1__Request__CallCase call,
		     const struct npumem_operation *operations, unsigned n, NPUMEM_ASYNC)
{
	static const struct request_kind kind = {NPUMEM__V1__RESPONSE__RESULT_SUBMITTED, .take = take_submitted};
	struct submit submit = {.operations = NULL};
	struct npumem_request *made;
	request_clear(error);
	int status = submit_check(operations, n, &submit, error);
	if (!status)
		status = submit_alloc(npumem, n, &submit, error);
	if (status)
		return status;
	status = request_new(npumem, &kind, result_room(n * sizeof(struct reading)), callback, context, &made,
			     error);
	if (!status)
		status = submit_start(made, call, operations, n, &submit, request, error);
	submit_free(npumem, &submit);
	return status;
}

int npumem_submit_async(struct npumem *npumem, const struct npumem_operation *operations, unsigned n, NPUMEM_ASYNC)
{
	return send_list(npumem, NPUMEM__V1__REQUEST__CALL_SUBMIT, operations, n, callback, context, request,
			 error);
}

int npumem_dry_run_async(struct npumem *npumem, const struct npumem_operation *operations, unsigned n,
			 NPUMEM_ASYNC)
{
	return send_list(npumem, NPUMEM__V1__REQUEST__CALL_DRY_RUN, operations, n, callback, context, request,
			 error);
}

/* ---- lists that are kept ---- */

/* In the block of the public part, which comes first. */
struct kept_list {
	struct npumem_kept kept;
	struct reading *readings;
};

static int take_kept(struct npumem_request *request, const Npumem__V1__Response *response,
		     struct npumem_error *error)
{
	struct kept_list *list = request->state;
	(void)error;
	list->kept.bytes = response->kept->bytes;
	request->answer = &list->kept;
	return 0;
}

/* Between hosts a segment's elements are data of a message, and would be what they were when it was kept. */
static int check_segments(const struct npumem *npumem, const struct npumem_operation *operations, unsigned n,
			  struct npumem_error *error)
{
	for (unsigned i = 0; address_is_remote(&npumem->remote) && i < n; i++) {
		struct npumem_operation op;
		sized_get(operations, i, &op, sizeof(op));
		if (op.segment)
			return npumem_error_set(
				error, NPUMEM_INVALID,
				"operation %u has a segment, which a kept list over ssh cannot have", i);
	}
	return 0;
}

static int keep_start(struct npumem_request *made, const struct npumem_operation *operations, unsigned n,
		      struct submit *submit, struct npumem_request **request, struct npumem_error *error)
{
	Npumem__V1__KeepRequest keep = NPUMEM__V1__KEEP_REQUEST__INIT;
	struct kept_list *list = made->state = result_take(made->results, sizeof(*list));
	list->readings = result_array(made->results, n, sizeof(*list->readings));
	list->kept = (struct npumem_kept){.id = ++made->npumem->last_list, .n = n};
	submit_fill(made, operations, n, false, submit, list->readings, error);
	keep.list = list->kept.id;
	keep.n_operations = n;
	keep.operations = submit->list;
	return request_start(made, &MESSAGE_REQUEST(KEEP, keep, &keep), NULL, request, error);
}

int npumem_keep_list_async(struct npumem *npumem, const struct npumem_operation *operations, unsigned n,
			   NPUMEM_ASYNC)
{
	static const struct request_kind kind = {NPUMEM__V1__RESPONSE__RESULT_KEPT, .take = take_kept};
	struct submit submit = {.operations = NULL};
	struct npumem_request *made;
	request_clear(error);
	int status = submit_check(operations, n, &submit, error);
	if (!status)
		status = check_segments(npumem, operations, n, error);
	if (!status)
		status = submit_alloc(npumem, n, &submit, error);
	if (status)
		return status;
	status = request_new(npumem, &kind,
			     result_room(sizeof(struct kept_list)) + result_room(n * sizeof(struct reading)),
			     callback, context, &made, error);
	if (!status)
		status = keep_start(made, operations, n, &submit, request, error);
	submit_free(npumem, &submit);
	return status;
}

static void change_message(const struct npumem_change *from, Npumem__V1__Change *to)
{
	npumem__v1__change__init(to);
	to->operation = from->operation;
	if (from->role)
		to->role = (char *)(uintptr_t)from->role;
	to->tensor = from->handle;
	to->segment = from->segment ? from->segment->id : 0;
	to->segment_offset = from->segment_offset;
}

static int run_kept_start(struct npumem_request *made, const struct npumem_kept *kept,
			  const struct npumem_change *changes, unsigned n, struct npumem_request **request,
			  struct npumem_error *error)
{
	const struct kept_list *list = (const struct kept_list *)kept;
	Npumem__V1__SubmitRequest submit = NPUMEM__V1__SUBMIT_REQUEST__INIT;
	struct reading *readings = made->state = result_array(made->results, kept->n, sizeof(*readings));
	Npumem__V1__Change *all = result_array(made->results, n, sizeof(*all));
	Npumem__V1__Change **places = result_array(made->results, n, sizeof(*places));
	for (unsigned i = 0; i < kept->n; i++)
		readings[i] = list->readings[i];
	for (unsigned i = 0; i < n; i++) {
		struct npumem_change change;
		sized_get(changes, i, &change, sizeof(change));
		change_message(&change, &all[i]);
		places[i] = &all[i];
	}
	made->n = kept->n;
	submit.list = kept->id;
	submit.n_changes = n;
	submit.changes = places;
	return request_start(made, &MESSAGE_REQUEST(SUBMIT, submit, &submit), NULL, request, error);
}

int npumem_run_list_async(struct npumem *npumem, const struct npumem_kept *kept,
			  const struct npumem_change *changes, unsigned n, NPUMEM_ASYNC)
{
	static const struct request_kind kind = {NPUMEM__V1__RESPONSE__RESULT_SUBMITTED, .take = take_submitted};
	enum { CHANGE_FIRST = SIZED_UP_TO(struct npumem_change, segment_offset) };
	size_t room = result_room(kept->n * sizeof(struct reading)) + result_room(n * sizeof(Npumem__V1__Change)) +
		      result_room(n * sizeof(Npumem__V1__Change *));
	struct npumem_request *made;
	request_clear(error);
	int status = sized_check(changes, n, CHANGE_FIRST, sizeof(*changes), "change", error);
	if (!status)
		status = request_new(npumem, &kind, room, callback, context, &made, error);
	return status ? status : run_kept_start(made, kept, changes, n, request, error);
}

int npumem_drop_list_async(struct npumem *npumem, const struct npumem_kept *kept, NPUMEM_ASYNC)
{
	static const struct request_kind kind = {.result = NPUMEM__V1__RESPONSE__RESULT_UNKEPT};
	Npumem__V1__UnkeepRequest unkeep = NPUMEM__V1__UNKEEP_REQUEST__INIT;
	unkeep.list = kept->id;
	int status = request_call(npumem, &kind, &MESSAGE_REQUEST(UNKEEP, unkeep, &unkeep), NULL, callback,
				  context, request, error);
	result_release(kept);
	return status;
}
