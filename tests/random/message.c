/* Requests: structs on the stack, packed at once. */
#include "tests/random/message.h"

#include <stdlib.h>
#include <string.h>

enum { WRITE_BYTES = TRACE_N * TRACE_C * TRACE_W, OTHER_UID = 1777 };

/* What one operation, or one tensor of a request, is packed from. */
struct item {
	Npumem__V1__Operation operation;
	Npumem__V1__WriteRequest write;
	Npumem__V1__ReadRequest read;
	Npumem__V1__FillRequest fill;
	Npumem__V1__CopyRequest copy;
	Npumem__V1__RunRequest run;
	Npumem__V1__Operand operands[TRACE_REFS], *operand_list[TRACE_REFS];
	Npumem__V1__Ref refs[TRACE_REFS];
	char names[TRACE_REFS][TRACE_NAME_BYTES];
	uint8_t data[WRITE_BYTES];
};

struct items {
	struct item of[TRACE_OPS];
	Npumem__V1__Operation *list[TRACE_OPS];
	Npumem__V1__Ref *refs[TRACE_OPS];
};

uint8_t *message_pack_any(Npumem__V1__Request *request, size_t *bytes)
{
	uint8_t *message;

	*bytes = npumem__v1__request__get_packed_size(request);
	message = malloc(*bytes);
	if (!message)
		abort();
	npumem__v1__request__pack(request, message);
	return message;
}

/* ---- operations ---- */

static void set_refs(const struct trace *trace, unsigned peer, const struct trace_op *op, const uint64_t *handles,
		     struct item *item)
{
	for (unsigned i = 0; i < op->n_refs; i++) {
		npumem__v1__ref__init(&item->refs[i]);
		item->refs[i].handle = handles[i];
		trace_name(trace, peer, op->refs[i].slot, item->names[i]);
		item->refs[i].name = handles[i] ? (char *)"" : item->names[i];
	}
}

static void set_data(const struct trace *trace, unsigned peer, const struct trace_op *op, struct item *item)
{
	int from = trace_first_value(trace, peer);

	/* Values of the uid's own, that begin with the operation's. */
	for (int64_t i = 0; i < op->count && i < WRITE_BYTES; i++)
		item->data[i] = (uint8_t)(from + (op->value - from + i * 7) % TRACE_VALUES);
	item->write.first = op->first;
	item->write.data = (ProtobufCBinaryData){(size_t)op->count, item->data};
}

static void set_run(const struct trace_op *op, struct item *item)
{
	static const char *const two[] = {"out", "in"}, *const three[] = {"out", "in1", "in2"};

	item->run.kernel = (Npumem__V1__Kernel)op->kernel;
	item->run.n_operands = op->n_refs;
	item->run.operands = item->operand_list;
	for (unsigned i = 0; i < op->n_refs; i++) {
		npumem__v1__operand__init(&item->operands[i]);
		item->operands[i].role = (char *)(op->n_refs == 3 ? three[i] : two[i]);
		item->operands[i].tensor = &item->refs[i];
		item->operand_list[i] = &item->operands[i];
	}
}

static void set_kind(const struct trace_op *op, struct item *item)
{
	Npumem__V1__Operation *operation = &item->operation;

	switch (op->verb) {
	case TRACE_WRITE:
		operation->kind_case = NPUMEM__V1__OPERATION__KIND_WRITE;
		operation->write = &item->write;
		break;
	case TRACE_READ:
		operation->kind_case = NPUMEM__V1__OPERATION__KIND_READ;
		operation->read = &item->read;
		break;
	case TRACE_FILL:
		operation->kind_case = NPUMEM__V1__OPERATION__KIND_FILL;
		operation->fill = &item->fill;
		break;
	case TRACE_COPY:
		operation->kind_case = NPUMEM__V1__OPERATION__KIND_COPY;
		operation->copy = &item->copy;
		break;
	default:
		operation->kind_case = NPUMEM__V1__OPERATION__KIND_RUN;
		operation->run = &item->run;
		break;
	}
}

static void set_item(const struct trace *trace, unsigned peer, const struct trace_op *op, const uint64_t *handles,
		     struct item *item)
{
	npumem__v1__operation__init(&item->operation);
	npumem__v1__write_request__init(&item->write);
	npumem__v1__read_request__init(&item->read);
	npumem__v1__fill_request__init(&item->fill);
	npumem__v1__copy_request__init(&item->copy);
	npumem__v1__run_request__init(&item->run);
	set_refs(trace, peer, op, handles, item);
	item->operation.group = op->group;
	item->write.tensor = item->read.tensor = item->fill.tensor = item->copy.destination = &item->refs[0];
	item->copy.source = &item->refs[1];
	item->fill.value_case = NPUMEM__V1__FILL_REQUEST__VALUE_INTEGER;
	item->fill.integer = op->value;
	item->read.first = op->first;
	item->read.count = op->count;
	if (op->verb == TRACE_WRITE)
		set_data(trace, peer, op, item);
	if (op->verb == TRACE_RUN)
		set_run(op, item);
	set_kind(op, item);
}

static uint8_t *pack_operations(const struct trace *trace, unsigned peer, const struct trace_request *from,
				const struct message_handles *handles, Npumem__V1__Request *request, size_t *bytes)
{
	Npumem__V1__SubmitRequest submit = NPUMEM__V1__SUBMIT_REQUEST__INIT;
	static struct items items;

	for (unsigned i = 0; i < from->n_ops; i++) {
		set_item(trace, peer, &from->ops[i], handles->of[i], &items.of[i]);
		items.list[i] = &items.of[i].operation;
	}
	submit.n_operations = from->n_ops;
	submit.operations = items.list;
	if (from->verb == TRACE_SUBMIT) {
		request->call_case = NPUMEM__V1__REQUEST__CALL_SUBMIT;
		request->submit = &submit;
	} else {
		/* The five calls are in the order of the five kinds, and either union is one pointer. */
		request->call_case = NPUMEM__V1__REQUEST__CALL_WRITE + items.of[0].operation.kind_case -
				     NPUMEM__V1__OPERATION__KIND_WRITE;
		request->write = items.of[0].operation.write;
	}
	return message_pack_any(request, bytes);
}

/* ---- allocations ---- */

struct allocations {
	Npumem__V1__Allocation of[TRACE_TENSORS], *list[TRACE_TENSORS];
	Npumem__V1__Spec specs[TRACE_TENSORS];
	Npumem__V1__Dims shapes[TRACE_TENSORS];
	char names[TRACE_TENSORS][TRACE_NAME_BYTES];
};

static void set_allocation(const struct trace *trace, unsigned peer, const struct trace_tensor *from,
			   struct allocations *to, unsigned i)
{
	npumem__v1__allocation__init(&to->of[i]);
	npumem__v1__spec__init(&to->specs[i]);
	npumem__v1__dims__init(&to->shapes[i]);
	to->list[i] = &to->of[i];
	to->of[i].spec = &to->specs[i];
	to->of[i].pinned = from->pinned;
	to->of[i].dma_only = from->dma_only;
	trace_name(trace, peer, from->slot, to->names[i]);
	to->of[i].name = from->anonymous ? (char *)"" : to->names[i];
	to->specs[i].shape = &to->shapes[i];
	to->specs[i].dtype = NPUMEM__V1__DTYPE__FX8;
	to->specs[i].frac_bits_given_case = NPUMEM__V1__SPEC__FRAC_BITS_GIVEN_FRAC_BITS;
	to->specs[i].frac_bits = 4;
	to->specs[i].mode = from->packed ? NPUMEM__V1__MODE__MODE_4N : NPUMEM__V1__MODE__PLAIN;
	to->shapes[i].n = TRACE_N;
	to->shapes[i].c = from->narrow ? TRACE_C_NARROW : TRACE_C;
	to->shapes[i].h = 1;
	to->shapes[i].w = TRACE_W;
}

static uint8_t *pack_alloc(const struct trace *trace, unsigned peer, const struct trace_request *from,
			   Npumem__V1__Request *request, size_t *bytes)
{
	Npumem__V1__AllocRequest alloc = NPUMEM__V1__ALLOC_REQUEST__INIT;
	struct allocations to;

	for (unsigned i = 0; i < from->n_tensors; i++)
		set_allocation(trace, peer, &from->tensors[i], &to, i);
	alloc.n_tensors = from->n_tensors;
	alloc.tensors = to.list;
	alloc.wait_ms = from->wait_ms;
	request->call_case = NPUMEM__V1__REQUEST__CALL_ALLOC;
	request->alloc = &alloc;
	return message_pack_any(request, bytes);
}

/* ---- what is about a tensor ---- */

static uint8_t *pack_view(const struct trace_op *op, struct item *item, Npumem__V1__Request *request,
			  size_t *bytes)
{
	Npumem__V1__ViewRequest view = NPUMEM__V1__VIEW_REQUEST__INIT;
	Npumem__V1__Dims from = NPUMEM__V1__DIMS__INIT, to = NPUMEM__V1__DIMS__INIT;

	view.name = item->names[0];
	view.tensor = &item->refs[1];
	from.w = op->first;
	to.n = TRACE_N;
	to.c = TRACE_C_NARROW;
	to.h = 1;
	to.w = op->first + op->count;
	view.from = &from;
	view.to = &to;
	request->call_case = NPUMEM__V1__REQUEST__CALL_VIEW;
	request->view = &view;
	return message_pack_any(request, bytes);
}

static uint8_t *pack_free(const struct trace_request *from, struct items *items, Npumem__V1__Request *request,
			  size_t *bytes)
{
	Npumem__V1__FreeRequest free_request = NPUMEM__V1__FREE_REQUEST__INIT;

	for (unsigned i = 0; i < from->n_ops; i++)
		items->refs[i] = &items->of[i].refs[0];
	free_request.n_tensors = from->n_ops;
	free_request.tensors = items->refs;
	request->call_case = NPUMEM__V1__REQUEST__CALL_FREE;
	request->free = &free_request;
	return message_pack_any(request, bytes);
}

static uint8_t *pack_about(const struct trace *trace, unsigned peer, const struct trace_request *from,
			   const struct message_handles *handles, Npumem__V1__Request *request, size_t *bytes)
{
	Npumem__V1__OpenRequest open = NPUMEM__V1__OPEN_REQUEST__INIT;
	Npumem__V1__SealRequest seal = NPUMEM__V1__SEAL_REQUEST__INIT;
	Npumem__V1__GrantRequest grant = NPUMEM__V1__GRANT_REQUEST__INIT;
	Npumem__V1__RenameRequest rename = NPUMEM__V1__RENAME_REQUEST__INIT;
	static struct items items;

	for (unsigned i = 0; i < from->n_ops; i++)
		set_refs(trace, peer, &from->ops[i], handles->of[i], &items.of[i]);
	open.tensor = seal.tensor = grant.tensor = rename.tensor = &items.of[0].refs[0];
	rename.name = items.of[0].names[1];
	switch (from->verb) {
	case TRACE_VIEW:
		return pack_view(&from->ops[0], &items.of[0], request, bytes);
	case TRACE_FREE:
		return pack_free(from, &items, request, bytes);
	case TRACE_SEAL:
		request->call_case = NPUMEM__V1__REQUEST__CALL_SEAL;
		request->seal = &seal;
		break;
	case TRACE_RENAME:
		request->call_case = NPUMEM__V1__REQUEST__CALL_RENAME;
		request->rename = &rename;
		break;
	case TRACE_GRANT:
		grant.uid = OTHER_UID;
		grant.access = (Npumem__V1__Access)from->ops[0].value;
		request->call_case = NPUMEM__V1__REQUEST__CALL_GRANT;
		request->grant = &grant;
		break;
	default:
		request->call_case = NPUMEM__V1__REQUEST__CALL_OPEN;
		request->open = &open;
		break;
	}
	return message_pack_any(request, bytes);
}

static uint8_t *pack_other(const struct trace_request *from, Npumem__V1__Request *request, size_t *bytes)
{
	Npumem__V1__ListRequest list = NPUMEM__V1__LIST_REQUEST__INIT;
	Npumem__V1__StatRequest stat = NPUMEM__V1__STAT_REQUEST__INIT;
	Npumem__V1__DumpRequest dump = NPUMEM__V1__DUMP_REQUEST__INIT;
	Npumem__V1__CompactRequest compact = NPUMEM__V1__COMPACT_REQUEST__INIT;
	Npumem__V1__SubscribeRequest subscribe = NPUMEM__V1__SUBSCRIBE_REQUEST__INIT;
	char *kinds[] = {(char *)"freed", (char *)"moved", (char *)"damaged", (char *)"progress"};

	dump.offset = from->ops[0].first;
	dump.bytes = from->ops[0].count;
	compact.dry_run = from->dry_run;
	subscribe.n_kinds = sizeof(kinds) / sizeof(kinds[0]);
	subscribe.kinds = kinds;
	switch (from->verb) {
	case TRACE_LIST:
		request->call_case = NPUMEM__V1__REQUEST__CALL_LIST;
		request->list = &list;
		break;
	case TRACE_STAT:
		request->call_case = NPUMEM__V1__REQUEST__CALL_STAT;
		request->stat = &stat;
		break;
	case TRACE_DUMP:
		request->call_case = NPUMEM__V1__REQUEST__CALL_DUMP;
		request->dump = &dump;
		break;
	case TRACE_COMPACT:
		request->call_case = NPUMEM__V1__REQUEST__CALL_COMPACT;
		request->compact = &compact;
		break;
	default:
		request->call_case = NPUMEM__V1__REQUEST__CALL_SUBSCRIBE;
		request->subscribe = &subscribe;
		break;
	}
	return message_pack_any(request, bytes);
}

uint8_t *message_pack(const struct trace *trace, unsigned peer, const struct trace_request *request,
		      const struct message_handles *handles, uint64_t id, size_t *bytes)
{
	Npumem__V1__Request message = NPUMEM__V1__REQUEST__INIT;

	message.id = id;
	if (request->verb <= TRACE_SUBMIT)
		return pack_operations(trace, peer, request, handles, &message, bytes);
	if (request->verb == TRACE_ALLOC)
		return pack_alloc(trace, peer, request, &message, bytes);
	if (request->verb <= TRACE_GRANT || request->verb == TRACE_RENAME)
		return pack_about(trace, peer, request, handles, &message, bytes);
	return pack_other(request, &message, bytes);
}
