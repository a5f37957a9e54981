/* A page of the tensors that a session may know of. Invariant: the work of a page has a bound that depends neither
 * on the device's tensors nor on their owners. The bytes of large tensors are counted on another thread, so that a
 * client that lists does not keep the others waiting. */
#include "daemon/rpc/calls/charge.h"
#include "daemon/rpc/calls/perform.h"
#include "daemon/rpc/handlers/handler.h"
#include "daemon/rpc/handlers/tensor_page.h"

enum {
	PAGE_TENSORS_MAX = 256, /* as npumem.proto says */
	/* Slots that are empty, or whose tensor this session may not see: 10 to 50 ns each. */
	PAGE_SLOTS_MAX = 4096,
	PAGE_COST_MAX = 20000000, /* op_cost's unit: about 10 ms of a thread, where one tensor is not more */
	TENSORS_FIELD = 1,	  /* List.tensors */
};

/* A full page goes on behind its last tensor, and only where there is another; any other behind the last slot that
 * was visited. */
static void collect(const struct call *call, const Npumem__V1__ListRequest *request, unsigned most,
		    struct tensor_page *page)
{
	unsigned slots = PAGE_SLOTS_MAX;
	uint64_t at = request->after;
	struct tensor *tensor;

	while ((tensor = tensors_after(call->session, &at, &slots)) && page->n < most &&
	       page->cost < PAGE_COST_MAX) {
		tensor_page_add(page, tensor);
		page->at = at;
	}
	if (!tensor)
		page->at = at;
}

static int on_counted(struct call *call)
{
	const struct tensor_page *page = call->page;
	size_t expected = (size_t)page->n * TENSOR_MESSAGE_EXPECTED_BYTES;
	size_t mark = reply_open(&call->reply, NPUMEM__V1__RESPONSE__RESULT_LIST, expected);
	Npumem__V1__List message = NPUMEM__V1__LIST__INIT;

	for (unsigned i = 0; i < page->n; i++) {
		const struct tensor *tensor = tensor_page_at(page, i);
		struct tensor_message to;

		if (tensor && access_sees(call->session, tensor))
			reply_message(&call->reply, TENSORS_FIELD,
				      tensor_message(call, tensor, &page->rows[i].state, &to));
	}
	message.next = page->at;
	reply_fields(&call->reply, &message.base);
	reply_close(&call->reply, mark, expected);
	return 0;
}

int handle_list(struct call *call)
{
	const Npumem__V1__ListRequest *request = call->request->list;
	unsigned most = request->limit && request->limit < PAGE_TENSORS_MAX ? request->limit : PAGE_TENSORS_MAX;
	struct tensor_page *page = tensor_page_new(call, most);
	int status;

	if (!page)
		return heap_exhausted(call->error);
	collect(call, request, most, page);
	status = reply_reserve(&call->reply, page->n * (size_t)TENSOR_MESSAGE_BYTES_MAX + 4 * REPLY_TAG_BYTES,
			       call->error);
	if (!status && call_is_long(page->cost))
		status = charge_run(call, tensor_page_bytes(most));
	return status ? status : perform_later(call, page->cost, tensor_page_count, on_counted);
}
