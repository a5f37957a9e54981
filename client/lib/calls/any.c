/* Any request of the wire, as JSON. Its name is that of its member of Request, so that a new one needs nothing
 * here. */
#include <stdlib.h>
#include <string.h>

#include "client/lib/connection/engine/engine.h"
#include "client/lib/json/json.h"

enum { METHOD_NAMES_BYTES = 400 };

static const ProtobufCMessageDescriptor *const requests = &npumem__v1__request__descriptor;

/* The i-th member of Request.call, or NULL. */
static const ProtobufCFieldDescriptor *method(unsigned index)
{
	for (unsigned i = 0; i < requests->n_fields; i++)
		if (requests->fields[i].flags & PROTOBUF_C_FIELD_FLAG_ONEOF && !index--)
			return &requests->fields[i];
	return NULL;
}

const char *npumem_method_name(unsigned index)
{
	const ProtobufCFieldDescriptor *field = method(index);
	return field ? field->name : NULL;
}

static int find(const char *name, const ProtobufCFieldDescriptor **out, struct npumem_error *error)
{
	char known[METHOD_NAMES_BYTES] = "";
	size_t used = 0;
	for (unsigned i = 0; (*out = method(i)); i++) {
		if (!strcmp((*out)->name, name))
			return 0;
		if (used < sizeof(known))
			used += (size_t)snprintf(known + used, sizeof(known) - used, "%s%s", i ? ", " : "",
						 (*out)->name);
	}
	return npumem_error_set(error, NPUMEM_INVALID, "no request is called \"%.60s\"; there are: %s", name,
				known);
}

/* ---- the answer ---- */

static int take_answer(struct npumem_request *request, const Npumem__V1__Response *response,
		       struct npumem_error *error)
{
	Npumem__V1__Response result = *response;
	char *text = NULL;
	size_t n;
	FILE *out = open_memstream(&text, &n);
	if (!out)
		return request_no_memory(error);
	/* Members that the caller cannot use, or gets in another form. */
	result.id = 0;
	result.status = NPUMEM__V1__STATUS__OK;
	result.message = NULL;
	result.n_fields = 0;
	fputc('{', out);
	json_members(out, &result.base, false, JSON_WHOLE);
	fputc('}', out);
	request->answer = fclose(out) ? NULL : result_text(request->results, text);
	free(text);
	return request->answer ? 0 : request_no_memory(error);
}

/* ---- the request ---- */

static void *take_memory(void *ctx, size_t bytes)
{
	return memory_alloc(ctx, bytes);
}

static void give_memory(void *ctx, void *memory)
{
	memory_free(ctx, memory);
}

/* What a union of Request has for any of its calls: a pointer to its message. */
static int send(struct npumem *npumem, const ProtobufCFieldDescriptor *field, ProtobufCMessage *read, NPUMEM_ASYNC)
{
	static const struct request_kind any = {.result = REQUEST_ANY, .take = take_answer};
	Npumem__V1__Request message = NPUMEM__V1__REQUEST__INIT;
	message.call_case = (Npumem__V1__Request__CallCase)field->id;
	memcpy((uint8_t *)&message + field->offset, &read, sizeof(read));
	return request_call(npumem, &any, &message, NULL, callback, context, request, error);
}

int npumem_call_async(struct npumem *npumem, const char *name, const char *json, NPUMEM_ASYNC)
{
	ProtobufCAllocator allocator = {take_memory, give_memory, (void *)(uintptr_t)npumem->memory};
	const ProtobufCFieldDescriptor *field;
	ProtobufCMessage *read;
	request_clear(error);
	int status = find(name, &field, error);
	if (!status)
		status = json_read(json, field->descriptor, &allocator, &read, error);
	if (status)
		return status;
	status = send(npumem, field, read, callback, context, request, error);
	protobuf_c_message_free_unpacked(read, &allocator);
	return status;
}
