/* Calls about whole tensors. Room for the reply is made first, so that nothing is done that cannot be told. */
#include "daemon/rpc/call.h"
#include "daemon/rpc/wire.h"
#include "proto/convert.h"

enum {
	TENSOR_BYTES = 1024, /* a bound for a Tensor with its tag and length */
	EXPECTED_TENSOR_BYTES = 140,
	TENSORS_FIELD = 1, /* Allocated.tensors and List.tensors */
};

/* A Tensor message, and what it points to. */
struct tensor_message {
	Npumem__V1__Tensor message;
	struct convert_place place;
	struct tensors_description description;
	Npumem__V1__Grant grants[RECORD_GRANTS_MAX], *pointers[RECORD_GRANTS_MAX];
};

/* To whom it is granted is for its owner to know. */
static void add_grants(const struct call *call, const struct tensor *tensor, struct tensor_message *to)
{
	const struct record_grants *grants = record_of(tensor)->grants;

	if (!grants || access_check(call->session, tensor, ACCESS_OWN, NULL))
		return;
	to->message.n_grants = grants->n;
	to->message.grants = to->pointers;
	for (unsigned i = 0; i < grants->n; i++) {
		npumem__v1__grant__init(&to->grants[i]);
		to->grants[i].uid = grants->to[i].uid;
		to->grants[i].access = grants->to[i].access == RECORD_WRITE ? NPUMEM__V1__ACCESS__ACCESS_WRITE
									    : NPUMEM__V1__ACCESS__ACCESS_READ;
		to->pointers[i] = &to->grants[i];
	}
}

static const ProtobufCMessage *to_message(const struct call *call, const struct tensor *tensor, bool is_new,
					  struct tensor_message *to)
{
	struct tensors_description *description = &to->description;
	Npumem__V1__Tensor *message = &to->message;
	const struct tensor *root = tensor_root(tensor);

	tensors_describe(call->session, tensor, is_new, description);
	convert_place_to(&tensor->place, &to->place);
	npumem__v1__tensor__init(message);
	message->handle = tensor->handle;
	message->name = (char *)description->name;
	message->uid = description->uid;
	message->place = &to->place.message;
	message->sealed = root->sealed;
	message->dma_only = root->dma_only;
	message->pinned = root->pinned;
	message->base_handle = description->base_handle;
	message->base_name = description->base_name;
	message->state = (char *)description->state;
	message->unwritten_bytes = description->bytes.unwritten_bytes;
	message->damaged_bytes = description->bytes.damaged_bytes;
	message->reuse = (Npumem__V1__Reuse)root->reuse;
	message->lends = description->bytes.lends;
	message->borrows = description->bytes.borrows;
	add_grants(call, tensor, to);
	return &message->base;
}

static void answer_tensor(struct call *call, const struct tensor *tensor, bool is_new)
{
	struct tensor_message message;

	reply_message(&call->reply, NPUMEM__V1__RESPONSE__RESULT_TENSOR,
		      to_message(call, tensor, is_new, &message));
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
	size_t n = request->n_tensors, expected = n * EXPECTED_TENSOR_BYTES, mark;
	int status;

	if (n < 1 || n > TENSORS_ALLOC_MAX)
		return npumem_error_set(call->error, NPUMEM_INVALID,
					"%zu tensors to allocate, which is not 1 to %d", n, TENSORS_ALLOC_MAX);
	for (size_t i = 0; i < n; i++) {
		status = read_allocation(call, i, request->tensors[i]);
		if (status)
			return status;
	}
	status = reply_reserve(&call->reply, (n + 1) * TENSOR_BYTES, call->error);
	if (!status)
		status = tensors_alloc_in_turn(call->session, rpc->requests, rpc->names, (unsigned)n, call->turn,
					       rpc->tensors, call->error);
	if (status)
		return status;
	mark = reply_open(&call->reply, NPUMEM__V1__RESPONSE__RESULT_ALLOCATED, expected);
	for (size_t i = 0; i < n; i++) {
		struct tensor_message message;

		reply_message(&call->reply, TENSORS_FIELD, to_message(call, rpc->tensors[i], true, &message));
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
		status = reply_reserve(&call->reply, TENSOR_BYTES, call->error);
	if (!status)
		status = tensors_view(call->session, base, request->name, &slice, request->shape ? &shape : NULL,
				      &view, call->error);
	if (!status)
		answer_tensor(call, view, false);
	return status;
}

int handle_tensors_open(struct call *call, const Npumem__V1__OpenRequest *request)
{
	struct tensor *tensor;
	int status =
		wire_find(call->session, request->tensor, "the tensor to open", ACCESS_READ, &tensor, call->error);

	if (!status)
		status = reply_reserve(&call->reply, TENSOR_BYTES, call->error);
	if (!status)
		answer_tensor(call, tensor, false);
	return status;
}

int handle_tensors_seal(struct call *call, const Npumem__V1__SealRequest *request)
{
	struct tensor *tensor;
	int status =
		wire_find(call->session, request->tensor, "the tensor to seal", ACCESS_OWN, &tensor, call->error);

	if (!status)
		status = reply_reserve(&call->reply, TENSOR_BYTES, call->error);
	if (!status)
		status = tensors_seal(call->session, tensor, call->error);
	if (!status)
		answer_tensor(call, tensor, false);
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
		status = reply_reserve(&call->reply, TENSOR_BYTES, call->error);
	if (!status)
		status = tensors_grant(call->session, tensor, request->uid,
				       (enum record_access)(request->access - NPUMEM__V1__ACCESS__ACCESS_NONE),
				       call->error);
	if (!status)
		answer_tensor(call, tensor, false);
	return status;
}

int handle_tensors_list(struct call *call, const Npumem__V1__ListRequest *request)
{
	struct tensor *tensor = NULL;
	size_t mark;
	int status = reply_reserve(&call->reply, REPLY_TAG_BYTES, call->error);

	(void)request;
	if (status)
		return status;
	mark = reply_open(&call->reply, NPUMEM__V1__RESPONSE__RESULT_LIST, EXPECTED_TENSOR_BYTES);
	while ((tensor = tensors_next(call->session, tensor))) {
		struct tensor_message message;

		status = reply_reserve(&call->reply, TENSOR_BYTES, call->error);
		if (status)
			return status;
		reply_message(&call->reply, TENSORS_FIELD, to_message(call, tensor, false, &message));
	}
	reply_close(&call->reply, mark, EXPECTED_TENSOR_BYTES);
	return 0;
}
