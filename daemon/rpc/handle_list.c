/* A page of the tensors that a session may know of.
 * Invariant: the work of a page has a bound, whatever the device holds and whoever owns it: one client that lists
 * 100,000 tensors must not keep the others waiting for all of them. */
#include "daemon/rpc/call.h"
#include "daemon/rpc/tensor_message.h"

enum {
	PAGE_TENSORS_MAX = 256, /* as npumem.proto says */
	/* Of what is not there, or not for this session, a look costs some 10 to 50 ns. */
	PAGE_LOOKS_MAX = 4096,
	TENSORS_FIELD = 1, /* List.tensors */
};

int handle_list(struct call *call, const Npumem__V1__ListRequest *request)
{
	unsigned most = request->limit && request->limit < PAGE_TENSORS_MAX ? request->limit : PAGE_TENSORS_MAX;
	unsigned looks = PAGE_LOOKS_MAX, n = 0;
	size_t expected = (size_t)most * TENSOR_MESSAGE_EXPECTED_BYTES, mark;
	Npumem__V1__List page = NPUMEM__V1__LIST__INIT;
	uint64_t at = request->after;
	struct tensor *tensor;
	int status = reply_reserve(&call->reply, 2 * REPLY_TAG_BYTES, call->error);

	if (status)
		return status;
	mark = reply_open(&call->reply, NPUMEM__V1__RESPONSE__RESULT_LIST, expected);
	while ((tensor = tensors_after(call->session, &at, &looks)) && n < most) {
		struct tensor_message message;

		status = reply_reserve(&call->reply, TENSOR_MESSAGE_BYTES_MAX + 2 * REPLY_TAG_BYTES, call->error);
		if (status)
			return status;
		reply_message(&call->reply, TENSORS_FIELD, tensor_message(call, tensor, false, &message));
		page.next = at;
		n++;
	}
	/* A full page goes on behind its last tensor, and only where there is another; any other behind the last
	 * slot that was looked at. */
	if (!tensor)
		page.next = at;
	reply_fields(&call->reply, &page.base);
	reply_close(&call->reply, mark, expected);
	return 0;
}
