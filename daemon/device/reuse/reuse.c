/* The verdict on one place, exact to the byte, and said in words. */
#include "daemon/device/reuse/reuse.h"

#include <inttypes.h>

#include "daemon/device/geometry/bands_meet.h"
#include "daemon/device/geometry/meet.h"
#include "daemon/device/reuse/overlap.h"
#include "daemon/device/tensors/meetings.h"

struct verdict {
	const struct device *device;
	const struct npumem_place *place;
	const struct reuse_wish *wish;
	const struct error_context *context;
	int status;
};

static void add_range(const struct error_context *context, const char *name, const struct meet_range *range)
{
	npumem_error_text(context->error, "tensor", name);
	npumem_error_number(context->error, "npu", range->npu);
	npumem_error_number(context->error, "offset", range->offset);
	npumem_error_number(context->error, "bytes", range->bytes);
}

/* The message is "<before><name><after> on NPU ..., bytes ...; <remedy>". */
static bool refuse(struct verdict *verdict, const struct tensor *tensor, const struct meet_range *range,
		   const char *before, const char *after, const char *remedy)
{
	char name[ERROR_CONTEXT_NAME_BYTES];
	error_context_name(verdict->context, tensor, name);
	verdict->status =
		npumem_error_set(verdict->context->error, NPUMEM_FAILED_PRECONDITION,
				 "%s%s%s on NPU %" PRId64 ", bytes %" PRId64 " to %" PRId64 "; %s", before, name,
				 after, range->npu, range->offset, range->offset + range->bytes - 1, remedy);
	add_range(verdict->context, name, range);
	return false;
}

/* Where the one's data lies in the other's footprint: the bytes that lockstep would destroy. There are some, since
 * a tensor has data at its first offset, and of two that meet one starts within the other. */
static void hazard(const struct npumem_geometry *geometry, const struct npumem_place *a,
		   const struct npumem_place *b, struct meet_range *range)
{
	if (!meet_first(geometry, a, MEET_DATA, b, MEET_FOOTPRINT, range))
		meet_first(geometry, a, MEET_FOOTPRINT, b, MEET_DATA, range);
}

static bool judge(void *ctx, struct tensor *tensor)
{
	struct verdict *verdict = ctx;
	const struct npumem_geometry *geometry = &verdict->device->options.geometry;
	const struct npumem_place *place = verdict->place;
	struct meet_range range;
	/* The one question that is asked of every tensor under a guest: there may be thousands. */
	bool safe = verdict->wish->reuse == NPUMEM_UNCHECKED ||
		    (verdict->wish->dma_only && tensor_is_dma_only(tensor));
	unsigned taken = verdict->wish->reuse == NPUMEM_UNCHECKED ? MEET_DATA : MEET_DATA | NPUMEM_BYTE_PADDING;
	bool meets = taken == MEET_DATA ? meet_first(geometry, place, taken, &tensor->place, taken, &range)
					: bands_meet(geometry, place, MEET_DATA, &tensor->place, taken);
	if (!meets &&
	    (safe || !meet_first(geometry, place, MEET_FOOTPRINT, &tensor->place, MEET_FOOTPRINT, &range)))
		return true;
	if (meet_first(geometry, place, MEET_DATA, &tensor->place, MEET_DATA, &range))
		return refuse(verdict, tensor, &range, "the new tensor's data would lie on data of ", "",
			      "data over data is always refused: choose another address or start NPU");
	if (meet_first(geometry, place, MEET_DATA, &tensor->place, taken, &range))
		return refuse(verdict, tensor, &range, "the new tensor's data would lie in padding of ", "",
			      "only empty blocks can be reused: choose another address or start NPU");
	hazard(geometry, place, &tensor->place, &range);
	if (!tensor_is_dma_only(tensor))
		return refuse(
			verdict, tensor, &range, "a kernel may write ", ", whose footprint meets the new tensor's",
			verdict->wish->dma_only ? "seal it, or allocate it dma_only"
						: "seal it, or allocate it dma_only; and allocate the new one "
						  "dma_only");
	if (!verdict->wish->dma_only)
		return refuse(verdict, tensor, &range,
			      "a kernel may write the new tensor, whose footprint meets that of ", "",
			      "allocate the new one dma_only");
	return true;
}

struct crowd {
	const struct npumem_place *place;
	unsigned n;
	const struct tensor *full; /* one that has all the meetings that it may have */
};

static bool count_meeting(void *ctx, struct tensor *tensor)
{
	struct crowd *crowd = ctx;
	if (tensor->place.offset >= place_end(crowd->place) || crowd->place->offset >= place_end(&tensor->place))
		return true;
	if (tensor->n_meetings == MEETINGS_MAX)
		crowd->full = tensor;
	return !crowd->full && ++crowd->n <= MEETINGS_MAX;
}

/* 0, or RESOURCE_EXHAUSTED where the new tensor or another would have too many meetings. */
static int check_crowd(const struct device *device, const struct npumem_place *place,
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

int reuse_verdict(const struct device *device, const struct npumem_place *place, const struct reuse_wish *wish,
		  const struct error_context *context)
{
	struct verdict verdict = {.device = device, .place = place, .wish = wish, .context = context};
	int status = check_crowd(device, place, context);
	if (status)
		return status;
	overlap_each(device, place->offset, place->bytes_per_npu, NULL, judge, &verdict);
	return verdict.status;
}
