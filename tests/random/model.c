/* Invariant: what a root holds is a byte for each element of its whole width; a view has columns of its base.
 * Each change of a tensor is preceded by model_keep(), so that it can be undone. */
#include "tests/random/model_inside.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- life ---- */

static void *must(void *memory)
{
	if (!memory)
		abort();
	return memory;
}

struct model *model_new(const struct trace *trace)
{
	struct model *model = must(calloc(1, sizeof(*model)));

	model->trace = trace;
	return model;
}

void model_free(struct model *model)
{
	model_undo(model, 0);
	free(model->kept);
	free(model);
}

const char *model_why(const struct model *model)
{
	return model->why;
}

bool model_deny(struct model *model, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(model->why, sizeof(model->why), format, arguments);
	va_end(arguments);
	return false;
}

size_t model_mark(const struct model *model)
{
	return model->n_kept;
}

void model_undo(struct model *model, size_t mark)
{
	while (model->n_kept > mark) {
		struct model_kept *kept = &model->kept[--model->n_kept];

		model->tensors[kept->index] = kept->tensor;
		model->digests[kept->index] = kept->digest;
		if (kept->bytes)
			memcpy(model->bytes[kept->index], kept->bytes, MODEL_ELEMENTS);
		free(kept->bytes);
	}
}

struct model_tensor *model_keep(struct model *model, unsigned index, bool bytes)
{
	struct model_kept *kept;

	if (model->n_kept == model->room) {
		model->room = model->room ? 2 * model->room : 64;
		model->kept = must(realloc(model->kept, model->room * sizeof(*model->kept)));
	}
	kept = &model->kept[model->n_kept++];
	*kept = (struct model_kept){
		.index = index, .digest = model->digests[index], .tensor = model->tensors[index]};
	model->digests[index] = 0;
	if (bytes)
		kept->bytes = memcpy(must(malloc(MODEL_ELEMENTS)), model->bytes[index], MODEL_ELEMENTS);
	return &model->tensors[index];
}

static uint64_t mix(uint64_t digest, const void *data, size_t bytes)
{
	const uint8_t *at = data;

	for (uint64_t word; bytes >= sizeof(word); at += sizeof(word), bytes -= sizeof(word)) {
		memcpy(&word, at, sizeof(word));
		digest = (digest ^ word) * UINT64_C(0x9e3779b97f4a7c15);
		digest ^= digest >> 29;
	}
	for (; bytes; at++, bytes--)
		digest = (digest ^ *at) * UINT64_C(0x100000001b3);
	return digest;
}

/* Not of its index, which is as it comes. */
static uint64_t digest_of(const struct model *model, unsigned index)
{
	const struct model_tensor *tensor = &model->tensors[index];
	uint64_t digest = mix(1, &tensor->handle, sizeof(tensor->handle));
	const unsigned words[] = {tensor->sealed,	  tensor->dma_only, tensor->peer, tensor->uid,
				  (unsigned)tensor->slot, tensor->from_w,   tensor->n_w,  tensor->n_c};

	digest = mix(digest, words, sizeof(words));
	digest = mix(digest, tensor->rights, sizeof(tensor->rights));
	if (tensor->base < 0)
		return mix(digest + tensor->origins, model->bytes[index], MODEL_ELEMENTS) | 1;
	return mix(digest, &model->tensors[tensor->base].handle, sizeof(uint64_t)) | 1;
}

uint64_t model_digest(struct model *model)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < MODEL_TENSORS; i++) {
		if (!model->tensors[i].is_there)
			continue;
		if (!model->digests[i])
			model->digests[i] = digest_of(model, i);
		sum += model->digests[i];
	}
	return sum;
}

/* ---- who may ---- */

unsigned model_uid(const struct model *model, unsigned peer)
{
	return trace_uid(model->trace, peer) - TRACE_FIRST_UID;
}

static unsigned right_of_uid(const struct model_tensor *tensor, unsigned uid)
{
	return tensor->uid == uid ? (unsigned)MODEL_OWN : tensor->rights[uid];
}

/* What has no name is its session's. */
unsigned model_right(const struct model *model, const struct model_tensor *tensor, unsigned peer)
{
	if (tensor->slot == MODEL_NO_NAME)
		return tensor->peer == peer ? MODEL_OWN : MODEL_NONE;
	return right_of_uid(tensor, model_uid(model, peer));
}

/* Nobody may do with a view's bytes what its maker may not do with them. To be rid of it, its maker need not. */
static unsigned right_to_bytes(const struct model *model, const struct model_tensor *tensor, unsigned peer)
{
	unsigned right = model_right(model, tensor, peer), behind = MODEL_OWN;

	if (tensor->base >= 0)
		behind = right_of_uid(&model->tensors[tensor->base], tensor->uid);
	return right < behind ? right : behind;
}

unsigned model_right_to_root(const struct model *model, unsigned index, unsigned peer)
{
	return right_of_uid(&model->tensors[model_root(model, index)], model_uid(model, peer));
}

int model_find_named(const struct model *model, unsigned uid, unsigned slot)
{
	for (int i = 0; i < MODEL_TENSORS; i++)
		if (model->tensors[i].is_there && model->tensors[i].uid == uid &&
		    model->tensors[i].slot == (int)slot)
			return i;
	return -1;
}

int model_find(const struct model *model, unsigned peer, unsigned slot, uint64_t handle)
{
	unsigned uid;

	if (!handle)
		return trace_slot_of(model->trace, peer, slot, &uid, &slot)
			       ? model_find_named(model, uid - TRACE_FIRST_UID, slot)
			       : -1;
	for (int i = 0; i < MODEL_TENSORS; i++)
		if (model->tensors[i].is_there && model->tensors[i].handle == handle)
			return i;
	return -1;
}

/* The bit of the refusal, or 0 and which tensor it is. */
unsigned model_resolve(const struct model *model, const struct model_request *from, unsigned op, unsigned ref,
		       unsigned need, unsigned *index)
{
	int found = model_find(model, from->peer, from->request->ops[op].refs[ref].slot, from->handles[op][ref]);
	const struct model_tensor *tensor = &model->tensors[found < 0 ? 0 : found];
	unsigned right;

	if (found < 0 || !model_right(model, tensor, from->peer))
		return model_bit(NPUMEM__V1__STATUS__NOT_FOUND);
	*index = (unsigned)found;
	right = need == MODEL_OWN ? model_right(model, tensor, from->peer)
				  : right_to_bytes(model, tensor, from->peer);
	return right >= need ? 0 : model_bit(NPUMEM__V1__STATUS__PERMISSION_DENIED);
}

/* ---- what is where ---- */

unsigned model_root(const struct model *model, unsigned index)
{
	int base = model->tensors[index].base;

	return base < 0 ? index : (unsigned)base;
}

unsigned model_elements(const struct model_tensor *tensor)
{
	return TRACE_N * tensor->n_c * tensor->n_w;
}

/* Where an element of a tensor is in its root's bytes. */
size_t model_place(const struct model *model, unsigned index, unsigned element)
{
	const struct model_tensor *tensor = &model->tensors[index];
	unsigned root_c = model->tensors[model_root(model, index)].n_c, row = element / tensor->n_w;

	return (size_t)(row / tensor->n_c * root_c + row % tensor->n_c) * TRACE_W + tensor->from_w +
	       element % tensor->n_w;
}

/* How a look at these elements may end: it is refused where one was never written. */
unsigned model_look(const struct model *model, unsigned index, unsigned first, unsigned count)
{
	const uint8_t *bytes = model->bytes[model_root(model, index)];
	bool is_vague = false;

	for (unsigned i = first; i < first + count; i++) {
		uint8_t value = bytes[model_place(model, index, i)];

		if (value == MODEL_UNWRITTEN)
			return model_bit(NPUMEM__V1__STATUS__FAILED_PRECONDITION);
		is_vague |= value == MODEL_UNKNOWN;
	}
	return MODEL_OK | (is_vague ? model_bit(NPUMEM__V1__STATUS__FAILED_PRECONDITION) |
					      model_bit(NPUMEM__V1__STATUS__DATA_LOST)
				    : 0);
}

/* ---- any ---- */

static bool do_any(struct model *model, const struct model_request *from, int status)
{
	switch (from->request->verb) {
	case TRACE_WRITE:
	case TRACE_READ:
	case TRACE_FILL:
	case TRACE_COPY:
	case TRACE_RUN:
		return model_do_single(model, from, status);
	case TRACE_SUBMIT:
		return model_do_submit(model, from, status);
	case TRACE_ALLOC:
		return model_do_alloc(model, from, status);
	case TRACE_VIEW:
		return model_do_view(model, from, status);
	case TRACE_FREE:
		return model_do_free(model, from, status);
	case TRACE_OPEN:
	case TRACE_SEAL:
	case TRACE_GRANT:
		return model_do_one(model, from, status);
	case TRACE_LIST:
		return model_do_list(model, from, status);
	default:
		return true;
	}
}

bool model_do(struct model *model, const struct model_request *from)
{
	bool is_operation = from->request->verb <= TRACE_SUBMIT;
	/* An operation that nobody was told of may have come as far as one that was cancelled. */
	int status = from->response ? (int)from->response->status
		     : is_operation ? NPUMEM__V1__STATUS__CANCELLED
				    : NPUMEM__V1__STATUS__OK;
	size_t mark = model_mark(model);

	/* Cut off, and not to be done again: that is as if it had been stopped. */
	if (status == NPUMEM__V1__STATUS__ABORTED && from->has_crashed && is_operation)
		status = NPUMEM__V1__STATUS__CANCELLED;
	if (status == NPUMEM__V1__STATUS__CANCELLED && !is_operation)
		return true;
	if (do_any(model, from, status))
		return true;
	model_undo(model, mark);
	return false;
}
