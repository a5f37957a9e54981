/* Allocations. The search for a place over others takes as many turns of the loop as it needs; an allocation that
 * waits for room is tried once more each time (order/line.h). */
#include <errno.h>

#include "daemon/rpc/calls/life.h"
#include "daemon/rpc/calls/perform.h"
#include "daemon/rpc/handlers/handler.h"
#include "daemon/rpc/handlers/tensor_page.h"
#include "proto/wire.h"

enum {
	TURN_STEPS = 300, /* of device_alloc_step: about a tenth of a millisecond */
};

struct allocating {
	struct tensors_alloc alloc;
	bool was_paused;
	const char **names, **labels;
	struct tensor **tensors;
	struct device_request requests[]; /* and behind them the other arrays */
};

/* In the memory that the request was unpacked into. NULL: there is none. */
static struct allocating *allocating_new(struct call *call, size_t n)
{
	struct allocating *to;

	to = budget_alloc(&call->budget, sizeof(*to) + n * (sizeof(to->requests[0]) + 3 * sizeof(void *)));
	if (!to)
		return NULL;
	to->names = (const char **)(to->requests + n);
	to->labels = to->names + n;
	to->tensors = (struct tensor **)(to->labels + n);
	return to;
}

static int read_allocation(struct call *call, struct allocating *to, size_t i,
			   const Npumem__V1__Allocation *message)
{
	struct device_request *request = &to->requests[i];
	int status = wire_check_enum(&npumem__v1__reuse__descriptor, "reuse", (int)message->reuse, call->error);

	if (!status)
		status = wire_spec(message->spec, &request->spec, call->error);
	if (status) {
		npumem_error_number(call->error, "tensor_index", (int64_t)i);
		return status;
	}
	request->reuse = (int)message->reuse;
	request->dma_only = message->dma_only;
	request->pinned = message->pinned;
	to->names[i] = message->name;
	to->labels[i] = message->label;
	return 0;
}

int resolve_alloc(struct call *call)
{
	const Npumem__V1__AllocRequest *request = call->request->alloc;
	int status = 0;

	for (size_t i = 0; i < request->n_tensors && i < TENSORS_ALLOC_MAX && !status; i++)
		status = handler_claim_name(call, call->session->uid, request->tensors[i]->name);
	call->n_changed = request->n_tensors;
	call->turn = request->wait_ms ? TENSORS_LAST : TENSORS_AT_ONCE;
	return status;
}

static void append_allocated(struct call *call, struct tensor *const *tensors, size_t n)
{
	size_t expected = n * TENSOR_MESSAGE_EXPECTED_BYTES;
	size_t mark = reply_open(&call->reply, NPUMEM__V1__RESPONSE__RESULT_ALLOCATED, expected);

	for (size_t i = 0; i < n; i++) {
		struct tensor_message message;
		struct device_state state;

		tensors_new_state(tensors[i], &state);
		reply_message(&call->reply, TENSORS_FIELD, tensor_message(call, tensors[i], &state, &message));
	}
	reply_close(&call->reply, mark, expected);
}

static int end_allocation(struct call *call, struct allocating *allocating, int status)
{
	struct service *service = call->rpc->service;
	const struct tensors_alloc *alloc = &allocating->alloc;

	if (!status)
		append_allocated(call, alloc->tensors, alloc->n);
	if (status && allocating->was_paused)
		waiting_gives_back(&service->waiting, &call->waiter);
	if (call->turn == TENSORS_LAST && tensors_lacked_room(call->error))
		call->fits_empty = waiting_measure(service->device, alloc->requests, alloc->n, &call->waiter);
	return status;
}

static int allocate(struct call *call)
{
	struct allocating *allocating = call->task;
	struct tensors_alloc *alloc = &allocating->alloc;
	int64_t steps = TURN_STEPS;
	int status;

	if (allocating->was_paused && !alloc->refused && call_is_cancelled(call))
		tensors_alloc_cancel(
			alloc, npumem_error_set(call->error, NPUMEM_CANCELLED, "the allocation was cancelled"));
	status = tensors_alloc_step(alloc, &steps, call->error);
	/* Others have a turn before it is answered. Without memory for the reason it ends now. */
	if (status == -EAGAIN && alloc->refused && life_keep_error(call)) {
		steps = INT64_MAX;
		status = tensors_alloc_step(alloc, &steps, call->error);
	}
	if (status != -EAGAIN)
		return end_allocation(call, allocating, status);
	allocating->was_paused = true;
	return perform_pause(call, allocate);
}

static int read_allocations(struct call *call, const Npumem__V1__AllocRequest *request)
{
	size_t n = request->n_tensors;
	int status = 0;

	if (n < 1 || n > TENSORS_ALLOC_MAX)
		return npumem_error_set(call->error, NPUMEM_INVALID,
					"%zu tensors to allocate, which is not 1 to %d", n, TENSORS_ALLOC_MAX);
	call->task = allocating_new(call, n);
	if (!call->task)
		return heap_exhausted(call->error);
	for (size_t i = 0; i < n && !status; i++)
		status = read_allocation(call, call->task, i, request->tensors[i]);
	return status;
}

int handle_tensors_alloc(struct call *call)
{
	const Npumem__V1__AllocRequest *request = call->request->alloc;
	int status = call->task ? 0 : read_allocations(call, request);
	struct allocating *to = call->task;
	size_t n = request->n_tensors;

	if (!status)
		status = reply_reserve(&call->reply, (n + 1) * TENSOR_MESSAGE_BYTES_MAX, call->error);
	if (status)
		return status;
	to->was_paused = false;
	to->alloc = (struct tensors_alloc){.session = call->session,
					   .requests = to->requests,
					   .names = to->names,
					   .labels = to->labels,
					   .n = (unsigned)n,
					   .tensors = to->tensors,
					   .turn = call->turn,
					   .waiter = call->turn == TENSORS_HEAD ? &call->waiter : NULL};
	status = tensors_alloc_begin(&to->alloc, call->error);
	return status ? end_allocation(call, to, status) : allocate(call);
}
