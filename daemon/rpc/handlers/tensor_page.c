#include "daemon/rpc/handlers/tensor_page.h"

/* Only its owner learns its grants. */
static void add_grants(const struct call *call, const struct tensor *tensor, struct tensor_message *to)
{
	const struct record_grants *grants = record_grants(record_of(tensor));

	if (!grants || access_check(call->session, tensor, ACCESS_OWN, NULL))
		return;
	to->message.n_grants = grants->n;
	to->message.grants = to->pointers;
	for (unsigned i = 0; i < grants->n; i++) {
		npumem__v1__grant__init(&to->grants[i]);
		to->grants[i].uid = grants->to[i].uid;
		to->grants[i].access = grants->to[i].access == RECORD_WRITE ? NPUMEM__V1__ACCESS__ACCESS_WRITE
									    : NPUMEM__V1__ACCESS__ACCESS_READ;
		to->pointers[i] = &to->grants[i];
	}
}

const ProtobufCMessage *tensor_message(const struct call *call, const struct tensor *tensor,
				       const struct device_state *state, struct tensor_message *to)
{
	struct tensors_description *description = &to->description;
	Npumem__V1__Tensor *message = &to->message;
	const struct tensor *root = tensor_root(tensor);

	tensors_describe(call->session, tensor, state, description);
	convert_place_to(TENSOR_PLACE(tensor), &to->place);
	npumem__v1__tensor__init(message);
	message->handle = tensor->handle;
	message->name = (char *)description->name;
	message->label = description->label;
	message->uid = description->uid;
	message->place = &to->place.message;
	message->sealed = root->sealed;
	message->dma_only = root->dma_only;
	message->pinned = root->pinned;
	message->base_handle = description->base_handle;
	message->base_name = description->base_name;
	message->state = (char *)description->state;
	message->unwritten_bytes = description->bytes.unwritten_bytes;
	message->damaged_bytes = description->bytes.damaged_bytes + description->bytes.lost_bytes;
	message->reuse = (Npumem__V1__Reuse)root->reuse;
	message->lends = description->bytes.lends;
	message->borrows = description->bytes.borrows;
	add_grants(call, tensor, to);
	return &message->base;
}

struct tensor_page *tensor_page_new(struct call *call, unsigned room)
{
	call->page = heap_alloc(call->rpc->heap, tensor_page_bytes(room));
	if (call->page)
		*call->page = (struct tensor_page){.device = call->rpc->service->device};
	return call->page;
}

void tensor_page_add(struct tensor_page *page, const struct tensor *tensor)
{
	struct tensor_page_row *row = &page->rows[page->n++];

	row->handle = tensor->handle;
	row->scan = device_scan_of(tensor);
	device_state_lending(tensor, &row->state);
	page->cost += device_scan_cost(page->device, tensor);
}

void tensor_page_count(struct call *call)
{
	struct tensor_page *page = call->page;

	for (unsigned i = 0; i < page->n; i++)
		device_scan(page->device, &page->rows[i].scan, &page->rows[i].state);
}
