/* Views: a slice, another shape or another format of a tensor's own bytes. A view keeps its base's words and
 * strides; what it changes is where it starts, how far it goes and, for a reshape, how H and W (and N, with one
 * channel) divide. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <utlist.h>

#include "daemon/device/internal.h"
#include "daemon/device/tensors/table.h"
#include "daemon/device/tensors/view.h"

static int refuse(const struct error_context *context, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
static int refuse(const struct error_context *context, const char *format, ...)
{
	char text[NPUMEM_MESSAGE_BYTES];
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	return npumem_error_set(context->error, NPUMEM_INVALID, "%s", text);
}

/* Bytes from the first word to the end of the last one, on an NPU that has all block rows. */
static int64_t extent_bytes(const struct npumem_place *place)
{
	const struct npumem_dims *stride = &place->stride;
	return (1 + (place->words_n - 1) * stride->n + (place->channels_per_npu - 1) * stride->c +
		(place->shape.h - 1) * stride->h + (place->shape.w - 1) * stride->w) *
	       place->word_bytes;
}

void view_settle(const struct npumem_geometry *geometry, struct npumem_place *place)
{
	place->words_n = (place->shape.n + place->lanes - 1) / place->lanes;
	place->channels_per_npu = npumem_channels_per_npu(geometry->n_npus, place->start_npu, place->shape.c);
	place->bytes_per_npu = extent_bytes(place);
	place->npu = place->start_npu;
	place->address = place->start_npu * geometry->npu_bytes + place->offset;
	place->align_bytes = place->word_bytes;
	int64_t element = place->word_bytes / place->lanes;
	int64_t features = ((place->shape.c - 1) * place->shape.w + place->last_w) * place->shape.h;
	place->blocks = (struct npumem_blocks){
		.data = place->shape.n * features * element,
		.dummy = (place->words_n * place->lanes - place->shape.n) * features * element,
	};
}

void view_join(struct device *device, struct tensor *view, struct tensor *root)
{
	view->base = root;
	view->reuse = root->reuse;
	DL_PREPEND2(root->first_view, view, prev_view, next_view);
	device->n_views++;
}

static int add_view(struct device *device, struct tensor *of, const struct npumem_place *place,
		    const struct tensor_range *range, struct tensor **out, const struct error_context *context)
{
	struct tensor *view = table_add(device);
	if (!view)
		return heap_exhausted(context->error);
	tensor_set_place(view, place);
	tensor_set_range(view, range);
	view->is_reshaped = of->is_reshaped;
	view_join(device, view, tensor_root(of));
	*out = view;
	return 0;
}

static int check_range(char dim, int64_t from, int64_t to, int64_t extent, const struct error_context *context)
{
	if (from < 0 || to > extent || from >= to)
		return refuse(context, "slice %c %" PRId64 ":%" PRId64 " is not a range within 0:%" PRId64, dim,
			      from, to, extent);
	return 0;
}

static int check_slice(const struct npumem_place *place, const struct device_slice *slice,
		       const struct error_context *context)
{
	const struct npumem_dims *from = &slice->from, *to = &slice->to, *shape = &place->shape;
	int status = check_range('n', from->n, to->n, shape->n, context);
	if (!status)
		status = check_range('c', from->c, to->c, shape->c, context);
	if (!status)
		status = check_range('h', from->h, to->h, shape->h, context);
	if (!status)
		status = check_range('w', from->w, to->w, shape->w, context);
	if (status)
		return status;
	if (from->n % place->lanes || (to->n % place->lanes && to->n != shape->n))
		return refuse(context,
			      "slice n %" PRId64 ":%" PRId64 " cuts a word of %" PRId64
			      " packed elements: both ends must be multiples of %" PRId64,
			      from->n, to->n, place->lanes, place->lanes);
	bool whole_rows = from->w == 0 && to->w == shape->w;
	if (to->c == shape->c && !whole_rows && to->w > place->last_w)
		return refuse(context,
			      "slice w %" PRId64 ":%" PRId64 " goes past the %" PRId64
			      " columns of the matrix's last channel",
			      from->w, to->w, place->last_w);
	return 0;
}

/* A slice's own part of what its base reaches. */
static struct tensor_range range_of_slice(const struct tensor *base, const struct device_slice *slice)
{
	struct tensor_range whole = tensor_range(base), range = whole;
	const struct npumem_dims *from = &slice->from, *to = &slice->to;
	int64_t packed = base->packed.lanes;
	if (base->is_reshaped)
		return whole;
	range.from.n += from->n / packed;
	range.from.c += from->c;
	range.from.h += from->h;
	range.from.w += from->w;
	range.to = (struct npumem_dims){whole.from.n + (to->n + packed - 1) / packed, whole.from.c + to->c,
					whole.from.h + to->h, whole.from.w + to->w};
	return range;
}

int view_slice_place(const struct npumem_geometry *geometry, const struct npumem_place *base,
		     const struct device_slice *slice, struct npumem_place *out,
		     const struct error_context *context)
{
	struct npumem_place place = *base;
	const struct npumem_dims *from = &slice->from, *to = &slice->to;
	int status = check_slice(&place, slice, context);
	if (status)
		return status;
	int64_t channel = place.start_npu + from->c;
	bool whole_rows = from->w == 0 && to->w == place.shape.w;
	bool has_tail = to->c == place.shape.c && place.last_w < place.shape.w;
	place.offset += (from->n / place.lanes * place.stride.n + channel / geometry->n_npus * place.stride.c +
			 from->h * place.stride.h + from->w * place.stride.w) *
			place.word_bytes;
	place.start_npu = channel % geometry->n_npus;
	place.shape = (struct npumem_dims){to->n - from->n, to->c - from->c, to->h - from->h, to->w - from->w};
	place.last_w = whole_rows && has_tail ? place.last_w : place.shape.w;
	/* Whole channels of a matrix are a matrix again; with part of their columns they are not, since the
	 * columns no longer follow each other. */
	if (place.layout == NPUMEM_MATRIX && whole_rows) {
		place.rows = place.shape.n;
		place.cols = (place.shape.c - 1) * place.w + place.last_w;
	} else {
		place.layout = NPUMEM_STRIDED;
		place.rows = place.cols = place.w = 0;
	}
	view_settle(geometry, &place);
	*out = place;
	return 0;
}

int device_view_slice(struct device *device, struct tensor *base, const struct device_slice *slice,
		      struct tensor **view, const struct error_context *context)
{
	struct npumem_place place;
	int status = view_slice_place(&device->options.geometry, TENSOR_PLACE(base), slice, &place, context);
	if (status)
		return status;
	struct tensor_range range = range_of_slice(base, slice);
	return add_view(device, base, &place, &range, view, context);
}

/* ---- another format ---- */

int view_check_format(int dtype, int64_t frac_bits, const struct error_context *context)
{
	if (!npumem_dtype_is_fixed(dtype))
		return refuse(context, "%s has no frac_bits", npumem_dtype_name(dtype));
	if (frac_bits < 0 || frac_bits > NPUMEM_FRAC_BITS_MAX)
		return refuse(context, "frac_bits is %" PRId64 ", but must be 0 to %d", frac_bits,
			      NPUMEM_FRAC_BITS_MAX);
	return 0;
}

int device_view_format(struct device *device, struct tensor *base, int64_t frac_bits, struct tensor **view,
		       const struct error_context *context)
{
	struct npumem_place place = tensor_place(base);
	struct tensor_range range = tensor_range(base);
	int status = view_check_format(place.dtype, frac_bits, context);
	if (status)
		return status;
	place.frac_bits = frac_bits;
	if (place.layout != NPUMEM_MATRIX) {
		place.layout = NPUMEM_STRIDED;
		place.w = 0;
	}
	view_settle(&device->options.geometry, &place);
	return add_view(device, base, &place, &range, view, context);
}

/* ---- another shape ---- */

struct axes {
	int64_t extent[3], stride[3];
	unsigned n;
};

static void axes_add(struct axes *axes, int64_t extent, int64_t stride)
{
	axes->extent[axes->n] = extent;
	axes->stride[axes->n++] = stride;
}

/* An axis that is there; one of extent 1 leads nowhere, whatever its stride. */
static void axes_add_old(struct axes *axes, int64_t extent, int64_t stride)
{
	if (extent > 1)
		axes_add(axes, extent, stride);
}

/* Finds strides for `to` that walk the elements of `from` in the same order: groups of axes with equal products
 * are matched, and within a group the old axes must follow each other without gaps. False where they do not. */
static bool axes_reshape(const struct axes *from, struct axes *to)
{
	unsigned i = 0, j = 0;
	while (i < from->n && j < to->n) {
		unsigned i_end = i + 1, j_end = j + 1;
		int64_t a = from->extent[i], b = to->extent[j];
		while (a != b) {
			if (a < b)
				a *= from->extent[i_end++];
			else
				b *= to->extent[j_end++];
		}
		for (unsigned k = i + 1; k < i_end; k++)
			if (from->stride[k - 1] != from->extent[k] * from->stride[k])
				return false;
		to->stride[j_end - 1] = from->stride[i_end - 1];
		for (unsigned k = j_end - 1; k > j; k--)
			to->stride[k - 1] = to->stride[k] * to->extent[k];
		i = i_end;
		j = j_end;
	}
	for (; j < to->n; j++)
		to->stride[j] = j ? to->stride[j - 1] : 1;
	return true;
}

/* The product of a shape's extents, all positive; -1 where it is not or overflows. */
static int64_t elements_of(const struct npumem_dims *shape)
{
	int64_t product;
	if (shape->n <= 0 || shape->c <= 0 || shape->h <= 0 || shape->w <= 0 ||
	    __builtin_mul_overflow(shape->n, shape->c, &product) ||
	    __builtin_mul_overflow(product, shape->h, &product) ||
	    __builtin_mul_overflow(product, shape->w, &product))
		return -1;
	return product;
}

static int check_reshape(const struct npumem_place *place, const struct npumem_dims *shape,
			 const struct error_context *context)
{
	if (place->last_w != place->shape.w)
		return refuse(context,
			      "a matrix whose last channel has %" PRId64 " columns and the others %" PRId64
			      " has no other shape",
			      place->last_w, place->shape.w);
	if (elements_of(shape) != npumem_place_elements(place))
		return refuse(context,
			      "shape %" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRId64
			      " does not hold the same %" PRId64 " elements",
			      shape->n, shape->c, shape->h, shape->w, npumem_place_elements(place));
	if (shape->c != place->shape.c)
		return refuse(context,
			      "shape has %" PRId64 " channels, the tensor %" PRId64
			      ": channels lie on different NPUs and cannot become another dimension",
			      shape->c, place->shape.c);
	if (shape->n != place->shape.n && (place->shape.c != 1 || place->lanes != 1))
		return refuse(context,
			      "shape has N %" PRId64 ", the tensor %" PRId64
			      ": N can only change with one channel and without a packed mode",
			      shape->n, place->shape.n);
	return 0;
}

int device_view_reshape(struct device *device, struct tensor *base, const struct npumem_dims *shape,
			struct tensor **view, const struct error_context *context)
{
	struct npumem_place place = tensor_place(base);
	struct axes from = {.n = 0}, to = {.n = 0};
	int status = check_reshape(&place, shape, context);
	if (status)
		return status;
	bool with_n = shape->n != place.shape.n;
	if (with_n) {
		axes_add_old(&from, place.shape.n, place.stride.n);
		axes_add(&to, shape->n, 0);
	}
	axes_add_old(&from, place.shape.h, place.stride.h);
	axes_add_old(&from, place.shape.w, place.stride.w);
	axes_add(&to, shape->h, 0);
	axes_add(&to, shape->w, 0);
	if (!axes_reshape(&from, &to))
		return refuse(context,
			      "shape %" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRId64
			      " would need strides that the tensor's gaps do not allow",
			      shape->n, shape->c, shape->h, shape->w);
	if (with_n)
		place.stride.n = to.stride[0];
	place.stride.h = to.stride[to.n - 2];
	place.stride.w = to.stride[to.n - 1];
	place.shape = *shape;
	place.last_w = shape->w;
	place.layout = NPUMEM_STRIDED;
	place.rows = place.cols = place.w = 0;
	view_settle(&device->options.geometry, &place);
	struct tensor_range range = tensor_range(base);
	status = add_view(device, base, &place, &range, view, context);
	if (!status)
		(*view)->is_reshaped = true;
	return status;
}
