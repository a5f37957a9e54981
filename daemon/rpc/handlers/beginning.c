/* A page of tensors is an entry of the record, which has them as a list's answer and by their handles. Those that
 * go when their turn comes are told of, too: their end is in the record. Invariant: while it goes on no tensor
 * comes into being and none goes, as the call has the device for itself and rpc->is_walked. */
#include "daemon/rpc/handlers/beginning.h"

#include "daemon/rpc/handlers/tensor_message.h"
#include "proto/frame.h"

enum {
	PAGE_TENSORS = 64,
	PAGE_LOOKS = 4096,
	TENSORS_FIELD = 1, /* List.tensors */
};

struct beginning {
	int (*then)(struct call *call);
	const struct device *device;
	uint64_t at;  /* behind the last one that was told of */
	bool is_last; /* nothing comes after this page */
	unsigned n;
	uint64_t handles[PAGE_TENSORS];
	struct tensor *tensors[PAGE_TENSORS];
	struct device_scan scans[PAGE_TENSORS];
	struct device_state states[PAGE_TENSORS];
};

static int end(struct call *call, struct beginning *beginning, int status)
{
	struct recorder *recorder = &call->rpc->service->recorder;

	call->rpc->is_walked = false;
	if (!status && recorder->lost)
		status = npumem_error_set(call->error, NPUMEM_RESOURCE_EXHAUSTED, "%s", recorder->reason);
	if (!status && call_is_cancelled(call))
		status = npumem_error_set(call->error, NPUMEM_CANCELLED, "the recording was cancelled");
	if (!status)
		status = beginning->then(call);
	if (status)
		recorder_drop(recorder);
	heap_free(call->rpc->heap, beginning);
	return status;
}

/* ---- a page ---- */

/* A whole frame, of which the message is what a record has. */
static int write_page(const struct call *call, const struct beginning *beginning, struct buffer *out)
{
	struct npumem_error none;
	struct reply reply;
	size_t mark;

	npumem_error_clear(&none);
	if (reply_begin(&reply, out) ||
	    reply_reserve(&reply, beginning->n * (size_t)TENSOR_MESSAGE_BYTES_MAX + 4 * REPLY_TAG_BYTES, &none))
		return -1;
	mark = reply_open(&reply, NPUMEM__V1__RESPONSE__RESULT_LIST,
			  (size_t)beginning->n * TENSOR_MESSAGE_EXPECTED_BYTES);
	for (unsigned i = 0; i < beginning->n; i++) {
		const struct record *record = record_of(beginning->tensors[i]);
		struct tensor_message message;

		tensor_message(call, beginning->tensors[i], &beginning->states[i], &message);
		message.message.session = record->unnamed ? record->session_id : 0;
		reply_message(&reply, TENSORS_FIELD, &message.message.base);
	}
	reply_close(&reply, mark, (size_t)beginning->n * TENSOR_MESSAGE_EXPECTED_BYTES);
	reply_end(&reply, 0, &none);
	return 0;
}

static void add_page(struct call *call, struct beginning *beginning)
{
	struct recorder *recorder = &call->rpc->service->recorder;
	struct recorder_entry entry = {.before = RECORDER_TENSORS,
				       .answered_ns = rpc_clock(call->rpc),
				       .n_handles = beginning->n,
				       .handles = beginning->handles};
	struct buffer frame;
	size_t header = 0, n = 0;

	buffer_init(&frame, call->rpc->heap);
	if (write_page(call, beginning, &frame)) {
		recorder_lose(recorder, "the daemon is out of host memory");
	} else {
		frame_parse(frame.bytes, frame.used, FRAME_BYTES_MAX, &header, &n);
		entry.answer = frame.bytes + header;
		entry.answer_bytes = n;
		recorder_add(recorder, &entry, NULL);
	}
	buffer_deinit(&frame);
}

static void count(void *arg)
{
	struct beginning *beginning = arg;

	for (unsigned i = 0; i < beginning->n; i++)
		device_scan(beginning->device, &beginning->scans[i], &beginning->states[i]);
}

/* ---- page by page ---- */

static int next(struct call *call, void *arg);

static int on_counted(struct call *call, void *arg)
{
	struct beginning *beginning = arg;

	if (beginning->n)
		add_page(call, beginning);
	if (beginning->is_last || call->rpc->service->recorder.lost || call_is_cancelled(call))
		return end(call, beginning, 0);
	return call_pause(call, next, beginning);
}

static int next(struct call *call, void *arg)
{
	struct beginning *beginning = arg;
	struct device *device = call->rpc->service->device;
	unsigned looks = PAGE_LOOKS;
	struct tensor *tensor = NULL;
	int64_t cost = 0;

	for (beginning->n = 0; beginning->n < PAGE_TENSORS; beginning->n++) {
		unsigned i = beginning->n;

		tensor = device_after(device, &beginning->at, &looks);
		if (!tensor)
			break;
		beginning->tensors[i] = tensor;
		beginning->handles[i] = tensor->handle;
		beginning->scans[i] = device_scan_of(tensor);
		device_state_lending(tensor, &beginning->states[i]);
		cost += device_scan_cost(device, tensor);
	}
	beginning->is_last = !tensor && !beginning->at;
	return call_later(call, cost, count, on_counted, beginning);
}

int beginning_tell(struct call *call, int (*then)(struct call *call))
{
	struct service *service = call->rpc->service;
	struct beginning *beginning = heap_zalloc(call->rpc->heap, 1, sizeof(*beginning));

	if (!beginning)
		return heap_exhausted(call->error);
	beginning->then = then;
	beginning->device = service->device;
	call->rpc->is_walked = true;
	recorder_begin(&service->recorder, call->session);
	return next(call, beginning);
}
