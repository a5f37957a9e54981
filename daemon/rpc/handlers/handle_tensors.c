/* Requests about tensors that exist. Room for the reply is made first: each change can be reported. */
#include "daemon/rpc/calls/charge.h"
#include "daemon/rpc/calls/life.h"
#include "daemon/rpc/calls/perform.h"
#include "daemon/rpc/calls/recording.h"
#include "daemon/rpc/order/gate.h"
#include "daemon/rpc/resume/repeat.h"
#include "daemon/rpc/handlers/handler.h"
#include "daemon/rpc/handlers/tensor_page.h"
#include "daemon/service/observed/recorder.h"
#include "proto/wire.h"
#include "proto/convert.h"

static void append_tensor(struct call *call, const struct tensor *tensor, const struct device_state *state)
{
	struct tensor_message message;

	reply_message(&call->reply, NPUMEM__V1__RESPONSE__RESULT_TENSOR,
		      tensor_message(call, tensor, state, &message));
}

static int on_counted(struct call *call)
{
	append_tensor(call, tensor_page_at(call->page, 0), &call->page->rows[0].state);
	return 0;
}

static int64_t scan_cost(const struct call *call, const struct tensor *tensor)
{
	return device_scan_cost(call->rpc->service->device, tensor);
}

/* The last thing a handler does, which cannot fail any more: what takes long it does elsewhere. */
static int answer_bound(struct call *call)
{
	const struct tensor *tensor = call->binding.tensors[0];
	struct tensor_page *page = call_is_long(scan_cost(call, tensor)) ? tensor_page_new(call, 1) : NULL;

	if (!page) {
		append_tensor(call, tensor, NULL);
		return 0;
	}
	tensor_page_add(page, tensor);
	return perform_later(call, page->cost, tensor_page_count, on_counted);
}

/* ---- of one tensor, whose state is the answer ---- */

static int resolve_one(struct call *call, const Npumem__V1__Ref *ref, const char *what, enum access_need need,
		       enum claim_use use)
{
	struct tensor *tensor;
	int status = binding_find(&call->binding, ref, what, need, &tensor, call->error);

	if (!status)
		status = handler_claim(call, tensor, use);
	if (!status)
		status = reply_reserve(&call->reply, TENSOR_MESSAGE_BYTES_MAX, call->error);
	if (!status)
		call->cost = scan_cost(call, tensor);
	return status;
}

static int check_view(struct call *call, const Npumem__V1__ViewRequest *request)
{
	unsigned n = (request->to != NULL) + (request->shape != NULL) +
		     (request->frac_bits_given_case != NPUMEM__V1__VIEW_REQUEST__FRAC_BITS_GIVEN__NOT_SET);

	if (n == 1 && (!request->from || request->to))
		return 0;
	return npumem_error_set(call->error, NPUMEM_INVALID,
				"a view is a slice with `to`, and maybe `from`, or has a `shape`, or `frac_bits`");
}

/* It does not wait for the operations on the tensor's bytes. */
int resolve_view(struct call *call)
{
	const Npumem__V1__ViewRequest *request = call->request->view;
	struct tensor *base;
	int status = check_view(call, request);

	if (!status)
		status = binding_find(&call->binding, request->tensor, "the base of a view", ACCESS_READ, &base,
				      call->error);
	if (!status)
		status = access_check_base(call->session, base, call->error);
	if (!status)
		status = handler_claim(call, base, CLAIM_EXISTS);
	if (!status)
		status = handler_claim_name(call, call->session->uid, request->name);
	if (!status && claim_made(&call->claim))
		status = heap_exhausted(call->error);
	return status ? status : reply_reserve(&call->reply, TENSOR_MESSAGE_BYTES_MAX, call->error);
}

static int answer_without_state(struct call *call)
{
	static const struct device_state unknown;

	append_tensor(call, call->binding.tensors[0], &unknown);
	return 0;
}

static int answer_state(struct call *call)
{
	/* From here on a thread may work for it. */
	call->withdraw = NULL;
	return answer_bound(call);
}

/* The state of a view's bytes, which the call has not accessed so far, is reported in their order. */
static int answer_after_change(struct call *call)
{
	const struct tensor *tensor = call->binding.tensors[0];
	struct npumem_error refusal = {.status = 0};

	if (!tensor->base)
		return answer_bound(call);
	if (access_check(call->session, tensor, ACCESS_READ, &refusal)) {
		append_tensor(call, tensor, NULL);
		return 0;
	}
	gate_pass(call);
	call->withdraw = answer_without_state;
	return perform_read_too(call, tensor, answer_state);
}

/* The change has taken effect, and later requests may use it. Some of them may be answered before this request. So
 * the request is recorded now, without the state: then a replay has all of them in this order. */
static int answer_change(struct call *call)
{
	int status = answer_after_change(call);

	if (status != CALL_LATER || !recorder_is_on(&call->rpc->service->recorder))
		return status;
	answer_without_state(call);
	recording_before_end(call);
	return status;
}

int handle_tensors_view(struct call *call)
{
	const Npumem__V1__ViewRequest *request = call->request->view;
	const int64_t *frac_bits =
		request->frac_bits_given_case == NPUMEM__V1__VIEW_REQUEST__FRAC_BITS_GIVEN_FRAC_BITS
			? &request->frac_bits
			: NULL;
	struct device_slice slice;
	struct npumem_dims shape;
	int status;

	convert_dims_from(request->from, &slice.from);
	convert_dims_from(request->to, &slice.to);
	convert_dims_from(request->shape, &shape);
	status = tensors_view(call->session, call->binding.tensors[0], request->name, request->label, &slice,
			      request->shape ? &shape : NULL, frac_bits, &call->binding.tensors[0], call->error);
	if (status)
		return status;
	scheduler_add_made(&call->rpc->service->scheduler, &call->claim.accesses[call->claim.n - 1],
			   call->binding.tensors[0]);
	return answer_change(call);
}

int resolve_open_of(struct call *call, const Npumem__V1__Ref *ref)
{
	return resolve_one(call, ref, "the tensor to open", ACCESS_READ, CLAIM_READ);
}

int resolve_open(struct call *call)
{
	return resolve_open_of(call, call->request->open->tensor);
}

int handle_tensors_open(struct call *call)
{
	return answer_bound(call);
}

/* A change, so that requests that arrived before it do not see it. */
int resolve_grant(struct call *call)
{
	const Npumem__V1__GrantRequest *request = call->request->grant;
	int status = wire_check_enum(&npumem__v1__access__descriptor, "access", (int)request->access, call->error);

	if (!status && !request->access)
		status = npumem_error_set(call->error, NPUMEM_INVALID, "a grant says none, read or write");
	return status ? status
		      : resolve_one(call, request->tensor, "the tensor to grant", ACCESS_OWN, CLAIM_CHANGE);
}

int handle_tensors_grant(struct call *call)
{
	const Npumem__V1__GrantRequest *request = call->request->grant;
	int status = tensors_grant(call->session, call->binding.tensors[0], request->uid,
				   (enum record_access)(request->access - NPUMEM__V1__ACCESS__ACCESS_NONE),
				   call->error);

	return status ? status : answer_change(call);
}

/* ---- renaming ---- */

/* A change, as threads read the names of what they use. */
int resolve_rename(struct call *call)
{
	const Npumem__V1__RenameRequest *request = call->request->rename;
	int status = resolve_one(call, request->tensor, "the tensor to rename", ACCESS_OWN, CLAIM_CHANGE);

	return status ? status : handler_claim_name(call, record_of(call->binding.tensors[0])->uid, request->name);
}

int handle_tensors_rename(struct call *call)
{
	int status;

	repeat_before_change(call->session, call->binding.tensors[0]);
	status = tensors_rename(call->session, call->binding.tensors[0], call->request->rename->name, call->error);
	return status ? status : answer_change(call);
}

/* ---- sealing ---- */

int resolve_seal(struct call *call)
{
	return resolve_one(call, call->request->seal->tensor, "the tensor to seal", ACCESS_OWN, CLAIM_CHANGE);
}

static void check_seal(struct call *call)
{
	struct error_context context = access_context_of_own(call->session, call->error);

	device_seal_check(call->rpc->service->device, call->binding.tensors[0], &context);
}

static int on_seal_checked(struct call *call)
{
	int status = call->error->status;

	/* Nothing could be written since the check. */
	repeat_before_change(call->session, call->binding.tensors[0]);
	if (!status)
		status = tensors_seal(call->session, call->binding.tensors[0], call->error);
	return status ? status : answer_bound(call);
}

int handle_tensors_seal(struct call *call)
{
	struct tensor *tensor = call->binding.tensors[0];
	int status = life_keep_error(call);

	if (status)
		return status;
	/* Here, where grants may be read: the base's name may not be the session's to know. */
	if (tensor->base) {
		struct error_context context = access_context(call->session, call->error);

		return device_seal_check(call->rpc->service->device, tensor, &context);
	}
	/* Whether it is refused depends on what is written. */
	repeat_after_read(call->session, tensor);
	return perform_later(call, scan_cost(call, tensor), check_seal, on_seal_checked);
}

/* ---- freeing ---- */

/* A free is decided when it arrives: from then on no request finds the tensors. It takes effect for good when
 * nothing uses them any more: a client that gets NOT_FOUND, or takes their names, must not find them again after a
 * crash. Then their bytes are zeroed, which may take long; then they are freed in steps, views first. */
static int find_all(struct call *call, const Npumem__V1__FreeRequest *request)
{
	for (size_t i = 0; i < request->n_tensors; i++) {
		struct tensor *tensor;
		int status = binding_find(&call->binding, request->tensors[i], "a tensor to free", ACCESS_OWN,
					  &tensor, call->error);

		if (status > 0 && request->n_tensors > 1)
			npumem_error_number(call->error, "tensor_index", (int64_t)i);
		if (!status)
			status = handler_claim(call, tensor, CLAIM_FREE);
		if (status)
			return status;
	}
	return 0;
}

int resolve_free(struct call *call)
{
	const Npumem__V1__FreeRequest *request = call->request->free;
	int status = 0;

	if (!request->n_tensors)
		return npumem_error_set(call->error, NPUMEM_INVALID, "0 tensors to free");
	if (request->n_tensors > TENSORS_FREE_MAX)
		status = tensors_free_check(call->session, NULL, request->n_tensors, call->error);
	if (!status)
		status = find_all(call, request);
	if (status)
		return status;
	status = reply_reserve(&call->reply, 4 * REPLY_TAG_BYTES, call->error);
	if (!status)
		status = tensors_free_check(call->session, call->binding.tensors, call->binding.n, call->error);
	if (status)
		return status;
	call->n_changed = call->binding.n;
	tensors_mark_going(call->rpc->service, call->binding.tensors, call->binding.n);
	call->is_committed = true;
	return 0;
}

static void forget(struct call *call)
{
	for (size_t i = 0; i < call->binding.n; i++)
		device_forget(call->rpc->service->device, call->binding.tensors[i]);
}

static int free_some(struct call *call)
{
	Npumem__V1__Freed message = NPUMEM__V1__FREED__INIT;

	if (!tensors_free_step(call->session, &call->freeing))
		return perform_pause(call, free_some);
	message.tensors = (int64_t)call->freeing.n_freed;
	reply_message(&call->reply, NPUMEM__V1__RESPONSE__RESULT_FREED, &message.base);
	return 0;
}

static int on_forgotten(struct call *call)
{
	tensors_free_begin(&call->freeing, call->binding.tensors, call->binding.n);
	return free_some(call);
}

int handle_free(struct call *call)
{
	int64_t cost = 0;

	for (size_t i = 0; i < call->binding.n; i++)
		cost += device_forget_cost(call->rpc->service->device, call->binding.tensors[i]);
	for (size_t i = 0; i < call->binding.n; i++)
		repeat_before_change(call->session, call->binding.tensors[i]);
	tensors_hide(call->session, call->binding.tensors, call->binding.n);
	return perform_later(call, cost, forget, on_forgotten);
}

/* ---- a page of those that a session may know of ---- */

/* The work of a page has a bound that depends neither on the device's tensors nor on their owners. The bytes of
 * large tensors are counted on another thread, so that a client that lists does not keep the others waiting. */
enum {
	PAGE_TENSORS_MAX = 256, /* as npumem.proto says */
	/* Slots that are empty, or whose tensor this session may not see: 10 to 50 ns each. */
	PAGE_SLOTS_MAX = 4096,
	PAGE_COST_MAX = 20000000, /* op_cost's unit: about 10 ms of a thread, where one tensor is not more */
};

/* The next page begins behind the last tensor of a full page, if there is a further tensor, else behind the last
 * slot that was visited. */
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

static int on_page_counted(struct call *call)
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
	return status ? status : perform_later(call, page->cost, tensor_page_count, on_page_counted);
}
