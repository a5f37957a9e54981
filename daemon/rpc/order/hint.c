/* Walks through the request by the descriptors of its messages: every Ref names a tensor, whatever the call. */
#include "daemon/rpc/order/hint.h"

static const void *member(const ProtobufCMessage *message, size_t offset)
{
	return (const char *)message + offset;
}

static void claim_ref(struct call *call, struct claim *hint, const Npumem__V1__Ref *ref)
{
	struct access_ref to = {ref->handle, ref->name};
	struct tensor *tensor;

	if (access_find(call->session, &to, ACCESS_READ, &tensor, NULL))
		return;
	if (call->method == CALL_METHOD_FREE)
		claim_free(hint, tensor);
	else
		claim_tensor(hint, tensor, true);
}

static void walk(struct call *call, struct claim *hint, const ProtobufCMessage *message);

static void walk_field(struct call *call, struct claim *hint, const ProtobufCMessage *message,
		       const ProtobufCFieldDescriptor *field)
{
	const void *at = member(message, field->offset);
	ProtobufCMessage *const *list;
	size_t n;

	if (field->label == PROTOBUF_C_LABEL_REPEATED) {
		n = *(const size_t *)member(message, field->quantifier_offset);
		list = *(ProtobufCMessage *const *const *)at;
	} else {
		if (field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF &&
		    *(const uint32_t *)member(message, field->quantifier_offset) != field->id)
			return;
		list = at;
		n = *list != NULL;
	}
	for (size_t i = 0; i < n; i++)
		walk(call, hint, list[i]);
}

/* As deep as the messages are, which none of them can make deeper. */
static void walk(struct call *call, struct claim *hint, const ProtobufCMessage *message)
{
	const ProtobufCMessageDescriptor *type = message->descriptor;

	if (type == &npumem__v1__ref__descriptor) {
		claim_ref(call, hint, (const Npumem__V1__Ref *)message);
		return;
	}
	for (unsigned i = 0; i < type->n_fields; i++)
		if (type->fields[i].type == PROTOBUF_C_TYPE_MESSAGE)
			walk_field(call, hint, message, &type->fields[i]);
}

void hint_claim(struct call *call, struct claim *hint)
{
	walk(call, hint, &call->request->base);
	claim_all_written(hint);
}
