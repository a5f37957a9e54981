/* Tensors as a session may see them. A tensor_message points into the tensor and into itself, so that neither may
 * change or move before it is packed; it appends nothing. A tensor_page is a number of tensors whose bytes are
 * counted first, on any thread: a tensor may be gone, or not for this session any more, when that is done. */
#ifndef RPC_TENSOR_PAGE_H
#define RPC_TENSOR_PAGE_H

#include "daemon/rpc/calls/call.h"
#include "proto/convert.h"

enum {
	TENSOR_MESSAGE_BYTES_MAX = 1024, /* a bound for one with its tag and length */
	TENSOR_MESSAGE_EXPECTED_BYTES = 140,
	TENSORS_FIELD = 1, /* Allocated.tensors, List.tensors */
};

struct tensor_message {
	Npumem__V1__Tensor message;
	struct convert_place place;
	struct tensors_description description;
	Npumem__V1__Grant grants[RECORD_GRANTS_MAX], *pointers[RECORD_GRANTS_MAX];
};

/* `state`: what device_state says, where that is known; NULL: it is counted here, which may take long. Returns
 * to->message.base. */
const ProtobufCMessage *tensor_message(const struct call *call, const struct tensor *tensor,
				       const struct device_state *state, struct tensor_message *to);

struct tensor_page {
	const struct device *device;
	uint64_t at; /* the next page goes on behind this slot; 0: there is none. The owner's */
	unsigned n;
	int64_t cost; /* of counting, in op_cost's unit */
	struct tensor_page_row {
		uint64_t handle;
		struct device_scan scan;
		struct device_state state;
	} rows[];
};

static inline size_t tensor_page_bytes(unsigned room)
{
	return sizeof(struct tensor_page) + room * sizeof(struct tensor_page_row);
}
/* For the first `room` tensors that are added. It is call->page, until the call's end; NULL without memory. */
struct tensor_page *tensor_page_new(struct call *call, unsigned room);
/* There is room for it. */
void tensor_page_add(struct tensor_page *page, const struct tensor *tensor);
/* Counts the bytes of all tensors of the call's page: for perform_later. */
void tensor_page_count(struct call *call);
/* NULL: the tensor of that row is gone. */
static inline struct tensor *tensor_page_at(const struct tensor_page *page, unsigned i)
{
	return device_find(page->device, page->rows[i].handle);
}

#endif
