/* Calls about whole tensors. Room for the reply is made first, so that nothing is done that cannot be told. */
#include "daemon/rpc/later.h"
#include "daemon/rpc/tensor_message.h"
#include "daemon/rpc/wire.h"
#include "proto/convert.h"

enum { TENSORS_FIELD = 1 }; /* Allocated.tensors */

struct scanning {
	struct call *call;
	uint64_t handle;
	struct device_scan scan;
	struct device_state state;
};

static void scan(void *arg)
{
	struct scanning *scanning = arg;

	device_scan(scanning->call->rpc->service->device, &scanning->scan, &scanning->state);
}

static void append_tensor(struct call *call, const struct tensor *tensor, const struct device_state *state)
{
	struct tensor_message message;

	reply_message(&call->reply, NPUMEM__V1__RESPONSE__RESULT_TENSOR,
		      tensor_message(call, tensor, state, &message));
}

static int on_scanned(struct call *call, void *arg)
{
	struct scanning *scanning = arg;
	struct device *device = call->rpc->service->device;
	const struct tensor *tensor = device_find(device, scanning->handle);
	int status = 0;

	if (tensor) {
		device_state_lending(tensor, &scanning->state);
		append_tensor(call, tensor, &scanning->state);
	} else {
		status = npumem_error_set(call->error, NPUMEM_NOT_FOUND,
					  "the tensor was freed while its bytes were counted");
	}
	heap_free(call->rpc->heap, scanning);
	return status;
}

static int64_t scan_cost(const struct call *call, const struct tensor *tensor)
{
	return device_scan_cost(call->rpc->service->device, tensor);
}

/* The last thing a handler does. What takes long it does elsewhere, so that by then the call is a job's. */
static int answer_tensor(struct call *call, const struct tensor *tensor)
{
	int64_t cost = scan_cost(call, tensor);
	struct scanning *scanning = NULL;

	if (later_is_long(cost))
		scanning = heap_alloc(call->rpc->heap, sizeof(*scanning));
	if (!scanning) {
		append_tensor(call, tensor, NULL);
		return 0;
	}
	*scanning = (struct scanning){.call = call, .handle = tensor->handle, .scan = device_scan_of(tensor)};
	return later_work(call, cost, scan, on_scanned, scanning);
}

static int read_allocation(struct call *call, size_t i, const Npumem__V1__Allocation *message)
{
	struct device_request *request = &call->rpc->requests[i];
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
	call->rpc->names[i] = message->name;
	return 0;
}

int handle_tensors_alloc(struct call *call, const Npumem__V1__AllocRequest *request)
{
	struct rpc *rpc = call->rpc;
	size_t n = request->n_tensors, expected = n * TENSOR_MESSAGE_EXPECTED_BYTES, mark;
	int status;

	if (n < 1 || n > TENSORS_ALLOC_MAX)
		return npumem_error_set(call->error, NPUMEM_INVALID,
					"%zu tensors to allocate, which is not 1 to %d", n, TENSORS_ALLOC_MAX);
	for (size_t i = 0; i < n; i++) {
		status = read_allocation(call, i, request->tensors[i]);
		if (status)
			return status;
	}
	status = reply_reserve(&call->reply, (n + 1) * TENSOR_MESSAGE_BYTES_MAX, call->error);
	if (!status)
		status = tensors_alloc_in_turn(call->session, rpc->requests, rpc->names, (unsigned)n, call->turn,
					       rpc->tensors, call->error);
	if (status)
		return status;
	mark = reply_open(&call->reply, NPUMEM__V1__RESPONSE__RESULT_ALLOCATED, expected);
	for (size_t i = 0; i < n; i++) {
		struct tensor_message message;
		struct device_state state;

		tensors_new_state(rpc->tensors[i], &state);
		reply_message(&call->reply, TENSORS_FIELD,
			      tensor_message(call, rpc->tensors[i], &state, &message));
	}
	reply_close(&call->reply, mark, expected);
	return 0;
}

int handle_tensors_view(struct call *call, const Npumem__V1__ViewRequest *request)
{
	struct device_slice slice;
	struct npumem_dims shape;
	struct tensor *base, *view;
	int status;

	if (!request->to == !request->shape || (request->from && !request->to))
		return npumem_error_set(
			call->error, NPUMEM_INVALID,
			"a view is a slice with `to`, and maybe `from`, or a reshape with `shape`");
	convert_dims_from(request->from, &slice.from);
	convert_dims_from(request->to, &slice.to);
	convert_dims_from(request->shape, &shape);
	status = wire_find(call->session, request->tensor, "the base of a view", ACCESS_READ, &base, call->error);
	if (!status && later_is_needed(call, scan_cost(call, base)))
		return LATER;
	if (!status)
		status = reply_reserve(&call->reply, TENSOR_MESSAGE_BYTES_MAX, call->error);
	if (!status)
		status = tensors_view(call->session, base, request->name, &slice, request->shape ? &shape : NULL,
				      &view, call->error);
	return status ? status : answer_tensor(call, view);
}

int handle_tensors_open(struct call *call, const Npumem__V1__OpenRequest *request)
{
	struct tensor *tensor;
	int status =
		wire_find(call->session, request->tensor, "the tensor to open", ACCESS_READ, &tensor, call->error);

	if (!status && later_is_needed(call, scan_cost(call, tensor)))
		return LATER;
	if (!status)
		status = reply_reserve(&call->reply, TENSOR_MESSAGE_BYTES_MAX, call->error);
	return status ? status : answer_tensor(call, tensor);
}

struct sealing {
	struct call *call;
	struct tensor *tensor;
	int status;
};

static void check_seal(void *arg)
{
	struct sealing *sealing = arg;
	struct call *call = sealing->call;
	struct error_context context = access_asker_of_own(call->session, call->error);

	sealing->status = device_seal_check(call->rpc->service->device, sealing->tensor, &context);
}

static int on_seal_checked(struct call *call, void *arg)
{
	struct sealing sealing = *(struct sealing *)arg;
	int status = sealing.status;

	heap_free(call->rpc->heap, arg);
	/* Nothing could be written since, so that this need not look again. */
	if (!status)
		status = tensors_seal(call->session, sealing.tensor, call->error);
	return status ? status : answer_tensor(call, sealing.tensor);
}

int handle_tensors_seal(struct call *call, const Npumem__V1__SealRequest *request)
{
	struct tensor *tensor;
	struct sealing *sealing;
	int status =
		wire_find(call->session, request->tensor, "the tensor to seal", ACCESS_OWN, &tensor, call->error);

	if (!status && later_is_needed(call, scan_cost(call, tensor)))
		return LATER;
	if (!status)
		status = reply_reserve(&call->reply, TENSOR_MESSAGE_BYTES_MAX, call->error);
	if (status)
		return status;
	sealing = heap_alloc(call->rpc->heap, sizeof(*sealing));
	if (!sealing)
		return npumem_error_set(call->error, NPUMEM_RESOURCE_EXHAUSTED,
					"the daemon is out of host memory");
	*sealing = (struct sealing){.call = call, .tensor = tensor};
	return later_work(call, scan_cost(call, tensor), check_seal, on_seal_checked, sealing);
}

int handle_tensors_grant(struct call *call, const Npumem__V1__GrantRequest *request)
{
	struct tensor *tensor;
	int status = wire_check_enum(&npumem__v1__access__descriptor, "access", (int)request->access, call->error);

	if (!status && !request->access)
		status = npumem_error_set(call->error, NPUMEM_INVALID, "a grant says none, read or write");
	if (!status)
		status = wire_find(call->session, request->tensor, "the tensor to grant", ACCESS_OWN, &tensor,
				   call->error);
	if (!status && later_is_needed(call, scan_cost(call, tensor)))
		return LATER;
	if (!status)
		status = reply_reserve(&call->reply, TENSOR_MESSAGE_BYTES_MAX, call->error);
	if (!status)
		status = tensors_grant(call->session, tensor, request->uid,
				       (enum record_access)(request->access - NPUMEM__V1__ACCESS__ACCESS_NONE),
				       call->error);
	return status ? status : answer_tensor(call, tensor);
}
