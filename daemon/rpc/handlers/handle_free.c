/* Freeing. From the moment that this is resolved who comes later waits to see what becomes of it. It takes effect
 * when nothing uses the tensors any more, for good: whoever finds them gone, or takes their names, must not find
 * them back after a crash. Then their bytes are zeroed, which may take long, and all of it goes at once. */
#include "daemon/rpc/calls/advance.h"
#include "daemon/rpc/order/resolve.h"
#include "daemon/rpc/resume/unsent.h"
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
	tensors_mark_going(call->binding.tensors, call->binding.n, &call->entry);
	call->is_committed = call->changes_room = true;
	return 0;
}

static void forget(void *arg)
{
	struct call *call = arg;

	for (size_t i = 0; i < call->binding.n; i++)
		device_forget(call->rpc->service->device, call->binding.tensors[i]);
}

static int on_forgotten(struct call *call, void *arg)
{
	Npumem__V1__Freed message = NPUMEM__V1__FREED__INIT;

	(void)arg;
	advance_leave(call);
	message.tensors = (int64_t)tensors_free(call->session, call->binding.tensors, call->binding.n);
	reply_message(&call->reply, NPUMEM__V1__RESPONSE__RESULT_FREED, &message.base);
	return 0;
}

int handle_free(struct call *call, const Npumem__V1__FreeRequest *request)
{
	int64_t cost = 0;

	(void)request;
	for (size_t i = 0; i < call->binding.n; i++)
		cost += device_forget_cost(call->binding.tensors[i]);
	for (size_t i = 0; i < call->binding.n; i++)
		unsent_before_change(call->session, call->binding.tensors[i]);
	tensors_hide(call->session, call->binding.tensors, call->binding.n);
	resolve_blocked(call->rpc);
	return call_later(call, cost, forget, on_forgotten, call);
}
