/* The record of requests and answers: starting it, taking it, ending it. A record that begins on a device with
 * tensors lists those of its moment: a page of them is an entry, as the answer of a list, with their handles. At
 * the moment nothing runs, and nothing takes longer than a turn; the pages are written in later turns, while other
 * requests run. Invariant: each tensor of the moment is in exactly one page. One that is freed before its page is
 * written has a page of its own; one that was created later has none, and is known by its era. */
#include "daemon/rpc/calls/perform.h"
#include "daemon/rpc/handlers/handler.h"
#include "daemon/rpc/handlers/tensor_page.h"
#include "daemon/rpc/order/gate.h"
#include "daemon/service/checksum.h"
#include "daemon/service/observed/recorder.h"
#include "proto/convert.h"
#include "proto/frame.h"

enum {
	PAGE_TENSORS = 64,
	PAGE_LOOKS = 4096,
	TENSORS_FIELD = 1,    /* List.tensors */
	RECORDED_ENTRIES = 1, /* Recorded.entries */
	TAKE_BYTES = 1 << 20, /* of one answer: little enough to be copied at once */
	ENTRY_BYTES = 256,    /* a bound of all but bytes and handles, transfer included */
	REASON_BYTES = 2 * RECORDER_REASON_BYTES,
};

static size_t part_bytes(const struct recorder_part *part)
{
	size_t recovery = part->entry->before == RECORDER_RECOVERY ? sizeof(struct recovered) : 0;

	return ENTRY_BYTES + part->n + part->entry->n_handles * 8 + part->entry->answer_bytes + recovery;
}

/* `lines` are RECOVERED_LINES_MAX. */
static void set_recovery(struct recovered *recovered, Npumem__V1__Recovery *message, char **lines)
{
	const struct recover_report *report = &recovered->report;

	npumem__v1__recovery__init(message);
	message->at_ns = recovered->at_ns;
	message->was_closed = recovered->was_clean;
	message->tensors = report->n_tensors;
	message->views = report->n_views;
	message->sessions = report->n_sessions;
	message->ended = report->n_ended;
	message->lost = (uint64_t)report->n_damaged + report->n_refused;
	message->cut = report->n_cut;
	message->n_lines = recovered->n_lines;
	message->lines = lines;
	for (unsigned i = 0; i < recovered->n_lines; i++)
		lines[i] = recovered->lines[i];
}

static void set_transfer(const struct recorder_part *part, Npumem__V1__RecordTransfer *message,
			 Npumem__V1__Dims *extent, Npumem__V1__Dims *stride)
{
	const struct recorder_transfer *transfer = part->transfer;

	npumem__v1__record_transfer__init(message);
	message->operation = transfer->operation;
	message->segment = transfer->segment;
	message->offset = transfer->offset;
	message->element_bytes = transfer->element_bytes;
	convert_dims_to(&transfer->extent, extent);
	convert_dims_to(&transfer->stride, stride);
	message->extent = extent;
	message->stride = stride;
	message->is_read = transfer->is_read;
	message->crc32 = transfer->crc32;
	message->first = part->first;
	message->data = (ProtobufCBinaryData){part->n, (uint8_t *)(uintptr_t)part->bytes};
}

static void set_last(const struct recorder_entry *entry, Npumem__V1__RecordEntry *message,
		     Npumem__V1__Shared *shared)
{
	npumem__v1__shared__init(shared);
	message->session = entry->session;
	message->uid = entry->uid;
	message->pid = entry->pid;
	message->status = (Npumem__V1__Status)entry->status;
	message->digest = entry->digest;
	message->n_handles = entry->n_handles;
	message->handles = entry->handles;
	message->came_ns = entry->came_ns;
	message->answered_ns = entry->answered_ns;
	message->answer = (ProtobufCBinaryData){entry->answer_bytes, entry->answer};
	shared->segment = entry->segment;
	shared->bytes = entry->segment_bytes;
	shared->writable = entry->segment_writable;
	message->shared = entry->segment ? shared : NULL;
	message->before = entry->before;
}

static void add_part(struct call *call, const struct recorder_part *part)
{
	char *lines[RECOVERED_LINES_MAX];
	Npumem__V1__Recovery recovery;
	Npumem__V1__RecordEntry message = NPUMEM__V1__RECORD_ENTRY__INIT;
	Npumem__V1__RecordTransfer transfer;
	Npumem__V1__Dims extent, stride;
	Npumem__V1__Shared shared;

	message.number = part->entry->number;
	message.part = !part->is_last;
	if (part->is_last)
		set_last(part->entry, &message, &shared);
	if (part->entry->before == RECORDER_RECOVERY) {
		set_recovery(&call->rpc->service->recovered, &recovery, lines);
		message.recovery = &recovery;
	}
	if (part->transfer) {
		set_transfer(part, &transfer, &extent, &stride);
		message.transfer = &transfer;
	} else {
		message.request = (ProtobufCBinaryData){part->n, (uint8_t *)(uintptr_t)part->bytes};
	}
	reply_message(&call->reply, RECORDED_ENTRIES, &message.base);
}

static int take(struct call *call, Npumem__V1__Recorded *rest)
{
	struct recorder *recorder = &call->rpc->service->recorder;
	size_t room = recorder->first ? TAKE_BYTES : 0, used = 0, mark;
	struct recorder_part part;
	int status = reply_reserve(&call->reply, room + REASON_BYTES, call->error);

	if (status)
		return status;
	mark = reply_open(&call->reply, NPUMEM__V1__RESPONSE__RESULT_RECORDED, room);
	while (recorder_peek(recorder, &part) && used + part_bytes(&part) <= room) {
		used += part_bytes(&part);
		add_part(call, &part);
		recorder_next(recorder);
	}
	rest->ended = recorder->owner != call->session;
	rest->lost = recorder->lost;
	rest->reason = recorder->reason;
	reply_fields(&call->reply, &rest->base);
	reply_close(&call->reply, mark, room);
	return 0;
}

static int answer(struct call *call, Npumem__V1__Recorded *message)
{
	const struct recorder *recorder = &call->rpc->service->recorder;

	message->lost = recorder->lost;
	message->reason = (char *)(uintptr_t)recorder->reason;
	return reply_result(&call->reply, NPUMEM__V1__RESPONSE__RESULT_RECORDED, &message->base, call->error);
}

/* ---- the tensors that are there when it begins ---- */

struct pages {
	const struct handler_record *steps;
	struct call *call;
	uint64_t done; /* slots below are in pages that are written */
	struct tensor_page *page;
};

/* False: the record was ended meanwhile. */
static bool is_recording(const struct pages *pages)
{
	return pages->call->rpc->service->recorder.leaves_ctx == pages;
}

static void free_pages(struct pages *pages)
{
	const struct heap *heap = pages->call->rpc->heap;

	heap_free(heap, pages->page);
	heap_free(heap, pages);
}

static int end_pages(struct pages *pages)
{
	const struct handler_record *steps = pages->steps;
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
	free_pages(pages);
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

static int next_page(struct call *call, void *arg);

/* Those that were freed while they were counted are in pages of their own. */
static int on_counted(struct call *call, void *arg)
{
	struct pages *pages = arg;
	const struct tensor_page *page = pages->page;
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
	return page->at ? perform_pause(call, next_page, pages) : end_pages(pages);
}

static void count_page(void *arg)
{
	tensor_page_count(((struct pages *)arg)->page);
}

static int next_page(struct call *call, void *arg)
{
	struct pages *pages = arg;
	struct tensor_page *page = pages->page;
	unsigned looks = PAGE_LOOKS;
	struct tensor *tensor;

	page->n = 0;
	page->cost = 0;
	while (page->n < PAGE_TENSORS && (tensor = device_after(page->device, &page->at, &looks)))
		if (is_of_moment(pages, tensor))
			tensor_page_add(page, tensor);
	return perform_later(call, page->cost, count_page, on_counted, pages);
}

static struct pages *new_pages(struct call *call, const struct handler_record *steps)
{
	struct pages *pages = heap_alloc(call->rpc->heap, sizeof(*pages));

	if (!pages)
		return NULL;
	*pages = (struct pages){.steps = steps, .call = call, .page = tensor_page_new(call, PAGE_TENSORS)};
	if (pages->page)
		return pages;
	heap_free(call->rpc->heap, pages);
	return NULL;
}

int handle_record_tensors(struct call *call, const struct handler_record *steps)
{
	struct service *service = call->rpc->service;
	struct pages *pages = new_pages(call, steps);
	int status;

	if (!pages)
		return heap_exhausted(call->error);
	recorder_begin(&service->recorder, call->session);
	recorder_watch_leaves(&service->recorder, on_leave, pages);
	status = steps->begin ? steps->begin(call) : 0;
	if (status) {
		recorder_drop(&service->recorder);
		free_pages(pages);
		return status;
	}
	/* The device is for all again. */
	gate_leave_queues(call);
	call->entry.is_exclusive = false;
	return perform_go_behind(call, next_page, pages);
}

/* ---- the device in numbers ---- */

static int answer_checksum(struct call *call, void *arg)
{
	struct checksum *checksum = arg;
	Npumem__V1__Recorded message = NPUMEM__V1__RECORDED__INIT;
	int status;

	message.hash = checksum->hash;
	message.n_local = checksum->n_local;
	message.local = checksum->local;
	status = answer(call, &message);
	checksum_free(checksum);
	return status;
}

static int sum_up(struct call *call, bool is_stop)
{
	int64_t cost = checksum_cost(call->rpc->service);
	struct checksum *checksum;
	int status;

	status = checksum_new(call->session, &checksum, call->error);
	if (status)
		return status;
	/* Before it is made: what it does not count any more must not be in the record. */
	if (is_stop)
		recorder_stop(&call->rpc->service->recorder);
	return perform_later(call, cost, checksum_run, answer_checksum, checksum);
}

static int refuse(struct call *call)
{
	return npumem_error_set(call->error, NPUMEM_FAILED_PRECONDITION, "this session does not record");
}

/* ---- the requests ---- */

static int watch(struct call *call)
{
	Npumem__V1__Recorded message = NPUMEM__V1__RECORDED__INIT;

	return answer(call, &message);
}

static const struct handler_record watching = {.answer = watch};

/* A record that begins with all tensors, or between requests, has the device for itself; one that will be refused
 * does not wait for it. */
int resolve_record(struct call *call, const Npumem__V1__RecordRequest *request)
{
	call->entry.is_exclusive =
		session_is_admin(call->session) && request->action != NPUMEM__V1__RECORD_ACTION__RECORD_TAKE;
	return 0;
}

int handle_record(struct call *call, const Npumem__V1__RecordRequest *request)
{
	struct recorder *recorder = &call->rpc->service->recorder;
	Npumem__V1__Recorded message = NPUMEM__V1__RECORDED__INIT;
	int status;

	switch (request->action) {
	case NPUMEM__V1__RECORD_ACTION__RECORD_START:
		status = recorder_start(recorder, call->session, call->error);
		return status ? status : answer(call, &message);
	case NPUMEM__V1__RECORD_ACTION__RECORD_WATCH:
		status = recorder_check(recorder, call->session, call->error);
		return status ? status : handle_record_tensors(call, &watching);
	case NPUMEM__V1__RECORD_ACTION__RECORD_TAKE:
		/* When the record has ended, any administrator may take the entries that are left. */
		if (!session_is_admin(call->session) || (recorder->owner && recorder->owner != call->session))
			return refuse(call);
		return take(call, &message);
	case NPUMEM__V1__RECORD_ACTION__RECORD_STOP:
		return recorder->owner == call->session ? sum_up(call, true) : refuse(call);
	case NPUMEM__V1__RECORD_ACTION__RECORD_HASH:
		return sum_up(call, false);
	default:
		return npumem_error_set(call->error, NPUMEM_INVALID, "record action %d is none",
					(int)request->action);
	}
}
