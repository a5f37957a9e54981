/* Life of the device and of its tensors: allocation, release, sealing. What follows from a spec is the formulas'
 * business, where it lies the arena's, who may share bytes is in reuse.c. */
#include "daemon/device/device.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>

#include "daemon/device/placement/explain.h"
#include "daemon/device/internal.h"
#include "daemon/device/operations/op.h"
#include "daemon/device/reuse/overlap.h"
#include "daemon/device/reuse/reuse.h"
#include "daemon/device/geometry/runs.h"
#include "daemon/device/tensors/table.h"
#include "daemon/device/tensors/written.h"

uint64_t device_memory_bytes(const struct npumem_geometry *geometry)
{
	return local_bytes(geometry);
}

int device_new(const struct device_options *options, const struct heap *heap, void *memory, struct device **out)
{
	struct device *device = heap_zalloc(heap, 1, sizeof(*device));
	if (!device)
		return -ENOMEM;
	device->options = *options;
	if (!device->options.rounding)
		device->options.rounding = NPUMEM_CONVERGENT;
	if (!device->options.uninitialized)
		device->options.uninitialized = NPUMEM_REFUSE;
	device->heap = heap;
	local_init(&device->local, &options->geometry, memory);
	if (totals_init(&device->totals, heap, &options->geometry))
		goto no_totals;
	if (arena_new(heap, (uint64_t)options->geometry.npu_bytes, &device->arena))
		goto no_arena;
	*out = device;
	return 0;
no_arena:
	totals_deinit(&device->totals, heap);
no_totals:
	heap_free(heap, device);
	return -ENOMEM;
}

void device_free(struct device *device)
{
	if (!device)
		return;
	overlap_deinit(device);
	table_deinit(device);
	arena_free(device->arena);
	totals_deinit(&device->totals, device->heap);
	heap_free(device->heap, device);
}

const struct device_options *device_options(const struct device *device)
{
	return &device->options;
}

void device_room(const struct device *device, int64_t *free_bytes, int64_t *largest_free)
{
	*free_bytes = (int64_t)arena_free_bytes(device->arena);
	*largest_free = (int64_t)arena_largest_free(device->arena);
}

static int out_of_host_memory(const struct error_context *context)
{
	return npumem_error_set(context->error, NPUMEM_RESOURCE_EXHAUSTED, "the daemon is out of host memory");
}

static int check_request(const struct device *device, const struct device_request *request,
			 const struct error_context *context)
{
	if (request->reuse < 0 || request->reuse > NPUMEM_UNCHECKED)
		return npumem_error_set(context->error, NPUMEM_INVALID,
					"reuse %d is none of never, if-safe, unchecked", request->reuse);
	if (request->reuse == NPUMEM_UNCHECKED && !device->options.allow_unchecked)
		return npumem_error_set(context->error, NPUMEM_PERMISSION_DENIED,
					"reuse unchecked is off: the daemon was started without "
					"--allow-unchecked-reuse");
	return 0;
}

/* What searches of one request may take together, in fifths of a microsecond: about a millisecond, as clients
 * wait. */
enum { SEARCH_BUDGET = 5000, SEARCH_COST = 100, TENSORS_PER_STEP = 2 };

static int64_t search_cost(const struct device *device)
{
	return SEARCH_COST + device->n_tensors / TENSORS_PER_STEP;
}

/* The first always. */
static bool may_search(struct device *device)
{
	bool may = device->searched == 0 || device->searched + search_cost(device) <= SEARCH_BUDGET;
	device->searched += search_cost(device);
	return may;
}

static int refuse_search(const struct device *device, const struct error_context *context)
{
	int64_t most = SEARCH_BUDGET / search_cost(device);
	return npumem_error_set(
		context->error, NPUMEM_RESOURCE_EXHAUSTED,
		"too many tensors of one request are searched a place for over others: with %" PRId64
		" on the device about %" PRId64 " can be; ask for more in requests of their own, or at addresses",
		device->n_tensors, most > 1 ? most : 1);
}

/* Puts a tensor over other footprints: at its fixed address, or where a search finds a place. */
static int place_over(struct device *device, struct tensor *tensor, const struct device_request *request,
		      const struct error_context *context)
{
	const struct npumem_geometry *geometry = &device->options.geometry;
	struct npumem_place *place = &tensor->place;
	struct reuse_wish wish = {.reuse = request->reuse, .dma_only = request->dma_only};
	int64_t offset = place->offset;
	if (request->spec.address == NPUMEM_ANY) {
		if (!may_search(device))
			return refuse_search(device, context);
		int status = reuse_search(device, place, &wish, &offset);
		if (status > 0 && request->reuse == NPUMEM_IF_SAFE) {
			/* Where data would fit and only writers are in the way, the verdict says who and what
			 * would help. */
			wish.any_writer = true;
			status = reuse_search(device, place, &wish, &offset);
		}
		if (status < 0)
			return out_of_host_memory(context);
		if (status)
			return explain_no_room(device, request, place, context);
		npumem_place_at(geometry, place, place->start_npu * geometry->npu_bytes + offset, NULL);
	}
	int status = reuse_verdict(device, place, &wish, context);
	if (status)
		return status;
	return overlap_enter(device, tensor) ? out_of_host_memory(context) : 0;
}

/* Finds bytes for a resolved tensor: free ones first, then, if asked, empty blocks. */
static int place_tensor(struct device *device, struct tensor *tensor, const struct device_request *request,
			const struct error_context *context)
{
	const struct npumem_geometry *geometry = &device->options.geometry;
	struct npumem_place *place = &tensor->place;
	int taken;
	if (request->spec.address != NPUMEM_ANY) {
		taken = arena_reserve(device->arena, arena_from(place), arena_to(place) - arena_from(place),
				      tensor);
	} else {
		uint64_t offset;
		taken = arena_alloc(device->arena, (uint64_t)place->bytes_per_npu, (uint64_t)arena_align(place),
				    tensor, &offset);
		if (taken == 0)
			npumem_place_at(geometry, place, place->start_npu * geometry->npu_bytes + (int64_t)offset,
					NULL);
	}
	if (taken < 0)
		return out_of_host_memory(context);
	if (taken == 0)
		return 0;
	if (request->reuse != NPUMEM_IF_SAFE && request->reuse != NPUMEM_UNCHECKED) {
		/* At an odd address a strided tensor may only share a quantum of the arena with its neighbour. */
		if (request->spec.address != NPUMEM_ANY && !overlap_first(device, place))
			return overlap_enter(device, tensor) ? out_of_host_memory(context) : 0;
		return explain_no_room(device, request, place, context);
	}
	return place_over(device, tensor, request, context);
}

static int alloc_one(struct device *device, const struct device_request *request, struct tensor **out,
		     const struct error_context *context)
{
	struct npumem_place place;
	int status = check_request(device, request, context);
	if (!status)
		status = npumem_place_resolve(&device->options.geometry, &request->spec, &place, context->error);
	if (status)
		return status;
	struct tensor *tensor = table_add(device);
	if (!tensor)
		return out_of_host_memory(context);
	tensor->place = place;
	tensor->reuse = request->reuse ? request->reuse : NPUMEM_NEVER;
	tensor->dma_only = request->dma_only;
	tensor->pinned = request->pinned || request->spec.address != NPUMEM_ANY;
	status = place_tensor(device, tensor, request, context);
	if (status) {
		table_remove(device, tensor);
		return status;
	}
	totals_add(&device->totals, &device->options.geometry, &tensor->place, 1);
	device->n_tensors++;
	*out = tensor;
	return 0;
}

int device_alloc(struct device *device, const struct device_request *requests, unsigned n, struct tensor **tensors,
		 const struct error_context *context)
{
	device->searched = 0;
	for (unsigned i = 0; i < n; i++) {
		int status = alloc_one(device, &requests[i], &tensors[i], context);
		if (status) {
			if (n > 1)
				npumem_error_number(context->error, "tensor_index", i);
			while (i-- > 0)
				device_release(device, tensors[i], NULL, NULL);
			return status;
		}
	}
	return 0;
}

static bool forget(void *ctx, int64_t npu, int64_t offset, int64_t bytes)
{
	enum { PART_BYTES = 1 << 20 };
	struct device *device = ctx;
	for (int64_t at = 0; at < bytes; at += PART_BYTES) {
		local_forget(&device->local, npu, offset + at, bytes - at < PART_BYTES ? bytes - at : PART_BYTES);
		device_give_way(device);
	}
	return true;
}

void device_give_way_by(struct device *device, void (*give_way)(void *ctx), void *ctx)
{
	device->give_way = give_way;
	device->give_way_ctx = ctx;
}

static void release_view(struct device *device, struct tensor *view)
{
	if (view->prev_view)
		view->prev_view->next_view = view->next_view;
	else
		view->base->views = view->next_view;
	if (view->next_view)
		view->next_view->prev_view = view->prev_view;
	device->n_views--;
	table_remove(device, view);
}

void device_forget(struct device *device, struct tensor *tensor)
{
	if (tensor->touched)
		runs_each(&device->options.geometry, &tensor->place, true, forget, device);
	tensor->touched = false;
}

int64_t device_forget_cost(const struct tensor *tensor)
{
	if (!tensor->touched || tensor->base)
		return 0;
	return op_reach_cost(&tensor->place, npumem_place_elements(&tensor->place));
}

void device_release(struct device *device, struct tensor *tensor, void (*gone)(void *ctx, struct tensor *tensor),
		    void *ctx)
{
	while (tensor->views) {
		struct tensor *view = tensor->views;
		if (gone)
			gone(ctx, view);
		release_view(device, view);
	}
	if (gone)
		gone(ctx, tensor);
	if (tensor->base) {
		release_view(device, tensor);
		return;
	}
	device_forget(device, tensor);
	overlap_leave(device, tensor);
	totals_add(&device->totals, &device->options.geometry, &tensor->place, -1);
	device->n_tensors--;
	table_remove(device, tensor);
}

int device_seal_check(struct device *device, struct tensor *tensor, const struct error_context *context)
{
	char name[ERROR_CONTEXT_NAME_BYTES], base[ERROR_CONTEXT_NAME_BYTES];
	if (tensor->base)
		return npumem_error_set(context->error, NPUMEM_INVALID, "%s is a view: seal its base, %s",
					error_context_name(context, tensor, name),
					error_context_name(context, tensor->base, base));
	if (device->options.uninitialized != NPUMEM_REFUSE)
		return 0;
	return written_check(device, tensor, 0, npumem_place_elements(&tensor->place), NULL, context);
}

int device_seal(struct device *device, struct tensor *tensor, const struct error_context *context)
{
	int status = device_seal_check(device, tensor, context);
	if (!status)
		tensor->sealed = true;
	return status;
}
