/* Freeing: the bytes of what goes are zeroed first, which may take long, and then all of it goes at once.
 * Meanwhile nobody can use it, as a free stands in the order of operations like a write of all its bytes. */
#include "daemon/rpc/later.h"
#include "daemon/rpc/wire.h"
#include "daemon/service/tensors.h"

struct freeing {
	struct call *call;
	const Npumem__V1__FreeRequest *request;
	struct access_ref ref;
	size_t n;
	struct tensor *tensors[TENSORS_FREE_MAX];
};

static const struct access_ref *ref_at(void *ctx, size_t i)
{
	struct freeing *freeing = ctx;
	const Npumem__V1__Ref *message = freeing->request->tensors[i];

	freeing->ref = (struct access_ref){message->handle, message->name};
	return &freeing->ref;
}

static int release(struct call *call, struct freeing *freeing)
{
	Npumem__V1__Freed message = NPUMEM__V1__FREED__INIT;
	uint64_t n_freed;
	int status = tensors_free(call->session, ref_at, freeing, freeing->n, &n_freed, call->error);

	if (status)
		return status;
	message.tensors = (int64_t)n_freed;
	reply_message(&call->reply, NPUMEM__V1__RESPONSE__RESULT_FREED, &message.base);
	return 0;
}

static void forget(void *arg)
{
	struct freeing *freeing = arg;

	for (size_t i = 0; i < freeing->n; i++)
		device_forget(freeing->call->rpc->service->device, freeing->tensors[i]);
}

static int on_forgotten(struct call *call, void *arg)
{
	int status = release(call, arg);

	heap_free(call->rpc->heap, arg);
	return status;
}

/* In steps, with storage that lives as long as they do. Without memory for it all is done here. */
static int free_later(struct call *call, const struct freeing *checked, int64_t cost)
{
	struct freeing *freeing = heap_alloc(call->rpc->heap, sizeof(*freeing));

	if (!freeing)
		return release(call, (struct freeing *)checked);
	*freeing = *checked;
	return later_work(call, cost, forget, on_forgotten, freeing);
}

int handle_free(struct call *call, const Npumem__V1__FreeRequest *request)
{
	struct freeing freeing;
	int64_t cost = 0;
	int status;

	freeing.call = call;
	freeing.request = request;
	freeing.n = request->n_tensors;
	if (!freeing.n)
		return npumem_error_set(call->error, NPUMEM_INVALID, "0 tensors to free");
	status = reply_reserve(&call->reply, 4 * REPLY_TAG_BYTES, call->error);
	if (!status)
		status = tensors_free_check(call->session, ref_at, &freeing, freeing.n, freeing.tensors,
					    call->error);
	if (status)
		return status;
	for (size_t i = 0; i < freeing.n; i++)
		cost += device_forget_cost(freeing.tensors[i]);
	if (later_is_needed(call, cost))
		return LATER;
	return later_is_long(cost) ? free_later(call, &freeing, cost) : release(call, &freeing);
}
