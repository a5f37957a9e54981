/* A page of the tensors that a session may know of.
 * Invariant: the work of a page has a bound, whatever the device holds and whoever owns it, and where it is to
 * count the bytes of large tensors it does so on another thread: one client that lists must not keep the others
 * waiting. */
#include "daemon/rpc/calls/charge.h"
#include "daemon/rpc/handlers/handler.h"
#include "daemon/rpc/handlers/tensor_message.h"

enum {
	PAGE_TENSORS_MAX = 256, /* as npumem.proto says */
	/* Of what is not there, or not for this session, a look costs some 10 to 50 ns. */
	PAGE_LOOKS_MAX = 4096,
	PAGE_COST_MAX = 20000000, /* op_cost's unit: about 10 ms of a thread, where one tensor is not more */
	TENSORS_FIELD = 1,	  /* List.tensors */
};

struct page {
	unsigned n;
	uint64_t next;
	int64_t cost; /* to count the tensors' bytes */
	struct tensor *tensors[PAGE_TENSORS_MAX];
	struct device_state states[PAGE_TENSORS_MAX]; /* but for their bytes */
};

/* A page that is counted elsewhere: its tensors may be gone, or not for this session any more, when that is done.
 */
struct counting {
	const struct device *device;
	uint64_t next;
	unsigned n;
	struct counted {
		uint64_t handle;
		struct device_scan scan;
		struct device_state state;
	} tensors[];
};

static void add(const struct call *call, struct tensor *tensor, struct page *page)
{
	struct device *device = call->rpc->service->device;

	device_state_lending(tensor, &page->states[page->n]);
	page->cost += device_scan_cost(device, tensor);
	page->tensors[page->n++] = tensor;
}

/* A full page goes on behind its last tensor, and only where there is another; any other behind the last slot that
 * was looked at. */
static void collect(const struct call *call, const Npumem__V1__ListRequest *request, struct page *page)
{
	unsigned most = request->limit && request->limit < PAGE_TENSORS_MAX ? request->limit : PAGE_TENSORS_MAX;
	unsigned looks = PAGE_LOOKS_MAX;
	uint64_t at = request->after;
	struct tensor *tensor;

	page->n = 0;
	page->next = 0;
	page->cost = 0;
	while ((tensor = tensors_after(call->session, &at, &looks)) && page->n < most &&
	       page->cost < PAGE_COST_MAX) {
		add(call, tensor, page);
		page->next = at;
	}
	if (!tensor)
		page->next = at;
}

static size_t page_open(struct call *call, unsigned n)
{
	return reply_open(&call->reply, NPUMEM__V1__RESPONSE__RESULT_LIST,
			  (size_t)n * TENSOR_MESSAGE_EXPECTED_BYTES);
}

static void page_close(struct call *call, size_t mark, unsigned n, uint64_t next)
{
	Npumem__V1__List message = NPUMEM__V1__LIST__INIT;

	message.next = next;
	reply_fields(&call->reply, &message.base);
	reply_close(&call->reply, mark, (size_t)n * TENSOR_MESSAGE_EXPECTED_BYTES);
}

static void append(struct call *call, const struct tensor *tensor, const struct device_state *state)
{
	struct tensor_message message;

	reply_message(&call->reply, TENSORS_FIELD, tensor_message(call, tensor, state, &message));
}

static void count(void *arg)
{
	struct counting *counting = arg;

	for (unsigned i = 0; i < counting->n; i++)
		device_scan(counting->device, &counting->tensors[i].scan, &counting->tensors[i].state);
}

static int on_counted(struct call *call, void *arg)
{
	struct counting *counting = arg;
	struct device *device = call->rpc->service->device;
	size_t mark = page_open(call, counting->n);

	for (unsigned i = 0; i < counting->n; i++) {
		struct counted *counted = &counting->tensors[i];
		const struct tensor *tensor = device_find(device, counted->handle);

		if (tensor && access_sees(call->session, tensor))
			append(call, tensor, &counted->state);
	}
	page_close(call, mark, counting->n, counting->next);
	heap_free(call->rpc->heap, counting);
	return 0;
}

static int count_later(struct call *call, const struct page *page)
{
	struct counting *counting;
	size_t bytes = sizeof(*counting) + page->n * sizeof(counting->tensors[0]);
	int status = charge_run(call, bytes);

	if (status)
		return status;
	counting = heap_alloc(call->rpc->heap, bytes);
	if (!counting)
		return heap_exhausted(call->error);
	counting->device = call->rpc->service->device;
	counting->next = page->next;
	counting->n = page->n;
	for (unsigned i = 0; i < page->n; i++) {
		counting->tensors[i].handle = page->tensors[i]->handle;
		counting->tensors[i].scan = device_scan_of(page->tensors[i]);
		counting->tensors[i].state = page->states[i];
	}
	return perform_later(call, page->cost, count, on_counted, counting);
}

int handle_list(struct call *call, const Npumem__V1__ListRequest *request)
{
	struct page page;
	size_t mark;
	int status;

	collect(call, request, &page);
	status = reply_reserve(&call->reply, page.n * (size_t)TENSOR_MESSAGE_BYTES_MAX + 4 * REPLY_TAG_BYTES,
			       call->error);
	if (status)
		return status;
	if (call_is_long(page.cost))
		return count_later(call, &page);
	mark = page_open(call, page.n);
	for (unsigned i = 0; i < page.n; i++) {
		struct device_scan scan = device_scan_of(page.tensors[i]);

		device_scan(call->rpc->service->device, &scan, &page.states[i]);
		append(call, page.tensors[i], &page.states[i]);
	}
	page_close(call, mark, page.n, page.next);
	return 0;
}
