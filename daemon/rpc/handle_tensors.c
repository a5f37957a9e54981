/* Calls about whole tensors. Room for the reply is made first, so that nothing is done that cannot be told. */
#include "daemon/rpc/call.h"
#include "daemon/rpc/tensor_message.h"
#include "daemon/rpc/wire.h"
#include "proto/convert.h"

enum { TENSORS_FIELD = 1 }; /* Allocated.tensors */

static void answer_tensor(struct call *call, const struct tensor *tensor)
{
	struct tensor_message message;

	reply_message(&call->reply, NPUMEM__V1__RESPONSE__RESULT_TENSOR,
		      tensor_message(call, tensor, NULL, &message));
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

		tensors_new_state(call->session, rpc->tensors[i], &state);
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
	if (!status)
		status = reply_reserve(&call->reply, TENSOR_MESSAGE_BYTES_MAX, call->error);
	if (!status)
		status = tensors_view(call->session, base, request->name, &slice, request->shape ? &shape : NULL,
				      &view, call->error);
	if (!status)
		answer_tensor(call, view);
	return status;
}

int handle_tensors_open(struct call *call, const Npumem__V1__OpenRequest *request)
{
	struct tensor *tensor;
	int status =
		wire_find(call->session, request->tensor, "the tensor to open", ACCESS_READ, &tensor, call->error);

	if (!status)
		status = reply_reserve(&call->reply, TENSOR_MESSAGE_BYTES_MAX, call->error);
	if (!status)
		answer_tensor(call, tensor);
	return status;
}

int handle_tensors_seal(struct call *call, const Npumem__V1__SealRequest *request)
{
	struct tensor *tensor;
	int status =
		wire_find(call->session, request->tensor, "the tensor to seal", ACCESS_OWN, &tensor, call->error);

	if (!status)
		status = reply_reserve(&call->reply, TENSOR_MESSAGE_BYTES_MAX, call->error);
	if (!status)
		status = tensors_seal(call->session, tensor, call->error);
	if (!status)
		answer_tensor(call, tensor);
	return status;
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
	if (!status)
		status = reply_reserve(&call->reply, TENSOR_MESSAGE_BYTES_MAX, call->error);
	if (!status)
		status = tensors_grant(call->session, tensor, request->uid,
				       (enum record_access)(request->access - NPUMEM__V1__ACCESS__ACCESS_NONE),
				       call->error);
	if (!status)
		answer_tensor(call, tensor);
	return status;
}
