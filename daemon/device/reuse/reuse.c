/* Asked of two tensors at a time, one question after the other, exact to the byte. That the two share offsets is
 * known: so where a kernel may write one of them, that is a hazard. */
#include "daemon/device/reuse/reuse.h"

#include <errno.h>
#include <inttypes.h>

#include "daemon/device/reuse/overlap_walk.h"
#include "daemon/device/tensors/meetings.h"

/* ---- how many ---- */

struct crowd {
	const struct npumem_place *place;
	unsigned n;
	const struct tensor *full; /* one that has all the meetings that it may have */
};

static bool count_meeting(void *ctx, struct tensor *tensor)
{
	struct crowd *crowd = ctx;
	if (!places_share_offsets(crowd->place, TENSOR_PLACE(tensor)))
		return true;
	if (tensor->n_meetings == MEETINGS_MAX)
		crowd->full = tensor;
	return !crowd->full && ++crowd->n <= MEETINGS_MAX;
}

int reuse_check_crowd(const struct device *device, const struct npumem_place *place,
		      const struct error_context *context)
{
	char name[ERROR_CONTEXT_NAME_BYTES];
	struct crowd crowd = {.place = place};
	if (overlap_each(device, place->offset, place->bytes_per_npu, NULL, count_meeting, &crowd))
		return 0;
	if (!crowd.full)
		return npumem_error_set(context->error, NPUMEM_RESOURCE_EXHAUSTED,
					"the new tensor would lie over more than %d others: choose another "
					"address, or make it smaller",
					MEETINGS_MAX);
	error_context_name(context, crowd.full, name);
	npumem_error_set(context->error, NPUMEM_RESOURCE_EXHAUSTED,
			 "%s shares its footprint with %d tensors, and no more may: choose another address", name,
			 MEETINGS_MAX);
	npumem_error_text(context->error, "tensor", name);
	return NPUMEM_RESOURCE_EXHAUSTED;
}

/* ---- refusals ---- */

/* The message is "<before><name><after> on NPU ..., bytes ...; <remedy>". */
static int refuse(const struct reuse_check *check, const struct intersect_range *range, const char *before,
		  const char *after, const char *remedy, const struct error_context *context)
{
	char name[ERROR_CONTEXT_NAME_BYTES];
	error_context_name(context, check->other, name);
	npumem_error_set(context->error, NPUMEM_FAILED_PRECONDITION,
			 "%s%s%s on NPU %" PRId64 ", bytes %" PRId64 " to %" PRId64 "; %s", before, name, after,
			 range->npu, range->offset, range->offset + range->bytes - 1, remedy);
	npumem_error_text(context->error, "tensor", name);
	npumem_error_number(context->error, "npu", range->npu);
	npumem_error_number(context->error, "offset", range->offset);
	npumem_error_number(context->error, "bytes", range->bytes);
	return NPUMEM_FAILED_PRECONDITION;
}

static int refuse_data(const struct reuse_check *check, const struct intersect_range *range,
		       const struct error_context *context)
{
	return refuse(check, range, "the new tensor's data would lie on data of ", "",
		      "data over data is always refused: choose another address or start NPU", context);
}

static int refuse_padding(const struct reuse_check *check, const struct error_context *context)
{
	return refuse(check, &check->range, "the new tensor's data would lie in padding of ", "",
		      "only empty blocks can be reused: choose another address or start NPU", context);
}

/* Names the bytes that lockstep would destroy: the one's data in the other's footprint. There are some, since a
 * tensor has data at its first offset, and of two that meet one starts within the other. */
static int refuse_writer(const struct reuse_check *check, const struct error_context *context)
{
	const struct npumem_geometry *geometry = &check->device->options.geometry;
	const struct npumem_place *place = &check->place, *other = &check->other_place;
	struct intersect_range range = {.npu = 0};
	if (!intersect_first(geometry, place, KINDS_DATA, other, KINDS_FOOTPRINT, &range))
		intersect_first(geometry, place, KINDS_FOOTPRINT, other, KINDS_DATA, &range);
	if (!tensor_is_dma_only(check->other))
		return refuse(check, &range, "a kernel may write ", ", whose footprint overlaps the new tensor's",
			      check->wish.dma_only
				      ? "seal the other tensor, or allocate it dma_only"
				      : "seal the other tensor, or allocate it dma_only; and allocate the new one "
					"dma_only",
			      context);
	return refuse(check, &range, "a kernel may write the new tensor, whose footprint overlaps that of ", "",
		      "allocate the new one dma_only", context);
}

/* ---- the questions ---- */

enum { TAKEN, DATA_OVER_DATA, LENDS, BORROWS, DONE };

static void ask(struct reuse_check *check, unsigned question)
{
	const struct npumem_geometry *geometry = &check->device->options.geometry;
	const struct npumem_place *place = &check->place, *other = &check->other_place;
	bool if_safe = check->wish.reuse == NPUMEM_IF_SAFE;
	check->question = question;
	if (question == TAKEN)
		intersect_begin(&check->walk, geometry, place, KINDS_DATA, other,
				if_safe ? KINDS_DATA | NPUMEM_BYTE_PADDING : KINDS_DATA);
	if (question == DATA_OVER_DATA)
		intersect_begin(&check->walk, geometry, place, KINDS_DATA, other, KINDS_DATA);
	if (question == LENDS)
		intersect_begin(&check->walk, geometry, place, NPUMEM_BYTE_EMPTY, other, NPUMEM_BYTE_DATA);
	if (question == BORROWS)
		intersect_begin(&check->walk, geometry, place, NPUMEM_BYTE_DATA, other, NPUMEM_BYTE_EMPTY);
}

void reuse_check_begin(struct reuse_check *check, const struct device *device, const struct npumem_place *place,
		       const struct reuse_wish *wish, const struct tensor *other)
{
	check->device = device;
	check->place = *place;
	check->other_place = tensor_place(other);
	check->wish = *wish;
	check->other = other;
	check->lends = check->borrows = false;
	ask(check, TAKEN);
}

/* The answer to a question is whether there is any such byte: asks the next one, or refuses. */
static int answer(struct reuse_check *check, bool any, const struct intersect_range *range,
		  const struct error_context *context)
{
	bool if_safe = check->wish.reuse == NPUMEM_IF_SAFE;
	switch (check->question) {
	case TAKEN:
		if (!any && if_safe && !(check->wish.dma_only && tensor_is_dma_only(check->other)))
			return refuse_writer(check, context);
		check->range = *range;
		ask(check, any ? DATA_OVER_DATA : LENDS);
		return 0;
	case DATA_OVER_DATA:
		return any ? refuse_data(check, range, context) : refuse_padding(check, context);
	case LENDS:
		check->lends = any;
		ask(check, BORROWS);
		return 0;
	default:
		check->borrows = any;
		check->question = DONE;
		return 0;
	}
}

int reuse_check_step(struct reuse_check *check, int64_t *steps, const struct error_context *context)
{
	int status = 0;
	while (check->question != DONE && !status) {
		struct intersect_range range = {.npu = 0};
		enum intersect_answer found = intersect_step(&check->walk, steps, &range);
		if (found == INTERSECT_PAUSE)
			return -EAGAIN;
		status = answer(check, found == INTERSECT_RANGE, &range, context);
	}
	return status;
}
