/* Operations that the daemon runs in one message: put into the batch, sent when something else is to come.
 * Invariant: an operation that cannot be put there has changed nothing; a parallel group is in one message. How an
 * array that is too large for that moves is transfer.c's. */
#include "client/ctl/network/networks.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "client/ctl/core/network/network.h"

/* ---- sending ---- */

/* What was read, into its files. */
static int save_read(struct execute *execute, unsigned from)
{
	const struct npumem_operation *one = &execute->batch->operations[from];
	size_t i = execute->batch->sources[from];
	struct npumem_error why = {.status = 0};
	struct stream stream;
	if (one->kind != NPUMEM_OP_READ || execute->dry_costs)
		return CTL_OK;
	int status = transfer_create(execute, i, &stream, &why);
	if (!status) {
		status = stream_write(&stream, (char *)one->segment->base + one->segment_offset, stream.n, &why);
		status = stream_close(&stream, status, &why);
	}
	return status ? execute_failed(execute, i, &why) : CTL_OK;
}

/* The daemon's message about a list without its own count and label: "operation 3 conv1 (run relu …): why". */
static const char *without_prefix(const char *message, long long index, const char *label)
{
	char prefix[48 + NPUMEM_NAME_BYTES_MAX];
	int length = snprintf(prefix, sizeof(prefix), "operation %lld%s%s", index, label ? " " : "",
			      label ? label : "");
	if (strncmp(message, prefix, (size_t)length))
		return message;
	const char *rest = message + length, *end = strstr(rest, "): ");
	if (!strncmp(rest, ": ", 2))
		return rest + 2;
	return !strncmp(rest, " (", 2) && end ? end + 3 : message;
}

/* "operations 3 (…) and 5 (…) of one group conflict …" with the numbers of the file. False where it is no such. */
static bool group_message(const struct execute *execute, const char *message, char *text, size_t bytes,
			  size_t *source)
{
	const struct batch *batch = execute->batch;
	char first[24], second[24];
	unsigned a, b;
	int after_a = 0, after_b = 0;
	if (sscanf(message, "operations %u%n", &a, &after_a) != 1)
		return false;
	const char *rest = message + after_a, *and = strstr(rest, ") and ");
	if (!and || sscanf(and, ") and %u%n", &b, &after_b) != 1 || a >= batch->n || b >= batch->n)
		return false;
	*source = batch->sources[a];
	network_number(&execute->network->operations[*source], first);
	network_number(&execute->network->operations[batch->sources[b]], second);
	snprintf(text, bytes, "operations %s%.*s) and %s%s", first, (int)(and-rest), rest, second, and+after_b);
	return true;
}

static int batch_failed(struct execute *execute, const struct npumem_error *error)
{
	int64_t index = npumem_error_find(error, "operation", -1);
	struct npumem_error why = *error;
	size_t source = execute->batch->sources[0];
	if (group_message(execute, error->message, why.message, sizeof(why.message), &source))
		return execute_failed(execute, source, &why);
	if (index >= 0 && index < (int64_t)execute->batch->n) {
		source = execute->batch->sources[index];
		snprintf(why.message, sizeof(why.message), "%s",
			 without_prefix(error->message, index, execute->batch->operations[index].label));
	}
	return execute_failed(execute, source, &why);
}

static void note_done(struct execute *execute, size_t i, const struct npumem_done *done)
{
	struct execute_result *result = &execute->results[i];
	char where[NETWORK_TEXT_BYTES];
	*result = (struct execute_result){.ran = true,
					  .quantized = result->quantized,
					  .ns = result->ns + done->end_ns - done->start_ns,
					  .saturated = result->saturated + done->saturated,
					  .wrapped = result->wrapped + done->wrapped,
					  .divided_by_zero = result->divided_by_zero + done->divided_by_zero,
					  .macs = result->macs + done->macs,
					  .destroyed = result->destroyed};
	for (unsigned k = 0; k < done->n_destroyed; k++)
		result->destroyed += done->destroyed[k]->total_bytes;
	if (execute->dry_costs && done->costs)
		execute->dry_costs[i] = *done->costs;
	if (done->warning[0] && !execute->ctl->json)
		fprintf(stderr, "npumemctl: warning: %s: %s\n",
			network_where(execute->network, &execute->network->operations[i], where), done->warning);
}

/* From the second sample on all is the same but the arrays. Where nothing can be kept (over ssh, or for want of
 * room), and where the list went with a daemon, it is sent. */
static int send(struct execute *execute, const struct npumem_submitted **submitted, struct npumem_error *why)
{
	const struct batch *batch = execute->batch;
	const struct samples *samples = execute->samples;
	struct npumem *npumem = execute->ctl->npumem;
	int status;
	if (!execute->list && execute->holds_all && execute->is_whole && samples->at &&
	    samples->at + 1 < samples->n &&
	    npumem_keep_list(npumem, batch->operations, batch->n, &execute->list, NULL))
		execute->list = NULL;
	if (execute->dry_costs)
		return npumem_dry_run(npumem, batch->operations, batch->n, submitted, why);
	if (!execute->list)
		return npumem_submit(npumem, batch->operations, batch->n, submitted, why);
	status = npumem_run_list(npumem, execute->list, NULL, 0, submitted, why);
	if (status != NPUMEM_NOT_FOUND)
		return status;
	npumem_release(*submitted);
	return npumem_submit(npumem, batch->operations, batch->n, submitted, why);
}

static int flush_batch(struct execute *execute)
{
	struct batch *batch = execute->batch;
	const struct npumem_submitted *submitted;
	struct npumem_error why;
	int code = CTL_OK;
	if (!batch->n)
		return CTL_OK;
	bar_part(&execute->bar, batch->sources[0], batch->n);
	int status = send(execute, &submitted, &why);
	for (unsigned i = 0; submitted && i < submitted->n_ran; i++) {
		const struct npumem_done *done = submitted->done[i];
		note_done(execute, batch->sources[done->operation], done);
		if (!code)
			code = save_read(execute, done->operation);
	}
	npumem_release(submitted);
	if (status)
		code = batch_failed(execute, &why);
	if (!execute->list)
		batch_empty(batch);
	execute->is_split = true;
	return code;
}

/* Of tensors that no operation uses any more. Where it fails they are still there. */
static int flush_frees(struct execute *execute)
{
	uint64_t handles[EXECUTE_FREES];
	struct npumem_error why;
	unsigned n = execute->n_frees;
	execute->n_frees = 0;
	for (unsigned i = 0; i < n; i++)
		handles[i] = execute->tensors[execute->frees[i]]->handle;
	if (n && npumem_free(execute->ctl->npumem, handles, n, &why)) {
		npumem_error_set(&execute->ctl->error, why.status, "free: %.400s", why.message);
		return CTL_FAILED;
	}
	for (unsigned i = 0; i < n; i++) {
		npumem_release(execute->tensors[execute->frees[i]]);
		execute->tensors[execute->frees[i]] = NULL;
	}
	return CTL_OK;
}

int enqueue_flush(struct execute *execute)
{
	int code = flush_batch(execute);
	if (!code)
		code = flush_frees(execute);
	return code;
}

/* Bytes of the array that an operation moves; 0: none. */
static size_t array_bytes(const struct execute *execute, const struct network_operation *operation)
{
	if (operation->kind != NETWORK_WRITE && operation->kind != NETWORK_READ)
		return 0;
	const struct npumem_place *place = &execute->tensors[operation->tensor]->place;
	return (size_t)npumem_place_elements(place) * npumem_dtype_bytes(place->dtype);
}

static unsigned fields(const struct execute *execute, const struct network_operation *operation)
{
	return batch_run_fields(operation->n_operands, &execute->network->params[operation->param],
				operation->n_params);
}

/* A read whose result is not used. */
static bool is_left_out(const struct execute *execute, const struct network_operation *operation)
{
	return operation->kind == NETWORK_READ && !execute->outputs && !execute->dry_costs;
}

/* Room for operations [i, end), which go in one message. */
static int make_room(struct execute *execute, size_t i, size_t end)
{
	struct npumem_error why = {.status = 0};
	size_t bytes = 0, n_operands = 0;
	unsigned n_fields = 0;
	for (size_t k = i; k < end; k++) {
		const struct network_operation *operation = &execute->network->operations[k];
		if (is_left_out(execute, operation))
			continue;
		bytes += batch_array_bytes(array_bytes(execute, operation));
		n_fields += fields(execute, operation);
		n_operands += operation->n_operands;
	}
	if (batch_fits(execute->batch, (unsigned)(end - i), n_fields, n_operands, bytes))
		return CTL_OK;
	int code = enqueue_flush(execute);
	if (!code && bytes && batch_reserve(execute->batch, bytes, &why))
		return execute_failed(execute, i, &why);
	if (!code && !batch_fits(execute->batch, (unsigned)(end - i), n_fields, n_operands, bytes)) {
		npumem_error_set(&why, NPUMEM_INVALID,
				 "the group has %zu operations with %zu tensors, too many for one message",
				 end - i, n_operands);
		return execute_failed(execute, i, &why);
	}
	return code;
}

/* ---- operations of the batch ---- */

static int fill_segment(struct execute *execute, size_t i, struct npumem_operation *one)
{
	struct npumem_error why = {.status = 0};
	struct stream stream;
	if (execute->dry_costs)
		return CTL_OK;
	int status = transfer_open(execute, i, &stream, &why);
	if (!status) {
		status = stream_read(&stream, (char *)one->segment->base + one->segment_offset, stream.n, &why);
		execute->results[i].quantized += stream.saturated;
		status = stream_close(&stream, status, &why);
	}
	return status ? execute_failed(execute, i, &why) : CTL_OK;
}

int enqueue_again(struct execute *execute)
{
	struct batch *batch = execute->batch;
	int code = CTL_OK;
	for (unsigned k = 0; k < batch->n && !code; k++)
		if (batch->operations[k].kind == NPUMEM_OP_WRITE)
			code = fill_segment(execute, batch->sources[k], &batch->operations[k]);
	return code ? code : flush_batch(execute);
}

static void add_run(struct execute *execute, const struct network_operation *operation,
		    struct npumem_operation *one)
{
	const struct network *network = execute->network;
	struct batch *batch = execute->batch;
	one->kind = NPUMEM_OP_RUN;
	one->kernel = operation->kernel->name;
	one->operands = &batch->operands[batch->n_operands];
	one->n_operands = operation->n_operands;
	one->params = &network->params[operation->param];
	one->n_params = operation->n_params;
	for (unsigned k = 0; k < operation->n_operands; k++) {
		const struct network_operand *operand = &network->operands[operation->operand + k];
		batch->operands[batch->n_operands++] =
			(struct npumem_operand){operand->role, execute->tensors[operand->tensor]->handle};
	}
}

static int check_fill(struct execute *execute, size_t i)
{
	const struct network_operation *operation = &execute->network->operations[i];
	int dtype = execute->tensors[operation->tensor]->place.dtype;
	struct npumem_error why = {.status = 0};
	if (!operation->is_real || dtype == NPUMEM_FP32)
		return CTL_OK;
	npumem_error_set(&why, NPUMEM_INVALID, "%s is filled with an integer of its container, not with %g",
			 npumem_dtype_name(dtype), operation->real);
	return execute_failed(execute, i, &why);
}

/* An array's place in the segment is taken before it is filled, so that nothing is added where that fails. */
static int add_operation(struct execute *execute, size_t i)
{
	const struct network_operation *operation = &execute->network->operations[i];
	struct batch *batch = execute->batch;
	struct npumem_operation one = {.size = sizeof(one)};
	int code = CTL_OK;
	if (operation->kind == NETWORK_RUN) {
		add_run(execute, operation, &one);
	} else {
		one.handle = execute->tensors[operation->tensor]->handle;
		one.kind = operation->kind == NETWORK_FILL   ? NPUMEM_OP_FILL
			   : operation->kind == NETWORK_COPY ? NPUMEM_OP_COPY
			   : operation->kind == NETWORK_READ ? NPUMEM_OP_READ
							     : NPUMEM_OP_WRITE;
	}
	if (operation->kind == NETWORK_COPY)
		one.source = execute->tensors[operation->source]->handle;
	if (operation->kind == NETWORK_FILL) {
		code = check_fill(execute, i);
		one.is_real = execute->tensors[operation->tensor]->place.dtype == NPUMEM_FP32;
		one.value = operation->integer;
		one.real = operation->real;
	}
	if (operation->kind == NETWORK_WRITE || operation->kind == NETWORK_READ) {
		one.segment = batch->segment;
		one.segment_offset = batch_take(batch, array_bytes(execute, operation));
	}
	if (operation->kind == NETWORK_WRITE)
		code = fill_segment(execute, i, &one);
	if (code)
		return code;
	one.group = operation->part ? operation->place : 0;
	one.label = operation->name && execute_is_label(operation->name) ? operation->name : NULL;
	*batch_add(batch, i, fields(execute, operation)) = one;
	return CTL_OK;
}

/* Half a group is none. */
static void drop_group(struct execute *execute, unsigned place)
{
	struct batch *batch = execute->batch;
	while (batch->n && batch->operations[batch->n - 1].group == place)
		batch->n--;
}

/* Operations of a group go in one message, whatever their arrays take; another's large array goes by itself. */
int enqueue(struct execute *execute, size_t i)
{
	const struct network *network = execute->network;
	const struct network_operation *operation = &network->operations[i];
	size_t end = i + 1;
	int code;
	if (is_left_out(execute, operation)) {
		execute->results[i].ran = true;
		return CTL_OK;
	}
	if (operation->part) {
		while (end < network->n_operations && network->operations[end].part &&
		       network->operations[end].place == operation->place)
			end++;
	} else if (array_bytes(execute, operation) > BATCH_SEGMENT_BYTES) {
		/* A large array is moved in pieces, none of which a dry run has. */
		code = execute->dry_costs ? CTL_OK : enqueue_flush(execute);
		if (!code && !execute->dry_costs)
			code = transfer(execute, i);
		execute->is_split = true;
		return code;
	}
	code = i < execute->group_end ? CTL_OK : make_room(execute, i, end);
	execute->group_end = operation->part ? end : 0;
	if (!code)
		code = add_operation(execute, i);
	if (code && operation->part)
		drop_group(execute, operation->place);
	return code;
}
