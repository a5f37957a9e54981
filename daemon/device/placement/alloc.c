/* From requests to tensors in the table. What follows from a spec is the formulas' business, where there is free
 * room the arena's; a tensor that is to lie over others is put there first and then checked against each one that
 * it meets, so that no other tensor can come between the check and its use. A tensor that is placed while the
 * check takes several steps finds it there, and is checked against it.
 *
 * Invariant: between two steps each tensor made so far is in the table, hidden (`placing`), and in the totals but
 * for one that is nowhere yet. */
#include <assert.h>
#include <errno.h>
#include <inttypes.h>

#include "daemon/device/internal.h"
#include "daemon/device/placement/explain.h"
#include "daemon/device/reuse/overlap.h"
#include "daemon/device/reuse/overlap_walk.h"
#include "daemon/device/reuse/reuse_search.h"
#include "daemon/device/tensors/meetings.h"
#include "daemon/device/tensors/table.h"

/* A tensor that is being put over others. */
struct device_alloc_over {
	struct reuse_wish wish;
	bool entered; /* it has its place; else one is searched for */
	struct reuse_search search;
	struct reuse_check check; /* against the tensor of this handle; 0: none */
	uint64_t checking;
	uint64_t n_changes; /* the device's when the search began */
	unsigned n_searches;
};

static int check_request(const struct device *device, const struct device_request *request,
			 const struct error_context *context)
{
	if (request->reuse < 0 || request->reuse > NPUMEM_UNCHECKED)
		return npumem_error_set(context->error, NPUMEM_INVALID,
					"reuse %d is not one of never, if-safe, unchecked", request->reuse);
	if (request->reuse == NPUMEM_UNCHECKED && !device->options.allow_unchecked)
		return npumem_error_set(context->error, NPUMEM_PERMISSION_DENIED,
					"reuse unchecked is off: the daemon was started without "
					"--allow-unchecked-reuse");
	return 0;
}

/* As npumem_place_at, of an offset that the arena or a search has found: nothing is left to check. */
static void put_at(const struct device *device, struct tensor *tensor, int64_t offset)
{
	tensor_set_offset(tensor, device->options.geometry.npu_bytes, offset);
}

/* A tensor that has its place is counted from now on, or (-1) no more. */
static void count(struct device *device, struct tensor *tensor, int64_t sign)
{
	if (sign > 0)
		overlap_count_immovable(device, tensor);
	totals_add(&device->totals, &device->options.geometry, tensor, sign);
	device->n_tensors += sign;
	device->n_changes++;
}

/* ---- over others ---- */

static int enter(struct device *device, struct tensor *tensor, const struct error_context *context)
{
	int status = reuse_check_crowd(device, TENSOR_PLACE(tensor), context);
	if (status)
		return status;
	if (overlap_enter(device, tensor))
		return heap_exhausted(context->error);
	overlap_settle(device, tensor);
	count(device, tensor, 1);
	return 0;
}

static int begin_search(struct device_alloc *alloc, const struct error_context *context)
{
	struct device_alloc_over *over = alloc->over;
	const struct device *device = alloc->device;
	over->n_changes = device->n_changes;
	over->n_searches++;
	int status = reuse_search_begin(&over->search, device, TENSOR_PLACE(alloc->tensor), &over->wish, context);
	return status < 0 ? heap_exhausted(context->error) : status;
}

/* 0 where the tensor has entered a place. */
static int search(struct device_alloc *alloc, int64_t *steps, const struct error_context *context)
{
	struct device_alloc_over *over = alloc->over;
	struct tensor *tensor = alloc->tensor;
	int64_t offset;
	int status;
	switch (reuse_search_step(&over->search, steps, &offset)) {
	case REUSE_SEARCH_PAUSE:
		return -EAGAIN;
	case REUSE_SEARCH_FOUND:
		reuse_search_end(&over->search);
		put_at(alloc->device, tensor, offset);
		status = enter(alloc->device, tensor, context);
		over->entered = !status;
		return status;
	default:
		reuse_search_end(&over->search);
	}
	if (over->wish.reuse == NPUMEM_IF_SAFE && !over->wish.any_writer) {
		/* Where data would fit and only writers are in the way, the check names them and says what would
		 * help. */
		over->wish.any_writer = true;
		status = begin_search(alloc, context);
		return status ? status : search(alloc, steps, context);
	}
	return explain_no_room(alloc->device, &alloc->requests[alloc->i], TENSOR_PLACE(tensor), context);
}

/* The next meeting to check: of those that were made when the tensor came, the first. */
static struct meeting *next_unchecked(const struct tensor *tensor)
{
	struct meeting *next = NULL;
	for (struct meeting *meeting = tensor->first_meeting; meeting; meeting = meeting->next)
		if (meeting->end == 0 && !meeting->checked)
			next = meeting;
	return next;
}

static int check_all(struct device_alloc *alloc, int64_t *steps, const struct error_context *context)
{
	struct device_alloc_over *over = alloc->over;
	struct tensor *tensor = alloc->tensor;
	struct meeting *meeting = next_unchecked(tensor), *before;
	for (; meeting; meeting = before) {
		if (over->checking != meeting->other->handle)
			reuse_check_begin(&over->check, alloc->device, TENSOR_PLACE(tensor), &over->wish,
					  meeting->other);
		over->checking = meeting->other->handle;
		int status = reuse_check_step(&over->check, steps, context);
		if (status)
			return status;
		over->checking = 0;
		meeting->checked = true;
		meeting->lends = over->check.lends;
		meetings_twin(meeting)->lends = over->check.borrows;
		/* Tensors that came later have checked themselves against this one. */
		for (before = meeting->prev; before && (before->end || before->checked);)
			before = before->prev;
	}
	return 0;
}

/* Refused at a place that a search has found: somebody came meanwhile. */
static bool try_again(const struct device_alloc *alloc)
{
	enum { SEARCHES_MAX = 8 };
	const struct device_alloc_over *over = alloc->over;
	return alloc->requests[alloc->i].spec.address == NPUMEM_ANY && over->n_searches < SEARCHES_MAX &&
	       /* Its own coming is one change. */
	       alloc->device->n_changes != over->n_changes + 1;
}

static int go_over(struct device_alloc *alloc, int64_t *steps, const struct error_context *context)
{
	struct device_alloc_over *over = alloc->over;
	int status = 0;
	do {
		if (!over->entered)
			status = search(alloc, steps, context);
		if (!status)
			status = check_all(alloc, steps, context);
		if (status <= 0 || !over->entered || !try_again(alloc))
			return status;
		over->entered = false;
		over->checking = 0;
		overlap_leave(alloc->device, alloc->tensor);
		count(alloc->device, alloc->tensor, -1);
		tensor_set_nowhere(alloc->tensor);
		status = begin_search(alloc, context);
	} while (!status);
	return status;
}

static int begin_over(struct device_alloc *alloc, const struct error_context *context)
{
	const struct device_request *request = &alloc->requests[alloc->i];
	struct device_alloc_over *over = heap_zalloc(alloc->device->heap, 1, sizeof(*over));
	if (!over)
		return heap_exhausted(context->error);
	over->wish = (struct reuse_wish){.reuse = request->reuse, .dma_only = request->dma_only};
	alloc->over = over;
	if (request->spec.address == NPUMEM_ANY)
		return begin_search(alloc, context);
	int status = enter(alloc->device, alloc->tensor, context);
	over->entered = !status;
	return status;
}

static void end_over(struct device_alloc *alloc)
{
	if (alloc->over && alloc->over->search.device)
		reuse_search_end(&alloc->over->search);
	heap_free(alloc->device->heap, alloc->over);
	alloc->over = NULL;
}

/* ---- one tensor ---- */

/* Takes free bytes: 0; 1 where there are none; -ENOMEM. */
static int take_free(struct device *device, struct tensor *tensor, const struct device_request *request)
{
	uint64_t offset, from = arena_from(tensor),
			 align = (uint64_t)arena_align((int64_t)tensor->packed.align_bytes);
	if (request->spec.address != NPUMEM_ANY)
		return arena_reserve(device->arena, from, arena_to(tensor) - from, tensor);
	int taken = arena_alloc(device->arena, (uint64_t)tensor_bytes_per_npu(tensor), align, tensor, &offset);
	if (taken == 0)
		put_at(device, tensor, (int64_t)offset);
	return taken;
}

/* Finds bytes for a resolved tensor: free ones first; then, if asked, it has begun to look for others'. */
static int place_tensor(struct device_alloc *alloc, const struct npumem_place *place,
			const struct error_context *context)
{
	struct device *device = alloc->device;
	const struct device_request *request = &alloc->requests[alloc->i];
	struct tensor *tensor = alloc->tensor;
	int taken = take_free(device, tensor, request);
	if (taken < 0)
		return heap_exhausted(context->error);
	if (taken == 0) {
		count(device, tensor, 1);
		return 0;
	}
	if (request->reuse == NPUMEM_IF_SAFE || request->reuse == NPUMEM_UNCHECKED)
		return begin_over(alloc, context);
	/* At an odd address a strided tensor may only share a quantum of the arena with its neighbour. */
	if (request->spec.address != NPUMEM_ANY && !overlap_first(device, place))
		return enter(device, tensor, context);
	return explain_no_room(device, request, place, context);
}

static int begin_tensor(struct device_alloc *alloc, const struct error_context *context)
{
	struct device *device = alloc->device;
	const struct device_request *request = &alloc->requests[alloc->i];
	struct npumem_place place;
	int status = check_request(device, request, context);
	if (!status)
		status = npumem_place_resolve(&device->options.geometry, &request->spec, &place, context->error);
	if (status)
		return status;
	struct tensor *tensor = table_add(device);
	if (!tensor)
		return heap_exhausted(context->error);
	tensor->placing = true;
	tensor_set_place(tensor, &place);
	tensor->reuse = request->reuse ? request->reuse : NPUMEM_NEVER;
	tensor->dma_only = request->dma_only;
	tensor->pinned = request->pinned || request->spec.address != NPUMEM_ANY;
	alloc->tensor = alloc->tensors[alloc->i] = tensor;
	return place_tensor(alloc, &place, context);
}

static int place_one(struct device_alloc *alloc, int64_t *steps, const struct error_context *context)
{
	int status = alloc->tensor ? 0 : begin_tensor(alloc, context);
	if (!status && alloc->over)
		status = go_over(alloc, steps, context);
	if (status == -EAGAIN)
		return status;
	/* What did not get a place goes; what got one and may not keep it is released with the others. */
	if (status && alloc->tensor && (!alloc->over || !alloc->over->entered)) {
		table_remove(alloc->device, alloc->tensor);
		alloc->tensor = alloc->tensors[alloc->i] = NULL;
	}
	end_over(alloc);
	return status;
}

/* ---- all of them ---- */

void device_alloc_begin(struct device_alloc *alloc, struct device *device, const struct device_request *requests,
			unsigned n, struct tensor **tensors)
{
	*alloc = (struct device_alloc){.device = device, .requests = requests, .n = n, .tensors = tensors};
}

size_t device_alloc_host_bytes(const struct device_alloc *alloc)
{
	return alloc->over ? alloc->over->search.memory_bytes : 0;
}

int64_t device_alloc_bytes(const struct device_alloc *alloc, unsigned *n)
{
	bool is_entered = alloc->over && alloc->over->entered;
	int64_t bytes = 0;
	*n = alloc->i + is_entered;
	for (unsigned i = 0; i < *n; i++)
		bytes += tensor_footprint_bytes(alloc->tensors[i]);
	return bytes;
}

/* Where the tensor at hand has a place, it is one of those that do; else it goes. */
static void end_placing(struct device_alloc *alloc)
{
	bool placed = alloc->tensor && (!alloc->over || alloc->over->entered);
	end_over(alloc);
	if (placed)
		alloc->i++;
	else if (alloc->tensor)
		table_remove(alloc->device, alloc->tensor);
	alloc->tensor = NULL;
}

bool device_alloc_cancel(struct device_alloc *alloc, int64_t *steps)
{
	enum { MEETINGS_PER_STEP = 2 };
	end_placing(alloc);
	while (alloc->i > 0 && *steps > 0) {
		struct tensor *tensor = alloc->tensors[--alloc->i];
		*steps -= (tensor->n_meetings + MEETINGS_PER_STEP - 1) / MEETINGS_PER_STEP;
		device_release(alloc->device, tensor, NULL, NULL);
	}
	for (unsigned i = 0; i < alloc->i; i++)
		alloc->tensors[i]->placing = true;
	return alloc->i == 0;
}

int device_alloc_step(struct device_alloc *alloc, int64_t *steps, const struct error_context *context)
{
	while (alloc->i < alloc->n) {
		int status = place_one(alloc, steps, context);
		if (status == -EAGAIN)
			return status;
		if (status) {
			if (alloc->n > 1)
				npumem_error_number(context->error, "tensor_index", alloc->i);
			return status;
		}
		alloc->i++;
		alloc->tensor = NULL;
	}
	for (unsigned i = 0; i < alloc->n; i++)
		alloc->tensors[i]->placing = false;
	return 0;
}

int device_alloc(struct device *device, const struct device_request *requests, unsigned n, struct tensor **tensors,
		 const struct error_context *context)
{
	struct device_alloc alloc;
	int64_t steps = INT64_MAX;
	device_alloc_begin(&alloc, device, requests, n, tensors);
	int status = device_alloc_step(&alloc, &steps, context);
	if (status)
		device_alloc_cancel(&alloc, &steps);
	return status;
}
