/* The pages are written while other requests run, in the session's own turns. Invariant: each tensor of the moment
 * is in exactly one page. A tensor that is freed before its page is written has a page of its own; one that was
 * created later has none: its era differs. */
#include "daemon/rpc/handlers/record_tensors.h"

#include "daemon/rpc/calls/perform.h"
#include "daemon/rpc/handlers/tensor_page.h"
#include "daemon/rpc/order/gate.h"
#include "daemon/service/observed/recorder.h"
#include "proto/frame.h"

enum {
	PAGE_TENSORS = 64,
	PAGE_SLOTS = 4096, /* of the device, that are visited for a page */
};

struct pages {
	const struct record_steps *steps;
	struct call *call;
	uint64_t done; /* slots below are in pages that are written */
};

/* False: the record was ended meanwhile. */
static bool is_recording(const struct pages *pages)
{
	return pages->call->rpc->service->recorder.leaves_ctx == pages;
}

static int end_pages(struct pages *pages)
{
	const struct record_steps *steps = pages->steps;
	struct call *call = pages->call;
	struct recorder *recorder = &call->rpc->service->recorder;
	int status = 0;

	if (!is_recording(pages) || call_is_cancelled(call))
		status = npumem_error_set(call->error, NPUMEM_CANCELLED, "the recording was cancelled");
	else if (recorder->lost)
		status = npumem_error_set(call->error, NPUMEM_RESOURCE_EXHAUSTED, "%s", recorder->reason);
	else
		status = steps->answer(call);
	if (status && is_recording(pages))
		recorder_drop(recorder);
	else if (is_recording(pages))
		recorder_has_all(recorder);
	heap_free(call->rpc->heap, pages);
	return status && steps->undo ? steps->undo(call, status) : status;
}

static void write_tensor(struct reply *reply, const struct call *call, const struct tensor *tensor,
			 const struct device_state *state)
{
	const struct record *record = record_of(tensor);
	struct tensor_message message;

	tensor_message(call, tensor, state, &message);
	message.message.session = record->name[0] ? 0 : record->session_id;
	reply_message(reply, TENSORS_FIELD, &message.message.base);
}

/* A whole frame, of which the message is what a record has. */
static int write_page(const struct call *call, const struct tensor *const *tensors,
		      const struct device_state *const *states, unsigned n, struct buffer *out)
{
	struct npumem_error none;
	struct reply reply;
	size_t mark;

	npumem_error_clear(&none);
	if (reply_begin(&reply, out) ||
	    reply_reserve(&reply, n * (size_t)TENSOR_MESSAGE_BYTES_MAX + 4 * REPLY_TAG_BYTES, &none))
		return -1;
	mark = reply_open(&reply, NPUMEM__V1__RESPONSE__RESULT_LIST, (size_t)n * TENSOR_MESSAGE_EXPECTED_BYTES);
	for (unsigned i = 0; i < n; i++)
		write_tensor(&reply, call, tensors[i], states[i]);
	reply_close(&reply, mark, (size_t)n * TENSOR_MESSAGE_EXPECTED_BYTES);
	reply_end(&reply, 0, &none);
	return 0;
}

static void add_page(struct call *call, const struct tensor *const *tensors,
		     const struct device_state *const *states, unsigned n)
{
	struct recorder *recorder = &call->rpc->service->recorder;
	uint64_t handles[PAGE_TENSORS];
	struct recorder_entry entry = {.before = RECORDER_TENSORS,
				       .answered_ns = rpc_clock(call->rpc),
				       .n_handles = n,
				       .handles = handles};
	struct buffer frame;
	size_t header = 0, bytes = 0;

	for (unsigned i = 0; i < n; i++)
		handles[i] = tensors[i]->handle;
	buffer_init(&frame, call->rpc->heap);
	if (write_page(call, tensors, states, n, &frame)) {
		recorder_lose(recorder, "the daemon is out of host memory");
	} else {
		frame_parse(frame.bytes, frame.used, FRAME_BYTES_MAX, &header, &bytes);
		entry.answer = frame.bytes + header;
		entry.answer_bytes = bytes;
		recorder_add(recorder, &entry);
	}
	buffer_deinit(&frame);
}

static bool is_of_moment(const struct pages *pages, const struct tensor *tensor)
{
	return record_of(tensor)->era != pages->call->rpc->service->recorder.era;
}

/* Its bytes are not counted: they may be many. */
static void on_leave(void *ctx, const struct tensor *tensor)
{
	const struct pages *pages = ctx;
	const struct device_state state = {0}, *states = &state;

	if (is_of_moment(pages, tensor) && device_handle_slot(tensor->handle) >= pages->done)
		add_page(pages->call, &tensor, &states, 1);
}

static int next_page(struct call *call);

/* Those that were freed while they were counted are in pages of their own. */
static int on_counted(struct call *call)
{
	struct pages *pages = call->task;
	const struct tensor_page *page = call->page;
	const struct tensor *tensors[PAGE_TENSORS];
	const struct device_state *states[PAGE_TENSORS];
	unsigned n = 0;

	if (!is_recording(pages) || call->rpc->service->recorder.lost || call_is_cancelled(call))
		return end_pages(pages);
	for (unsigned i = 0; i < page->n; i++) {
		tensors[n] = tensor_page_at(page, i);
		states[n] = &page->rows[i].state;
		n += tensors[n] != NULL;
	}
	if (n)
		add_page(call, tensors, states, n);
	pages->done = page->at;
	return page->at ? perform_pause(call, next_page) : end_pages(pages);
}

static int next_page(struct call *call)
{
	struct pages *pages = call->task;
	struct tensor_page *page = call->page;
	unsigned slots = PAGE_SLOTS;
	struct tensor *tensor;

	page->n = 0;
	page->cost = 0;
	while (page->n < PAGE_TENSORS && (tensor = device_after(page->device, &page->at, &slots)))
		if (is_of_moment(pages, tensor))
			tensor_page_add(page, tensor);
	return perform_later(call, page->cost, tensor_page_count, on_counted);
}

int record_tensors(struct call *call, const struct record_steps *steps)
{
	struct service *service = call->rpc->service;
	struct tensor_page *page = tensor_page_new(call, PAGE_TENSORS);
	struct pages *pages = page ? heap_alloc(call->rpc->heap, sizeof(*pages)) : NULL;
	int status;

	if (!pages)
		return heap_exhausted(call->error);
	*pages = (struct pages){.steps = steps, .call = call};
	call->task = pages;
	recorder_begin(&service->recorder, call->session);
	recorder_watch_leaves(&service->recorder, on_leave, pages);
	status = steps->begin ? steps->begin(call) : 0;
	if (status) {
		recorder_drop(&service->recorder);
		heap_free(call->rpc->heap, pages);
		return status;
	}
	/* The device is for all again. */
	gate_leave_queues(call);
	call->entry.is_exclusive = false;
	return perform_go_behind(call, next_page);
}
