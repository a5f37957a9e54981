/* Life of the device, and the end of its tensors: release, sealing. How they come is in placement/alloc.c. */
#include "daemon/device/device.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <utlist.h>

#include "daemon/device/internal.h"
#include "daemon/device/operations/op.h"
#include "daemon/device/operations/roles.h"
#include "daemon/device/reuse/overlap.h"
#include "daemon/device/geometry/runs.h"
#include "daemon/device/tensors/meetings.h"
#include "daemon/device/tensors/changes.h"
#include "daemon/device/tensors/page_cost.h"
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
	if (!device->options.isa || !isa_runs(device->options.isa))
		device->options.isa = isa_best();
	device->heap = heap;
	roles_prepare();
	packs_init(&device->packs, heap, options->pack_bytes);
	local_init(&device->local, &options->geometry, device->options.isa, memory);
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
	packs_deinit(&device->packs);
	overlap_deinit(device);
	table_deinit(device);
	arena_free(device->arena);
	totals_deinit(&device->totals, device->heap);
	heap_free(device->heap, device);
}

size_t device_host_bytes(const struct device *device, unsigned n_meetings)
{
	/* A block of the arena, and a free one beside it; of a guest its visit; what the heap adds to an
	 * allocation; parts of tables that double: a list of chunks here, and a bucket of names in the service. */
	enum { HEAP_BYTES = 16, ARENA_BYTES = 2 * 64, TABLE_BYTES = 2 * 2 * sizeof(void *) };
	size_t slot = sizeof(struct tensor) + device->owner_bytes,
	       guest = sizeof(struct tensor_visit) + HEAP_BYTES;

	return slot + guest + ARENA_BYTES + TABLE_BYTES + n_meetings * (2 * sizeof(struct meeting) + HEAP_BYTES);
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

bool device_is_taken(const struct device *device, int64_t offset)
{
	struct arena_extent extent;
	return arena_at(device->arena, (uint64_t)offset, &extent) && extent.taken;
}

const struct occupancy *device_immovable(const struct device *device)
{
	return &device->immovable;
}

static bool forget(void *ctx, const struct runs_series *series)
{
	struct device *device = ctx;
	local_forget_series(&device->local, series->npu, series->offset, series->bytes, series->n, series->pitch);
	device_give_way(device);
	return true;
}

void device_help_by(struct device *device, const struct kernel_crew *crew)
{
	device->crew = *crew;
}

void device_give_way_by(struct device *device, void (*give_way)(void *ctx), void *ctx)
{
	device->give_way = give_way;
	device->give_way_ctx = ctx;
}

static void release_view(struct device *device, struct tensor *view)
{
	DL_DELETE2(view->base->first_view, view, prev_view, next_view);
	device->n_views--;
	table_remove(device, view);
}

void device_forget(struct device *device, struct tensor *tensor)
{
	if (!tensor->touched)
		return;
	changes_tell_place(device, TENSOR_PLACE(tensor), false);
	runs_each(&device->options.geometry, TENSOR_PLACE(tensor), true, forget, device);
	changes_made_place(device, TENSOR_PLACE(tensor));
	tensor->touched = false;
}

int64_t device_forget_cost(const struct device *device, const struct tensor *tensor)
{
	int64_t n = tensor_elements(tensor);
	if (!tensor->touched || tensor->base)
		return 0;
	return op_reach_cost(tensor, n) + page_cost_write(device, tensor, 0, n) + changes_cost(device, tensor, n);
}

void device_release(struct device *device, struct tensor *tensor, void (*gone)(void *ctx, struct tensor *tensor),
		    void *ctx)
{
	/* Before the account may be gone. */
	if (!tensor->base)
		packs_forget(&device->packs, tensor);
	for (struct tensor *view; (view = tensor_views(tensor));) {
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
	totals_add(&device->totals, &device->options.geometry, tensor, -1);
	device->n_tensors--;
	device->n_changes++;
	table_remove(device, tensor);
}

void device_release_all(struct device *device, struct tensor *const *tensors, unsigned n)
{
	while (n-- > 0)
		device_release(device, tensors[n], NULL, NULL);
}

static bool lose(void *ctx, const struct runs_series *series)
{
	struct device *device = ctx;
	local_lose_series(&device->local, series->npu, series->offset, series->bytes, series->n, series->pitch);
	device_give_way(device);
	return true;
}

void device_lose(struct device *device, struct tensor *tensor, int64_t first, int64_t count)
{
	struct tensor *root = tensor_root(tensor);
	int64_t elements = tensor_elements(tensor);
	if (first < 0 || first >= elements)
		first = 0, count = -1;
	if (count < 0 || count > elements - first)
		count = elements - first;
	root->touched = true;
	written_doubt(root);
	atomic_fetch_add_explicit(&root->version, 1, memory_order_relaxed);
	runs_each_of(&device->options.geometry, TENSOR_PLACE(tensor), first, count, lose, device);
	changes_made_elements(device, tensor, first, count);
}

int device_seal_check(struct device *device, struct tensor *tensor, const struct error_context *context)
{
	char name[ERROR_CONTEXT_NAME_BYTES], base[ERROR_CONTEXT_NAME_BYTES];
	if (tensor->base)
		return npumem_error_set(context->error, NPUMEM_INVALID, "%s is a view: seal its base, %s",
					error_context_name(context, tensor, name),
					error_context_name(context, tensor->base, base));
	int64_t elements = tensor_elements(tensor), lost;
	written_damaged(device, tensor, 0, elements, NULL, &lost);
	if (lost)
		return written_refuse_lost(tensor, lost, context);
	if (device->options.uninitialized != NPUMEM_REFUSE)
		return 0;
	return written_check(device, tensor, 0, elements, NULL, context);
}

void device_seal(struct tensor *tensor)
{
	tensor->sealed = true;
}
