/* Calls about tensors: alloc, view, free, seal, open, show, list. */
#include <limits.h>
#include <string.h>

#include "client/lib/call.h"
#include "client/lib/reply.h"
#include "client/lib/request.h"
#include "proto/convert.h"

static int take_tensor(struct call *call, const Npumem__V1__Response *response)
{
	return reply_tensor(response->tensor, call->result);
}

static int take_tensors(struct call *call, const Npumem__V1__Response *response)
{
	struct npumem_tensor *tensors = call->result;
	if (response->allocated->n_tensors != call->n)
		return -1;
	for (size_t i = 0; i < call->n; i++)
		if (reply_tensor(response->allocated->tensors[i], &tensors[i]))
			return -1;
	return 0;
}

/* ---- alloc ---- */

/* One allocation as a message. */
struct asked {
	Npumem__V1__Allocation message;
	struct convert_spec spec;
};

enum { TENSORS_ON_STACK = 8 };

/* Builds the request in `asked` and `list`, and sends it the one way or the other. */
static int alloc_request(struct npumem *npumem, const struct npumem_allocation *allocations, unsigned n,
			 uint32_t wait_ms, struct asked *asked, Npumem__V1__Allocation **list, struct call *call,
			 npumem_callback *callback, void *context, struct npumem_error *error)
{
	Npumem__V1__Request request = NPUMEM__V1__REQUEST__INIT;
	Npumem__V1__AllocRequest message = NPUMEM__V1__ALLOC_REQUEST__INIT;
	for (unsigned i = 0; i < n; i++) {
		npumem__v1__allocation__init(&asked[i].message);
		convert_spec_to(&allocations[i].spec, &asked[i].spec);
		asked[i].message.spec = &asked[i].spec.message;
		asked[i].message.name = request_text(allocations[i].name);
		asked[i].message.reuse = (Npumem__V1__Reuse)allocations[i].reuse;
		asked[i].message.dma_only = allocations[i].dma_only;
		asked[i].message.pinned = allocations[i].pinned;
		list[i] = &asked[i].message;
	}
	message.n_tensors = n;
	message.tensors = list;
	message.wait_ms = wait_ms;
	request.call_case = NPUMEM__V1__REQUEST__CALL_ALLOC;
	request.alloc = &message;
	if (call)
		return call_send(npumem, &request, NPUMEM__V1__RESPONSE__RESULT_ALLOCATED, call, error);
	return call_callback(npumem, &request, NPUMEM__V1__RESPONSE__RESULT_ALLOCATED, n, callback, context,
			     error);
}

static int alloc_send(struct npumem *npumem, const struct npumem_allocation *allocations, unsigned n,
		      uint32_t wait_ms, struct call *call, npumem_callback *callback, void *context,
		      struct npumem_error *error)
{
	struct asked asked[TENSORS_ON_STACK];
	Npumem__V1__Allocation *list[TENSORS_ON_STACK];
	if (n <= TENSORS_ON_STACK)
		return alloc_request(npumem, allocations, n, wait_ms, asked, list, call, callback, context, error);
	struct asked *many = memory_array(npumem->memory, n, sizeof(*many));
	Npumem__V1__Allocation **many_list = memory_array(npumem->memory, n, sizeof(*many_list));
	int status;
	if (many && many_list)
		status = alloc_request(npumem, allocations, n, wait_ms, many, many_list, call, callback, context,
				       error);
	else
		status = npumem_error_set(error, NPUMEM_RESOURCE_EXHAUSTED,
					  "no memory in this process for a request of %u tensors", n);
	memory_free(npumem->memory, many_list);
	memory_free(npumem->memory, many);
	return status;
}

int npumem_alloc_wait(struct npumem *npumem, const struct npumem_allocation *allocations, unsigned n,
		      uint32_t wait_ms, struct npumem_tensor *tensors, struct npumem_error *error)
{
	struct call call = {.take = take_tensors, .result = tensors, .n = n};
	int status = call_begin(npumem, error);
	if (!status)
		status = alloc_send(npumem, allocations, n, wait_ms, &call, NULL, NULL, error);
	return status ? status : call_wait(npumem, &call);
}

int npumem_alloc(struct npumem *npumem, const struct npumem_allocation *allocations, unsigned n,
		 struct npumem_tensor *tensors, struct npumem_error *error)
{
	return npumem_alloc_wait(npumem, allocations, n, 0, tensors, error);
}

int npumem_alloc_wait_send(struct npumem *npumem, const struct npumem_allocation *allocations, unsigned n,
			   uint32_t wait_ms, npumem_callback *callback, void *context, struct npumem_error *error)
{
	call_clear(error);
	return alloc_send(npumem, allocations, n, wait_ms, NULL, callback, context, error);
}

int npumem_alloc_send(struct npumem *npumem, const struct npumem_allocation *allocations, unsigned n,
		      npumem_callback *callback, void *context, struct npumem_error *error)
{
	return npumem_alloc_wait_send(npumem, allocations, n, 0, callback, context, error);
}

/* ---- views ---- */

static int view_run(struct npumem *npumem, uint64_t base, const char *name, const struct npumem_dims *from,
		    const struct npumem_dims *to, const struct npumem_dims *shape, struct npumem_tensor *view,
		    struct npumem_error *error)
{
	Npumem__V1__Request request = NPUMEM__V1__REQUEST__INIT;
	Npumem__V1__ViewRequest message = NPUMEM__V1__VIEW_REQUEST__INIT;
	Npumem__V1__Ref ref;
	Npumem__V1__Dims dims[3];
	struct call call = {.take = take_tensor, .result = view};
	message.name = request_text(name);
	message.tensor = request_ref(base, &ref);
	if (from) {
		convert_dims_to(from, &dims[0]);
		message.from = &dims[0];
	}
	if (to) {
		convert_dims_to(to, &dims[1]);
		message.to = &dims[1];
	}
	if (shape) {
		convert_dims_to(shape, &dims[2]);
		message.shape = &dims[2];
	}
	request.call_case = NPUMEM__V1__REQUEST__CALL_VIEW;
	request.view = &message;
	return call_run(npumem, &request, NPUMEM__V1__RESPONSE__RESULT_TENSOR, &call, error);
}

int npumem_view(struct npumem *npumem, uint64_t base, const char *name, const struct npumem_dims *from,
		const struct npumem_dims *to, struct npumem_tensor *view, struct npumem_error *error)
{
	return view_run(npumem, base, name, from, to, NULL, view, error);
}

int npumem_reshape(struct npumem *npumem, uint64_t base, const char *name, const struct npumem_dims *shape,
		   struct npumem_tensor *view, struct npumem_error *error)
{
	return view_run(npumem, base, name, NULL, NULL, shape, view, error);
}

/* ---- free ---- */

static int free_request(struct npumem *npumem, const uint64_t *handles, unsigned n, Npumem__V1__Ref *refs,
			Npumem__V1__Ref **list, struct call *call, npumem_callback *callback, void *context,
			struct npumem_error *error)
{
	Npumem__V1__Request request = NPUMEM__V1__REQUEST__INIT;
	Npumem__V1__FreeRequest message = NPUMEM__V1__FREE_REQUEST__INIT;
	for (unsigned i = 0; i < n; i++)
		list[i] = request_ref(handles[i], &refs[i]);
	message.n_tensors = n;
	message.tensors = list;
	request.call_case = NPUMEM__V1__REQUEST__CALL_FREE;
	request.free = &message;
	if (call)
		return call_send(npumem, &request, NPUMEM__V1__RESPONSE__RESULT_FREED, call, error);
	return call_callback(npumem, &request, NPUMEM__V1__RESPONSE__RESULT_FREED, 0, callback, context, error);
}

static int free_send(struct npumem *npumem, const uint64_t *handles, unsigned n, struct call *call,
		     npumem_callback *callback, void *context, struct npumem_error *error)
{
	Npumem__V1__Ref refs[TENSORS_ON_STACK], *list[TENSORS_ON_STACK];
	if (n <= TENSORS_ON_STACK)
		return free_request(npumem, handles, n, refs, list, call, callback, context, error);
	Npumem__V1__Ref *many = memory_array(npumem->memory, n, sizeof(*many));
	Npumem__V1__Ref **many_list = memory_array(npumem->memory, n, sizeof(*many_list));
	int status;
	if (many && many_list)
		status = free_request(npumem, handles, n, many, many_list, call, callback, context, error);
	else
		status = npumem_error_set(error, NPUMEM_RESOURCE_EXHAUSTED,
					  "no memory in this process for a request of %u tensors", n);
	memory_free(npumem->memory, many_list);
	memory_free(npumem->memory, many);
	return status;
}

int npumem_free(struct npumem *npumem, const uint64_t *handles, unsigned n, struct npumem_error *error)
{
	struct call call = {.take = NULL};
	int status = call_begin(npumem, error);
	if (!status)
		status = free_send(npumem, handles, n, &call, NULL, NULL, error);
	return status ? status : call_wait(npumem, &call);
}

int npumem_free_send(struct npumem *npumem, const uint64_t *handles, unsigned n, npumem_callback *callback,
		     void *context, struct npumem_error *error)
{
	call_clear(error);
	return free_send(npumem, handles, n, NULL, callback, context, error);
}

/* ---- one tensor ---- */

int npumem_seal(struct npumem *npumem, uint64_t handle, struct npumem_error *error)
{
	Npumem__V1__Request request = NPUMEM__V1__REQUEST__INIT;
	Npumem__V1__SealRequest message = NPUMEM__V1__SEAL_REQUEST__INIT;
	Npumem__V1__Ref ref;
	struct call call = {.take = NULL};
	message.tensor = request_ref(handle, &ref);
	request.call_case = NPUMEM__V1__REQUEST__CALL_SEAL;
	request.seal = &message;
	return call_run(npumem, &request, NPUMEM__V1__RESPONSE__RESULT_TENSOR, &call, error);
}

int npumem_grant(struct npumem *npumem, uint64_t handle, uint32_t uid, int access, struct npumem_error *error)
{
	Npumem__V1__Request request = NPUMEM__V1__REQUEST__INIT;
	Npumem__V1__GrantRequest message = NPUMEM__V1__GRANT_REQUEST__INIT;
	Npumem__V1__Ref ref;
	struct call call = {.take = NULL};
	message.tensor = request_ref(handle, &ref);
	message.uid = uid;
	message.access = (Npumem__V1__Access)access;
	request.call_case = NPUMEM__V1__REQUEST__CALL_GRANT;
	request.grant = &message;
	return call_run(npumem, &request, NPUMEM__V1__RESPONSE__RESULT_TENSOR, &call, error);
}

static int open_send(struct npumem *npumem, const char *name, uint64_t handle, struct call *call,
		     npumem_callback *callback, void *context, struct npumem_error *error)
{
	Npumem__V1__Request request = NPUMEM__V1__REQUEST__INIT;
	Npumem__V1__OpenRequest message = NPUMEM__V1__OPEN_REQUEST__INIT;
	Npumem__V1__Ref ref;
	message.tensor = request_ref(handle, &ref);
	ref.name = request_text(name);
	request.call_case = NPUMEM__V1__REQUEST__CALL_OPEN;
	request.open = &message;
	if (call)
		return call_send(npumem, &request, NPUMEM__V1__RESPONSE__RESULT_TENSOR, call, error);
	return call_callback(npumem, &request, NPUMEM__V1__RESPONSE__RESULT_TENSOR, 1, callback, context, error);
}

int npumem_open_tensor(struct npumem *npumem, const char *name, struct npumem_tensor *tensor,
		       struct npumem_error *error)
{
	struct call call = {.take = take_tensor, .result = tensor};
	int status = call_begin(npumem, error);
	if (!status)
		status = open_send(npumem, name, 0, &call, NULL, NULL, error);
	return status ? status : call_wait(npumem, &call);
}

int npumem_open_tensor_send(struct npumem *npumem, const char *name, npumem_callback *callback, void *context,
			    struct npumem_error *error)
{
	call_clear(error);
	return open_send(npumem, name, 0, NULL, callback, context, error);
}

int npumem_show(struct npumem *npumem, uint64_t handle, struct npumem_tensor *tensor, struct npumem_error *error)
{
	struct call call = {.take = take_tensor, .result = tensor};
	int status = call_begin(npumem, error);
	if (!status)
		status = open_send(npumem, NULL, handle, &call, NULL, NULL, error);
	return status ? status : call_wait(npumem, &call);
}

/* ---- list ---- */

struct listed {
	const struct memory *memory;
	struct npumem_tensor *tensors;
	size_t n, room;
	uint64_t after; /* where the page that is awaited begins; 0 after the last */
	bool no_memory;
};

static void listed_grow(struct listed *listed, size_t n)
{
	size_t room = listed->room > n / 2 ? 2 * listed->room : n, bytes;
	void *grown = NULL;
	if (n <= listed->room)
		return;
	if (!__builtin_mul_overflow(room, sizeof(*listed->tensors), &bytes))
		grown = listed->memory->resize(listed->memory->ctx, listed->tensors, bytes);
	listed->no_memory = !grown;
	if (!grown)
		return;
	listed->tensors = grown;
	listed->room = room;
}

static int take_page(struct call *call, const Npumem__V1__Response *response)
{
	struct listed *listed = call->result;
	const Npumem__V1__List *page = response->list;
	/* A page that leads back would have no end. */
	if ((page->next && page->next <= listed->after) || page->n_tensors > UINT_MAX - listed->n)
		return -1;
	listed_grow(listed, listed->n + page->n_tensors);
	for (size_t i = 0; i < page->n_tensors && !listed->no_memory; i++)
		if (reply_tensor(page->tensors[i], &listed->tensors[listed->n++]))
			return -1;
	listed->after = page->next;
	return 0;
}

int npumem_list(struct npumem *npumem, struct npumem_tensor **tensors, unsigned *n, struct npumem_error *error)
{
	Npumem__V1__Request request = NPUMEM__V1__REQUEST__INIT;
	Npumem__V1__ListRequest message = NPUMEM__V1__LIST_REQUEST__INIT;
	struct listed listed = {.memory = npumem->memory};
	int status;
	request.call_case = NPUMEM__V1__REQUEST__CALL_LIST;
	request.list = &message;
	*tensors = NULL;
	*n = 0;
	do {
		struct call call = {.take = take_page, .result = &listed};
		message.after = listed.after;
		status = call_run(npumem, &request, NPUMEM__V1__RESPONSE__RESULT_LIST, &call, error);
		if (!status && listed.no_memory)
			status = npumem_error_set(error, NPUMEM_RESOURCE_EXHAUSTED,
						  "no memory in this process for a list of more than %zu tensors",
						  listed.n);
	} while (!status && listed.after);
	if (status) {
		memory_free(listed.memory, listed.tensors);
		return status;
	}
	*tensors = listed.tensors;
	*n = (unsigned)listed.n;
	return 0;
}
