/* All tensors that one may know of, asked for page by page. */
#include <limits.h>
#include <string.h>

#include "client/lib/connection/engine/engine.h"
#include "client/lib/messages/message.h"
#include "client/lib/messages/reply.h"

/* The pages so far. */
struct listed {
	struct npumem_tensor **list;
	size_t n, room;
	uint64_t after; /* where the page that is awaited begins; 0 after the last */
};

static bool grow(struct result *result, struct listed *listed, size_t n)
{
	size_t room = listed->room > n / 2 ? 2 * listed->room : n;
	if (n <= listed->room)
		return true;
	struct npumem_tensor **list = result_array(result, room, sizeof(*list));
	if (!list)
		return false;
	if (listed->n)
		memcpy(list, listed->list, listed->n * sizeof(*list));
	listed->list = list;
	listed->room = room;
	return true;
}

static int no_memory(const struct listed *listed, struct npumem_error *error)
{
	return npumem_error_set(error, NPUMEM_RESOURCE_EXHAUSTED,
				"no memory in this process for a list of more than %zu tensors", listed->n);
}

static int take_page(struct npumem_request *request, const Npumem__V1__Response *response,
		     struct npumem_error *error)
{
	struct listed *listed = request->state;
	const Npumem__V1__List *page = response->list;
	/* A page that leads back would have no end. */
	if ((page->next && page->next <= listed->after) || page->n_tensors > UINT_MAX - listed->n)
		return -1;
	if (!grow(request->results, listed, listed->n + page->n_tensors))
		return no_memory(listed, error);
	for (size_t i = 0; i < page->n_tensors; i++) {
		struct npumem_tensor *tensor = result_take(request->results, sizeof(*tensor));
		if (!tensor)
			return no_memory(listed, error);
		if (reply_tensor(page->tensors[i], tensor))
			return -1;
		if (address_is_remote(&request->npumem->remote))
			staged_note(&request->npumem->staged, request->npumem->memory, tensor);
		listed->list[listed->n++] = tensor;
	}
	listed->after = page->next;
	return 0;
}

static int ask_page(struct npumem_request *request, struct npumem_error *error)
{
	const struct listed *listed = request->state;
	Npumem__V1__ListRequest list = NPUMEM__V1__LIST_REQUEST__INIT;
	list.after = listed->after;
	return request_send(request, &MESSAGE_REQUEST(LIST, list, &list), NULL, error);
}

static int next_page(struct npumem_request *request, struct npumem_error *error)
{
	const struct listed *listed = request->state;
	if (listed->after)
		return ask_page(request, error);
	struct npumem_tensors *tensors = result_take(request->results, sizeof(*tensors));
	if (!tensors)
		return no_memory(listed, error);
	*tensors = (struct npumem_tensors){(unsigned)listed->n, (const struct npumem_tensor *const *)listed->list};
	request->answer = tensors;
	return 0;
}

int npumem_list_async(struct npumem *npumem, NPUMEM_ASYNC)
{
	static const struct request_kind kind = {NPUMEM__V1__RESPONSE__RESULT_LIST, take_page, next_page, NULL};
	struct npumem_request *made;
	int status = request_new(npumem, &kind, 0, callback, context, &made, error);
	if (status)
		return status;
	made->state = result_take(made->results, sizeof(struct listed));
	return request_sent(made, ask_page(made, error), request);
}
