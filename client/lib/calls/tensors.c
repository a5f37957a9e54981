/* Calls about tensors: alloc, view, free, seal, rename, grant, open, show, list. */
#include <string.h>

#include "client/lib/connection/engine/engine.h"
#include "client/lib/messages/message.h"
#include "client/lib/messages/payload.h"
#include "client/lib/messages/reply.h"

/* Where there is no shared memory, segments need its shape. */
static void note(struct npumem *npumem, const struct npumem_tensor *tensor)
{
	if (address_is_remote(&npumem->remote))
		staged_note(&npumem->staged, npumem->memory, tensor);
}

static int take_tensor(struct npumem_request *request, const Npumem__V1__Response *response,
		       struct npumem_error *error)
{
	struct npumem_tensor *tensor = result_take(request->results, sizeof(*tensor));
	if (!tensor)
		return request_no_memory(error);
	request->answer = tensor;
	int status = reply_tensor(response->tensor, tensor);
	if (!status)
		note(request->npumem, tensor);
	return status;
}

static const struct request_kind tensor_kind = {NPUMEM__V1__RESPONSE__RESULT_TENSOR, .take = take_tensor};

/* ---- alloc ---- */

enum {
	ALLOCATION_FIRST = SIZED_UP_TO(struct npumem_allocation, pinned),
	TENSORS_ON_STACK = 8,
	TENSORS_MOST = 256, /* of one request, as npumem.proto has it */
};

/* One allocation as a message. */
struct asked {
	Npumem__V1__Allocation message;
	struct convert_spec spec;
};

/* The memory for the answer was taken before the request was sent: the tensors exist by now, and after an error
 * the caller would not know their handles. */
static int take_tensors(struct npumem_request *request, const Npumem__V1__Response *response,
			struct npumem_error *error)
{
	const Npumem__V1__Allocated *allocated = response->allocated;
	if (allocated->n_tensors != request->n)
		return -1;
	struct npumem_tensors *tensors = result_take(request->results, sizeof(*tensors));
	struct npumem_tensor **list = reply_rows(request->results, request->n, sizeof(**list));
	if (!tensors || !list)
		return request_no_memory(error);
	for (size_t i = 0; i < request->n; i++) {
		if (reply_tensor(allocated->tensors[i], list[i]))
			return -1;
		note(request->npumem, list[i]);
	}
	*tensors = (struct npumem_tensors){(unsigned)request->n, (const struct npumem_tensor *const *)list};
	request->answer = tensors;
	return 0;
}

/* Builds the message in `asked` and `list`, and sends it. */
static int alloc_start(struct npumem *npumem, const struct npumem_allocation *allocations, unsigned n,
		       uint32_t wait_ms, struct asked *asked, Npumem__V1__Allocation **list, NPUMEM_ASYNC)
{
	static const struct request_kind kind = {NPUMEM__V1__RESPONSE__RESULT_ALLOCATED, .take = take_tensors};
	Npumem__V1__AllocRequest alloc = NPUMEM__V1__ALLOC_REQUEST__INIT;
	struct npumem_request *made;
	size_t room = result_room(sizeof(struct npumem_tensors)) + result_room(n * sizeof(void *)) +
		      n * result_room(sizeof(struct npumem_tensor));
	int status = request_new(npumem, &kind, room, callback, context, &made, error);
	if (status)
		return status;
	for (unsigned i = 0; i < n; i++) {
		struct npumem_allocation one;
		sized_get(allocations, i, &one, sizeof(one));
		npumem__v1__allocation__init(&asked[i].message);
		convert_spec_to(&one.spec, &asked[i].spec);
		asked[i].message.spec = &asked[i].spec.message;
		asked[i].message.name = message_text(one.name);
		asked[i].message.label = message_text(one.label);
		asked[i].message.reuse = (Npumem__V1__Reuse)one.reuse;
		asked[i].message.dma_only = one.dma_only;
		asked[i].message.pinned = one.pinned;
		list[i] = &asked[i].message;
	}
	made->n = n;
	alloc.n_tensors = n;
	alloc.tensors = list;
	alloc.wait_ms = wait_ms;
	return request_start(made, &MESSAGE_REQUEST(ALLOC, alloc, &alloc), NULL, request, error);
}

/* The message is built in arrays that must not grow without bounds. */
static int check_count(unsigned n, struct npumem_error *error)
{
	return n <= TENSORS_MOST ? 0
				 : npumem_error_set(error, NPUMEM_INVALID,
						    "a request of %u tensors; %d are the most", n, TENSORS_MOST);
}

int npumem_alloc_wait_async(struct npumem *npumem, const struct npumem_allocation *allocations, unsigned n,
			    uint32_t wait_ms, NPUMEM_ASYNC)
{
	struct asked asked[TENSORS_ON_STACK], *many = asked;
	Npumem__V1__Allocation *list[TENSORS_ON_STACK], **many_list = list;
	request_clear(error);
	int status = check_count(n, error);
	if (!status)
		status = sized_check(allocations, n, ALLOCATION_FIRST, sizeof(*allocations), "allocation", error);
	if (status)
		return status;
	if (n > TENSORS_ON_STACK) {
		many = memory_array(npumem->memory, n, sizeof(*many));
		many_list = memory_array(npumem->memory, n, sizeof(*many_list));
	}
	if (many && many_list)
		status = alloc_start(npumem, allocations, n, wait_ms, many, many_list, callback, context, request,
				     error);
	else
		status = npumem_error_set(error, NPUMEM_RESOURCE_EXHAUSTED,
					  "no memory in this process for a request of %u tensors", n);
	if (n > TENSORS_ON_STACK) {
		memory_free(npumem->memory, many_list);
		memory_free(npumem->memory, many);
	}
	return status;
}

int npumem_alloc_async(struct npumem *npumem, const struct npumem_allocation *allocations, unsigned n,
		       NPUMEM_ASYNC)
{
	return npumem_alloc_wait_async(npumem, allocations, n, 0, callback, context, request, error);
}

/* ---- free ---- */

/* What is gone needs no shape; `state` has the handles. */
static int take_freed(struct npumem_request *request, const Npumem__V1__Response *response,
		      struct npumem_error *error)
{
	const uint64_t *handles = request->state;
	(void)response;
	(void)error;
	for (size_t i = 0; handles && i < request->n; i++)
		staged_forget(&request->npumem->staged, handles[i]);
	return 0;
}

/* Where there is no memory for it, it stays known. */
static void free_note(struct npumem_request *made, const uint64_t *handles, unsigned n)
{
	uint64_t *copy = n && made->npumem->staged.used ? result_array(made->results, n, sizeof(*copy)) : NULL;
	if (copy)
		made->state = memcpy(copy, handles, n * sizeof(*copy));
	made->n = n;
}

int npumem_free_async(struct npumem *npumem, const uint64_t *handles, unsigned n, NPUMEM_ASYNC)
{
	static const struct request_kind kind = {NPUMEM__V1__RESPONSE__RESULT_FREED, .take = take_freed};
	Npumem__V1__Ref refs[TENSORS_MOST], *list[TENSORS_MOST];
	Npumem__V1__FreeRequest free = NPUMEM__V1__FREE_REQUEST__INIT;
	struct npumem_request *made;
	request_clear(error);
	int status = check_count(n, error);
	if (!status)
		status = request_new(npumem, &kind, 0, callback, context, &made, error);
	if (status)
		return status;
	for (unsigned i = 0; i < n; i++)
		list[i] = message_ref(handles[i], &refs[i]);
	free_note(made, handles, n);
	free.n_tensors = n;
	free.tensors = list;
	return request_start(made, &MESSAGE_REQUEST(FREE, free, &free), NULL, request, error);
}

/* ---- one tensor ---- */

static int start(struct npumem *npumem, Npumem__V1__Request *message, NPUMEM_ASYNC)
{
	return request_call(npumem, &tensor_kind, message, NULL, callback, context, request, error);
}

static int view(struct npumem *npumem, uint64_t base, const char *name, const struct npumem_dims *from,
		const struct npumem_dims *to, const struct npumem_dims *shape, const int64_t *frac_bits,
		NPUMEM_ASYNC)
{
	Npumem__V1__ViewRequest view = NPUMEM__V1__VIEW_REQUEST__INIT;
	Npumem__V1__Ref ref;
	Npumem__V1__Dims dims[3];
	view.name = message_text(name);
	view.tensor = message_ref(base, &ref);
	view.from = message_dims(from, &dims[0]);
	view.to = message_dims(to, &dims[1]);
	view.shape = message_dims(shape, &dims[2]);
	if (frac_bits) {
		view.frac_bits_given_case = NPUMEM__V1__VIEW_REQUEST__FRAC_BITS_GIVEN_FRAC_BITS;
		view.frac_bits = *frac_bits;
	}
	return start(npumem, &MESSAGE_REQUEST(VIEW, view, &view), callback, context, request, error);
}

int npumem_view_async(struct npumem *npumem, uint64_t base, const char *name, const struct npumem_dims *from,
		      const struct npumem_dims *to, NPUMEM_ASYNC)
{
	return view(npumem, base, name, from, to, NULL, NULL, callback, context, request, error);
}

int npumem_reshape_async(struct npumem *npumem, uint64_t base, const char *name, const struct npumem_dims *shape,
			 NPUMEM_ASYNC)
{
	return view(npumem, base, name, NULL, NULL, shape, NULL, callback, context, request, error);
}

int npumem_view_format_async(struct npumem *npumem, uint64_t base, const char *name, int64_t frac_bits,
			     NPUMEM_ASYNC)
{
	return view(npumem, base, name, NULL, NULL, NULL, &frac_bits, callback, context, request, error);
}

int npumem_seal_async(struct npumem *npumem, uint64_t handle, NPUMEM_ASYNC)
{
	Npumem__V1__SealRequest seal = NPUMEM__V1__SEAL_REQUEST__INIT;
	Npumem__V1__Ref ref;
	seal.tensor = message_ref(handle, &ref);
	return start(npumem, &MESSAGE_REQUEST(SEAL, seal, &seal), callback, context, request, error);
}

int npumem_rename_async(struct npumem *npumem, uint64_t handle, const char *name, NPUMEM_ASYNC)
{
	Npumem__V1__RenameRequest rename = NPUMEM__V1__RENAME_REQUEST__INIT;
	Npumem__V1__Ref ref;
	rename.tensor = message_ref(handle, &ref);
	rename.name = message_text(name);
	return start(npumem, &MESSAGE_REQUEST(RENAME, rename, &rename), callback, context, request, error);
}

int npumem_grant_async(struct npumem *npumem, uint64_t handle, uint32_t uid, int access, NPUMEM_ASYNC)
{
	Npumem__V1__GrantRequest grant = NPUMEM__V1__GRANT_REQUEST__INIT;
	Npumem__V1__Ref ref;
	grant.tensor = message_ref(handle, &ref);
	grant.uid = uid;
	grant.access = (Npumem__V1__Access)access;
	return start(npumem, &MESSAGE_REQUEST(GRANT, grant, &grant), callback, context, request, error);
}

static int open_named(struct npumem *npumem, const char *name, uint64_t handle, NPUMEM_ASYNC)
{
	Npumem__V1__OpenRequest open = NPUMEM__V1__OPEN_REQUEST__INIT;
	Npumem__V1__Ref ref;
	open.tensor = message_ref(handle, &ref);
	ref.name = message_text(name);
	return start(npumem, &MESSAGE_REQUEST(OPEN, open, &open), callback, context, request, error);
}

int npumem_open_tensor_async(struct npumem *npumem, const char *name, NPUMEM_ASYNC)
{
	return open_named(npumem, name, 0, callback, context, request, error);
}

int npumem_show_async(struct npumem *npumem, uint64_t handle, NPUMEM_ASYNC)
{
	return open_named(npumem, NULL, handle, callback, context, request, error);
}
