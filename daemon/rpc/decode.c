/* Nothing here trusts a length, and nothing is taken beyond what a frame of this size may cost. */
#include "daemon/rpc/decode.h"

#include <inttypes.h>

#include "daemon/rpc/handlers/operations/lists.h"
#include "daemon/service/kept/results.h"

/* Of a list it says how much of it can be asked for at once. */
static int refuse_fields(const struct decode *decode, size_t bytes, struct npumem_error *error)
{
	if (!decode->n_whole)
		return npumem_error_set(error, NPUMEM_RESOURCE_EXHAUSTED,
					"a message of %zu bytes with more than %d fields: ask in parts", bytes,
					DECODE_FIELDS_MAX);
	npumem_error_set(
		error, NPUMEM_RESOURCE_EXHAUSTED,
		"a message of %zu bytes with more than %d fields, which the first %zu of its list fit: ask in "
		"parts",
		bytes, DECODE_FIELDS_MAX, decode->n_whole);
	npumem_error_number(error, "fits", (int64_t)decode->n_whole);
	return NPUMEM_RESOURCE_EXHAUSTED;
}

static int refuse_text(const struct decode *decode, struct npumem_error *error)
{
	npumem_error_set(error, NPUMEM_INVALID, "field %s has a text of %zu bytes: at most %d",
			 decode->long_text->name, decode->long_text_bytes, DECODE_TEXT_BYTES_MAX);
	npumem_error_text(error, "field", decode->long_text->name);
	return NPUMEM_INVALID;
}

/* `unknown`: its first field that no Request has, which may be a later version's call; or 0. */
static int decode_request(struct call *call, uint32_t *unknown)
{
	struct decode decode = {.budget = &call->budget, .n_fields = DECODE_FIELDS_MAX};
	size_t bytes = call->bytes;

	budget_reset(&call->budget, bytes);
	if (!bytes)
		return npumem_error_set(call->error, NPUMEM_INVALID, "an empty message");
	call->request = (Npumem__V1__Request *)decode_message(&decode, &npumem__v1__request__descriptor,
							      call->message, bytes);
	call->borrowed = call->request ? decode.borrowed : NULL;
	*unknown = decode.unknown;
	if (call->request)
		return 0;
	if (decode.has_too_many)
		return refuse_fields(&decode, bytes, call->error);
	if (decode.long_text)
		return refuse_text(&decode, call->error);
	if (decode.texts_bytes > DECODE_TEXTS_BYTES_MAX)
		return npumem_error_set(call->error, NPUMEM_RESOURCE_EXHAUSTED,
					"a message with more than %d bytes of text: ask in parts",
					DECODE_TEXTS_BYTES_MAX);
	if (call->budget.exceeded)
		return npumem_error_set(call->error, NPUMEM_RESOURCE_EXHAUSTED,
					"a message of %zu bytes that takes more than %zu unpacked", bytes,
					call->budget.limit);
	if (call->budget.starved)
		return heap_exhausted(call->error);
	return npumem_error_set(call->error, NPUMEM_INVALID, "a malformed message of %zu bytes", bytes);
}

uint64_t decode_salvage_id(const uint8_t *message, size_t bytes)
{
	uint64_t id = 0;

	if (bytes < 2 || message[0] != (1 << 3 | 0))
		return 0;
	for (size_t i = 1; i < bytes && i <= 10; i++) {
		id |= (uint64_t)(message[i] & 0x7f) << (7 * (i - 1));
		if (!(message[i] & 0x80))
			return id;
	}
	return 0;
}

static int refuse_unknown(struct call *call, uint32_t unknown)
{
	if (unknown)
		return npumem_error_set(call->error, NPUMEM_UNIMPLEMENTED,
					"this daemon does not know call %" PRIu32, unknown);
	return npumem_error_set(call->error, NPUMEM_UNIMPLEMENTED, "the request has no call");
}

int decode_call(struct call *call)
{
	uint32_t unknown = 0;
	int status = decode_request(call, &unknown);

	if (status) {
		call->id = decode_salvage_id(call->message, call->bytes);
		return status;
	}
	call->method = methods_number(call->request->call_case);
	call->id = call->request->id;
	if (!call->id)
		return npumem_error_set(call->error, NPUMEM_INVALID, "request id 0: ids are above 0");
	if (call->request->answered_below) {
		results_answered(call->session, call->request->answered_below);
		repeat_answered(call->peer, call->request->answered_below);
	}
	if ((call->method == METHODS_SUBMIT || call->method == METHODS_DRY_RUN) &&
	    (call->request->submit->list || call->request->submit->n_changes))
		return lists_expand(call);
	return call->method == METHODS_NONE ? refuse_unknown(call, unknown) : 0;
}
