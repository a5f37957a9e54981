/* Freeing is decided when it arrives: from then on nobody finds the tensors. It takes effect when nothing uses
 * them any more, for good: a client that finds them gone, or takes their names, must not find them back after a
 * crash. Then their bytes are zeroed, which may take long; and they go, in steps, views first. */
#include "daemon/rpc/resume/repeat.h"
#include "daemon/rpc/handlers/handler.h"

static int find_all(struct call *call, const Npumem__V1__FreeRequest *request)
{
	for (size_t i = 0; i < request->n_tensors; i++) {
		struct tensor *tensor;
		int status = binding_find(&call->binding, request->tensors[i], "a tensor to free", ACCESS_OWN,
					  &tensor, call->error);

		if (status > 0 && request->n_tensors > 1)
			npumem_error_number(call->error, "tensor_index", (int64_t)i);
		if (!status)
			status = call_claim_free(call, tensor);
		if (status)
			return status;
	}
	return 0;
}

int resolve_free(struct call *call, const Npumem__V1__FreeRequest *request)
{
	int status = 0;

	if (!request->n_tensors)
		return npumem_error_set(call->error, NPUMEM_INVALID, "0 tensors to free");
	if (request->n_tensors > TENSORS_FREE_MAX)
		status = tensors_free_check(call->session, NULL, request->n_tensors, call->error);
	if (!status)
		status = find_all(call, request);
	if (status)
		return status;
	status = reply_reserve(&call->reply, 4 * REPLY_TAG_BYTES, call->error);
	if (!status)
		status = tensors_free_check(call->session, call->binding.tensors, call->binding.n, call->error);
	if (status)
		return status;
	tensors_mark_going(call->rpc->service, call->binding.tensors, call->binding.n);
	call->is_committed = true;
	return 0;
}

static void forget(void *arg)
{
	struct call *call = arg;

	for (size_t i = 0; i < call->binding.n; i++)
		device_forget(call->rpc->service->device, call->binding.tensors[i]);
}

static int free_some(struct call *call, void *arg)
{
	Npumem__V1__Freed message = NPUMEM__V1__FREED__INIT;

	if (!tensors_free_step(call->session, &call->freeing))
		return perform_pause(call, free_some, arg);
	message.tensors = (int64_t)call->freeing.n_freed;
	reply_message(&call->reply, NPUMEM__V1__RESPONSE__RESULT_FREED, &message.base);
	return 0;
}

static int on_forgotten(struct call *call, void *arg)
{
	tensors_free_begin(&call->freeing, call->binding.tensors, call->binding.n);
	return free_some(call, arg);
}

int handle_free(struct call *call, const Npumem__V1__FreeRequest *request)
{
	int64_t cost = 0;

	(void)request;
	for (size_t i = 0; i < call->binding.n; i++)
		cost += device_forget_cost(call->rpc->service->device, call->binding.tensors[i]);
	for (size_t i = 0; i < call->binding.n; i++)
		repeat_before_change(call->session, call->binding.tensors[i]);
	tensors_hide(call->session, call->binding.tensors, call->binding.n);
	return perform_later(call, cost, forget, on_forgotten, call);
}
