/* Tensors as they were before a restart. A root's place follows from its spec and address, as when it was placed;
 * that of a slice from what it reaches of its base; only of a reshaped view the place itself is kept.
 *
 * What is kept is checked by a sum where it lies, so that a wrong value here is rare, but must do no harm: what a
 * restored tensor is described by must be exactly what it was restored from. */
#include <errno.h>

#include "daemon/device/internal.h"
#include "daemon/device/placement/move_bytes.h"
#include "daemon/device/reuse/overlap.h"
#include "daemon/device/reuse/overlap_walk.h"
#include "daemon/device/tensors/changes.h"
#include "daemon/device/reuse/reuse.h"
#include "daemon/device/tensors/meetings.h"
#include "daemon/device/tensors/table.h"
#include "daemon/device/tensors/view.h"

_Static_assert(sizeof(struct device_saved) == 200, "no holes, and no more than a cell of the store has room for");

/* ---- what is kept ---- */

static void describe_view(const struct tensor *view, struct device_saved *saved)
{
	const struct npumem_place *place = TENSOR_PLACE(view);
	saved->base = view->base->handle;
	saved->range = tensor_range(view);
	saved->is_reshaped = view->is_reshaped;
	if (!view->is_reshaped)
		return;
	saved->address = place->offset - tensor_offset(view->base);
	saved->start_npu = place->start_npu;
	saved->shape = place->shape;
	saved->stride = place->stride;
}

static void describe_root(const struct tensor *tensor, struct device_saved *saved)
{
	const struct npumem_place *place = TENSOR_PLACE(tensor);
	saved->address = place->address;
	saved->rows = place->rows;
	saved->cols = place->cols;
	saved->w = place->w;
	if (place->layout != NPUMEM_MATRIX)
		saved->shape = place->shape;
	if (place->layout == NPUMEM_STRIDED)
		saved->stride = place->stride;
	saved->is_sealed = tensor->sealed;
	saved->is_dma_only = tensor->dma_only;
	saved->is_pinned = tensor->pinned;
	saved->is_guest = tensor_is_guest(tensor);
}

void device_describe(const struct device *device, const struct tensor *tensor, struct device_saved *saved)
{
	const struct npumem_place *place = TENSOR_PLACE(tensor);
	(void)device;
	memset(saved, 0, sizeof(*saved));
	saved->handle = tensor->handle;
	saved->frac_bits = (int16_t)place->frac_bits;
	saved->dtype = (uint8_t)place->dtype;
	saved->layout = (uint8_t)place->layout;
	saved->mode = (uint8_t)place->mode;
	saved->reuse = (uint8_t)tensor->reuse;
	if (tensor->base)
		describe_view(tensor, saved);
	else
		describe_root(tensor, saved);
}

unsigned device_saved_pass(const struct device_saved *saved)
{
	return saved->base ? 2 : saved->is_guest != 0;
}

static int refuse(const struct error_context *context, const char *what)
{
	return npumem_error_set(context->error, NPUMEM_INVALID, "%s", what);
}

/* ---- roots ---- */

static int place_root(const struct device *device, const struct device_saved *saved, struct npumem_place *place,
		      const struct error_context *context)
{
	const struct npumem_spec spec = {.dtype = saved->dtype,
					 .frac_bits = saved->frac_bits,
					 .layout = saved->layout,
					 .mode = saved->mode,
					 .shape = saved->shape,
					 .rows = saved->rows,
					 .cols = saved->cols,
					 .w = saved->w,
					 .stride = saved->stride,
					 .start_npu = NPUMEM_ANY,
					 .address = saved->address};
	if (saved->address == NPUMEM_ANY)
		return refuse(context, "it has no address");
	return npumem_place_resolve(&device->options.geometry, &spec, place, context->error);
}

/* Guests of reuse unchecked can lie over one another by hundreds, each pair of which takes long to compare. No one
 * is served meanwhile, so these have a bound together. */
static int64_t *steps_for(struct device *device, const struct tensor *guest, const struct tensor *other,
			  int64_t *all)
{
	*all = INT64_MAX;
	return guest->reuse == NPUMEM_UNCHECKED || other->reuse == NPUMEM_UNCHECKED ? &device->restore.steps : all;
}

/* Only data over data is wrong; which tensor is the host and which the guest follows from their data. */
static int check_meetings(struct device *device, struct tensor *guest, const struct error_context *context)
{
	const struct reuse_wish wish = {.reuse = NPUMEM_UNCHECKED};
	for (struct meeting *meeting = guest->first_meeting; meeting; meeting = meeting->next) {
		struct reuse_check check;
		int64_t all;
		reuse_check_begin(&check, device, TENSOR_PLACE(guest), &wish, meeting->other);
		int status = reuse_check_step(&check, steps_for(device, guest, meeting->other, &all), context);
		bool is_believed = status == -EAGAIN && !device->restore.mixed;
		if (status == -EAGAIN && !is_believed)
			return refuse(context, "it takes too long to see that it lies on no data of others");
		if (status && !is_believed)
			return status;
		meeting->checked = true;
		meeting->lends = check.lends || is_believed;
		meetings_twin(meeting)->lends = check.borrows || is_believed;
	}
	return 0;
}

static int enter_guest(struct device *device, struct tensor *guest, const struct error_context *context)
{
	int status = reuse_check_crowd(device, TENSOR_PLACE(guest), context);
	if (status)
		return status;
	if (overlap_enter(device, guest))
		return -ENOMEM;
	status = check_meetings(device, guest, context);
	if (status)
		overlap_leave(device, guest);
	return status;
}

static int enter_host(struct device *device, struct tensor *host, const struct error_context *context)
{
	uint64_t from = arena_from(host);
	int status = arena_reserve(device->arena, from, arena_to(host) - from, host);
	if (status > 0)
		return refuse(context, "another tensor has bytes of it");
	return status;
}

static int enter_root(struct device *device, struct tensor *tensor, bool is_guest,
		      const struct error_context *context)
{
	int status = is_guest ? enter_guest(device, tensor, context) : enter_host(device, tensor, context);
	if (status)
		return status;
	totals_add(&device->totals, &device->options.geometry, tensor, 1);
	overlap_count_immovable(device, tensor);
	device->n_tensors++;
	device->n_changes++;
	return 0;
}

/* ---- views ---- */

/* Where the slice lies that a view is, or was made from. */
static int place_range(const struct device *device, const struct npumem_place *root,
		       const struct tensor_range *range, struct npumem_place *place,
		       const struct error_context *context)
{
	struct device_slice slice = {range->from, range->to};
	if (range->from.n < 0 || range->from.n >= root->words_n || range->to.n < 0 || range->to.n > root->words_n)
		return refuse(context, "it is not a slice of its base");
	slice.from.n *= root->lanes;
	slice.to.n = range->to.n == root->words_n ? root->shape.n : range->to.n * root->lanes;
	return view_slice_place(&device->options.geometry, root, &slice, place, context);
}

/* Puts another shape into *place, which is the slice's, where all of its data is data of that one. */
static int place_reshaped(const struct device *device, const struct npumem_place *root,
			  const struct device_saved *saved, struct npumem_place *place,
			  const struct error_context *context)
{
	const struct npumem_geometry *geometry = &device->options.geometry;
	const struct npumem_spec spec = {.dtype = root->dtype,
					 .frac_bits = root->frac_bits,
					 .layout = NPUMEM_STRIDED,
					 .mode = root->mode,
					 .shape = saved->shape,
					 .stride = saved->stride,
					 .start_npu = saved->start_npu,
					 .address = NPUMEM_ANY};
	struct npumem_place slice = *place, strided;
	struct intersect_range range;
	int status = npumem_place_resolve(geometry, &spec, &strided, context->error);
	if (status)
		return status;
	if (saved->start_npu < 0 || saved->address < 0 || saved->address > geometry->npu_bytes)
		return refuse(context, "it is not where its base is");
	place->layout = NPUMEM_STRIDED;
	place->rows = place->cols = place->w = 0;
	place->shape = saved->shape;
	place->last_w = saved->shape.w;
	place->stride = saved->stride;
	place->start_npu = saved->start_npu;
	place->offset = root->offset + saved->address;
	view_settle(geometry, place);
	if (place->offset < slice.offset || place_end(place) > place_end(&slice) ||
	    intersect_first(geometry, place, KINDS_DATA, &slice, NPUMEM_BYTE_PADDING | NPUMEM_BYTE_EMPTY, &range))
		return refuse(context, "it leaves what it was made from");
	return 0;
}

static int place_view(const struct device *device, const struct device_saved *saved, struct npumem_place *place,
		      const struct error_context *context)
{
	const struct tensor *root = device_find(device, saved->base);
	if (!root || root->base)
		return refuse(context, "it is a view of nothing");
	int status = place_range(device, TENSOR_PLACE(root), &saved->range, place, context);
	if (!status && saved->is_reshaped)
		status = place_reshaped(device, TENSOR_PLACE(root), saved, place, context);
	if (!status && saved->frac_bits != place->frac_bits) {
		status = view_check_format(place->dtype, saved->frac_bits, context);
		place->frac_bits = saved->frac_bits;
	}
	return status;
}

/* ---- both ---- */

static void fill(struct device *device, const struct device_saved *saved, const struct npumem_place *place,
		 struct tensor *tensor)
{
	tensor_set_place(tensor, place);
	tensor->base = device_find(device, saved->base);
	tensor->reuse = tensor->base ? tensor->base->reuse : saved->reuse;
	tensor->sealed = saved->is_sealed;
	tensor->dma_only = saved->is_dma_only;
	tensor->pinned = saved->is_pinned;
	if (tensor->base)
		tensor_set_range(tensor, &saved->range);
	tensor->is_reshaped = saved->is_reshaped;
	/* What was written is found out when it is asked for. */
	tensor->touched = !tensor->base;
}

static int enter(struct device *device, const struct device_saved *saved, struct tensor *tensor,
		 const struct error_context *context)
{
	struct device_saved again;
	device_describe(device, tensor, &again);
	/* It is a guest when it has entered. */
	again.is_guest = !tensor->base && saved->is_guest;
	if (memcmp(&again, saved, sizeof(again)) || saved->reuse < NPUMEM_NEVER || saved->reuse > NPUMEM_UNCHECKED)
		return refuse(context, "no tensor is described like this");
	if (!tensor->base)
		return enter_root(device, tensor, saved->is_guest, context);
	view_join(device, tensor, tensor->base);
	return 0;
}

int device_restore(struct device *device, const struct device_saved *saved, struct tensor **tensor,
		   const struct error_context *context)
{
	struct npumem_place place;
	if (!table_can_put(device, saved->handle))
		return refuse(context, "its handle cannot be given to it");
	int status = saved->base ? place_view(device, saved, &place, context)
				 : place_root(device, saved, &place, context);
	if (status)
		return status;
	struct tensor *restored = table_put(device, saved->handle);
	if (!restored)
		return -ENOMEM;
	fill(device, saved, &place, restored);
	status = enter(device, saved, restored, context);
	if (status)
		table_take_back(restored);
	else
		*tensor = restored;
	return status;
}

/* ---- the bytes ---- */

struct scrub {
	const struct device *device;
	int64_t npu, offset;
	unsigned n_words;
	uint64_t keep[KIND_MASK_WORDS];
};

static bool keep_data(void *ctx, struct tensor *tensor)
{
	struct scrub *scrub = ctx;
	struct kind_mask mask;
	uint64_t bits[KIND_MASK_WORDS];
	kind_mask_init(&mask, &scrub->device->options.geometry, TENSOR_PLACE(tensor), tensor_offset(tensor),
		       scrub->npu, KINDS_DATA);
	kind_mask_bits(&mask, scrub->offset, scrub->n_words, bits);
	for (unsigned i = 0; i < scrub->n_words; i++)
		scrub->keep[i] |= bits[i];
	return true;
}

static void scrub_npu(struct device *device, int64_t npu)
{
	const int64_t end = device->options.geometry.npu_bytes;
	for (int64_t offset = 0, bytes; offset < end; offset += bytes) {
		bytes = end - offset < 64 * KIND_MASK_WORDS ? end - offset : 64 * KIND_MASK_WORDS;
		struct scrub scrub = {device, npu, offset, (unsigned)(bytes / 64), {0}};
		overlap_each(device, offset, bytes, NULL, keep_data, &scrub);
		local_scrub(&device->local, npu, offset, scrub.n_words, scrub.keep);
		changes_made(device, npu, offset, bytes);
	}
}

static bool has_marks(const uint64_t *marks, const struct arena_extent *extent)
{
	return bits_first_not(marks, false, extent->offset, extent->bytes) < extent->offset + extent->bytes;
}

/* What is marked in free room was left by a tensor that is gone. Only the marks are looked at. */
static void clear_free(struct device *device, const struct arena_extent *extent)
{
	struct local *local = &device->local;
	for (int64_t npu = 0; npu < device->options.geometry.n_npus; npu++) {
		if (!has_marks(local_written(local, npu), extent) &&
		    !(local->kept->may_be_damaged && has_marks(local_damaged(local, npu), extent)))
			continue;
		local_forget_moved(local, npu, (int64_t)extent->offset, (int64_t)extent->bytes);
		changes_made(device, npu, (int64_t)extent->offset, (int64_t)extent->bytes);
	}
}

static void clear_all_free(struct device *device)
{
	struct arena_extent extent;
	for (uint64_t at = 0; arena_at(device->arena, at, &extent); at = extent.offset + extent.bytes)
		if (!extent.taken)
			clear_free(device, &extent);
}

void device_restore_end(struct device *device, bool scrub)
{
	overlap_settle_all(device);
	move_bytes_restore(device, scrub);
	clear_all_free(device);
	for (int64_t npu = 0; scrub && npu < device->options.geometry.n_npus; npu++)
		scrub_npu(device, npu);
	local_recount(&device->local);
}
