/* Requests with a waiting caller and requests with a callback. Invariant: a `struct call` on a stack is in the
 * table of pending requests only while call_wait runs, or its caller is about to call it. */
#include "client/lib/call.h"

#include "client/lib/reply.h"

enum { CALL_TENSORS_ON_STACK = 4 };

int call_begin(struct npumem *npumem, struct npumem_error *error)
{
	call_clear(error);
	if (npumem->dispatching)
		return npumem_error_set(error, NPUMEM_INVALID, "a callback may send, but not wait for an answer");
	return 0;
}

static int call_done(const struct pending *pending, const Npumem__V1__Response *response,
		     const struct npumem_error *error)
{
	struct call *call = pending->context;
	if (response && call->take && call->take(call, response) && !error)
		return -1;
	call->answered = true;
	call->status = error ? error->status : 0;
	/* Several calls may share an error object: the first refusal is the one that explains the others. */
	if (error && call->error && !call->error->status)
		*call->error = *error;
	return 0;
}

int call_send(struct npumem *npumem, Npumem__V1__Request *request, unsigned result, struct call *call,
	      struct npumem_error *error)
{
	struct pending pending = {.result = result, .done = call_done, .context = call};
	call->answered = false;
	call->error = error;
	return engine_send(npumem, request, &pending, error);
}

int call_wait(struct npumem *npumem, struct call *call)
{
	/* A connection that breaks answers every request, so this ends. */
	while (!call->answered)
		engine_wait(npumem, NULL);
	return call->status;
}

int call_run(struct npumem *npumem, Npumem__V1__Request *request, unsigned result, struct call *call,
	     struct npumem_error *error)
{
	int status = call_begin(npumem, error);
	if (!status)
		status = call_send(npumem, request, result, call, error);
	return status ? status : call_wait(npumem, call);
}

/* ---- callbacks ---- */

static const struct npumem_error no_error;

static int answer_tensors(const struct pending *pending, Npumem__V1__Tensor *const *messages, size_t n,
			  struct npumem_tensor *tensors)
{
	if (n != pending->n)
		return -1;
	for (size_t i = 0; i < n; i++)
		if (reply_tensor(messages[i], &tensors[i]))
			return -1;
	pending->callback(
		pending->context,
		&(struct npumem_answer){.error = &no_error, .tensors = tensors, .n_tensors = pending->n});
	return 0;
}

static int answer_one(const struct pending *pending, const Npumem__V1__Response *response,
		      const struct npumem_error *error)
{
	struct npumem_tensor tensors[CALL_TENSORS_ON_STACK];
	struct npumem_done done;
	if (error) {
		pending->callback(pending->context,
				  &(struct npumem_answer){.status = error->status, .error = error});
		return 0;
	}
	switch (response->result_case) {
	case NPUMEM__V1__RESPONSE__RESULT_TENSOR:
		return answer_tensors(pending, &response->tensor, 1, tensors);
	case NPUMEM__V1__RESPONSE__RESULT_ALLOCATED:
		return answer_tensors(pending, response->allocated->tensors, response->allocated->n_tensors,
				      tensors);
	case NPUMEM__V1__RESPONSE__RESULT_DONE:
		reply_done(response->done, &done);
		pending->callback(pending->context, &(struct npumem_answer){.error = &no_error,
									    .done = &done,
									    .data = response->done->data.data,
									    .bytes = response->done->data.len});
		return 0;
	default:
		pending->callback(pending->context, &(struct npumem_answer){.error = &no_error});
		return 0;
	}
}

/* The answer to many tensors at once. Their memory was taken when the request was sent: the tensors exist by now,
 * and a caller who is told otherwise would lose them. */
struct many {
	const struct memory *memory;
	struct pending pending;
	struct npumem_tensor tensors[];
};

static int answer_many(const struct pending *pending, const Npumem__V1__Response *response,
		       const struct npumem_error *error)
{
	struct many *many = pending->context;
	int result = 0;
	if (error)
		result = answer_one(&many->pending, NULL, error);
	else
		result = answer_tensors(&many->pending, response->allocated->tensors,
					response->allocated->n_tensors, many->tensors);
	if (!result)
		memory_free(many->memory, many);
	return result;
}

int call_callback(struct npumem *npumem, Npumem__V1__Request *request, unsigned result, unsigned n,
		  npumem_callback *callback, void *context, struct npumem_error *error)
{
	struct pending pending = {
		.result = result, .done = answer_one, .callback = callback, .context = context, .n = n};
	if (n <= CALL_TENSORS_ON_STACK)
		return engine_send(npumem, request, &pending, error);
	size_t bytes;
	struct many *many = NULL;
	if (!__builtin_mul_overflow((size_t)n, sizeof(many->tensors[0]), &bytes) &&
	    !__builtin_add_overflow(bytes, sizeof(*many), &bytes))
		many = memory_alloc(npumem->memory, bytes);
	if (!many)
		return npumem_error_set(error, NPUMEM_RESOURCE_EXHAUSTED,
					"no memory in this process for %u tensors", n);
	many->memory = npumem->memory;
	many->pending = pending;
	pending.done = answer_many;
	pending.context = many;
	int status = engine_send(npumem, request, &pending, error);
	if (status)
		memory_free(npumem->memory, many);
	return status;
}
