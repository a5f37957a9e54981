/* Slices and other shapes of a tensor's own bytes: which there are, why the others are refused, and that whatever
 * is done through them is done to the base. */
#include "daemon/device/internal.h"
#include "tests/unit/daemon/device/rig.h"

FIXTURE_OBJECT(struct rig, rig, rig_open(&rig, 4, 4096), rig_close(&rig))

static struct device_slice slice_of(int64_t n0, int64_t n1, int64_t c0, int64_t c1, int64_t h0, int64_t h1,
				    int64_t w0, int64_t w1)
{
	return (struct device_slice){{n0, c0, h0, w0}, {n1, c1, h1, w1}};
}

static struct tensor *slice(struct tensor *base, struct device_slice s)
{
	struct tensor *view = NULL;
	npumem_error_clear(&rig.error);
	int status = device_view_slice(rig.device, base, &s, &view, &rig.context);
	ck_assert_msg(status == 0, "refused: %s", rig.error.message);
	rig_sound(&rig);
	return view;
}

static void slice_refused(struct tensor *base, struct device_slice s, const char *part)
{
	struct tensor *view;
	struct device_counts before, after;
	device_stat(rig.device, &before);
	npumem_error_clear(&rig.error);
	rig_fails(&rig, device_view_slice(rig.device, base, &s, &view, &rig.context), NPUMEM_INVALID, part);
	device_stat(rig.device, &after);
	ck_assert_int_eq(memcmp(&before, &after, sizeof(before)), 0);
}

static struct tensor *reshape(struct tensor *base, int64_t n, int64_t c, int64_t h, int64_t w)
{
	struct tensor *view = NULL;
	npumem_error_clear(&rig.error);
	int status = device_view_reshape(rig.device, base, &(struct npumem_dims){n, c, h, w}, &view, &rig.context);
	ck_assert_msg(status == 0, "refused: %s", rig.error.message);
	rig_sound(&rig);
	return view;
}

static void reshape_refused(struct tensor *base, int64_t n, int64_t c, int64_t h, int64_t w, const char *part)
{
	struct tensor *view;
	npumem_error_clear(&rig.error);
	ck_assert_int_eq(
		device_view_reshape(rig.device, base, &(struct npumem_dims){n, c, h, w}, &view, &rig.context),
		NPUMEM_INVALID);
	rig_said(&rig, NPUMEM_INVALID, part);
	rig_sound(&rig);
}

/* A tensor whose element i is i. */
static struct tensor *counted(int layout, int mode, int64_t n, int64_t c, int64_t h, int64_t w)
{
	struct device_request request = rig_request(NPUMEM_FX8, n, c, h, w);
	request.spec.layout = layout;
	request.spec.mode = mode;
	request.spec.start_npu = 2;
	if (layout == NPUMEM_STRIDED)
		request.spec.stride = (struct npumem_dims){4 * h * w * (c / 4 + 2), 2 * h * w + 3, 2 * w + 1, 2};
	struct tensor *tensor = rig_place(&rig, &request);
	uint8_t *ramp = rig_ramp(n * c * h * w, 0);
	ck_assert_int_eq(rig_write(&rig, tensor, ramp), 0);
	free(ramp);
	return tensor;
}

/* Reads a view, whose elements must be those of `s` of a base of shape n, 6, 3, 5 whose element i is i. */
static void reads_as(struct tensor *view, struct device_slice s)
{
	uint8_t bytes[1024];
	int64_t i = 0;
	ck_assert_int_eq(rig_read(&rig, view, bytes), 0);
	for (int64_t n = s.from.n; n < s.to.n; n++)
		for (int64_t c = s.from.c; c < s.to.c; c++)
			for (int64_t h = s.from.h; h < s.to.h; h++)
				for (int64_t w = s.from.w; w < s.to.w; w++)
					ck_assert_int_eq(bytes[i++], (uint8_t)(((n * 6 + c) * 3 + h) * 5 + w));
	ck_assert_int_eq(i, rig_bytes(view));
}

static const struct {
	int layout, mode;
} kinds[] = {{NPUMEM_ALIGNED, NPUMEM_MODE_PLAIN},
	     {NPUMEM_COMPACT, NPUMEM_MODE_PLAIN},
	     {NPUMEM_STRIDED, NPUMEM_MODE_PLAIN},
	     {NPUMEM_ALIGNED, NPUMEM_MODE_4N},
	     {NPUMEM_STRIDED, NPUMEM_MODE_4N}};

TEST(every_dimension, .to = sizeof(kinds) / sizeof(kinds[0]))
{
	struct tensor *base = counted(kinds[_i].layout, kinds[_i].mode, 6, 6, 3, 5);
	const struct device_slice slices[] = {
		slice_of(0, 6, 0, 6, 0, 3, 0, 5), slice_of(4, 6, 0, 6, 0, 3, 0, 5),
		slice_of(0, 4, 0, 6, 0, 3, 0, 5), slice_of(0, 6, 1, 6, 0, 3, 0, 5),
		slice_of(0, 6, 2, 4, 0, 3, 0, 5), slice_of(0, 6, 5, 6, 0, 3, 0, 5),
		slice_of(0, 6, 0, 6, 1, 2, 0, 5), slice_of(0, 6, 0, 6, 0, 3, 2, 4),
		slice_of(4, 6, 3, 5, 1, 3, 4, 5),
	};
	for (unsigned i = 0; i < sizeof(slices) / sizeof(slices[0]); i++) {
		struct tensor *view = slice(base, slices[i]);
		ck_assert_ptr_eq(view->base, base);
		reads_as(view, slices[i]);
		int64_t elements = rig_bytes(view);
		ck_assert_int_eq(tensor_place(view).blocks.data, elements);
		ck_assert_int_eq(tensor_place(view).blocks.empty + tensor_place(view).blocks.padding, 0);
	}
	/* A view of a view counts from the view. */
	struct tensor *outer = slice(base, slice_of(4, 6, 1, 6, 0, 3, 1, 5));
	struct tensor *inner = slice(outer, slice_of(0, 2, 2, 4, 1, 3, 0, 2));
	reads_as(inner, slice_of(4, 6, 3, 5, 1, 3, 1, 3));
	ck_assert_ptr_eq(inner->base, base);
	/* What is written through it is the base's, and nothing else is. */
	uint8_t bytes[1024];
	ck_assert_int_eq(rig_fill(&rig, inner, 99), 0);
	ck_assert_int_eq(rig_read(&rig, base, bytes), 0);
	for (int64_t i = 0; i < 6 * 6 * 3 * 5; i++) {
		int64_t n = i / 90, c = i / 15 % 6, h = i / 5 % 3, w = i % 5;
		bool inside = n >= 4 && c >= 3 && c < 5 && h >= 1 && w >= 1 && w < 3;
		ck_assert_int_eq(bytes[i], inside ? 99 : (uint8_t)i);
	}
	rig_release(&rig, outer);
	rig_sound(&rig);
	reads_as(slice(base, slice_of(0, 4, 0, 1, 0, 3, 0, 5)), slice_of(0, 4, 0, 1, 0, 3, 0, 5));
}

TEST(bad_slices)
{
	struct tensor *base = counted(NPUMEM_ALIGNED, NPUMEM_MODE_4N, 6, 6, 3, 5);
	slice_refused(base, slice_of(0, 7, 0, 6, 0, 3, 0, 5), "slice n 0:7 is not a range within 0:6");
	slice_refused(base, slice_of(0, 6, -1, 6, 0, 3, 0, 5), "slice c -1:6 is not a range within 0:6");
	slice_refused(base, slice_of(0, 6, 0, 6, 2, 2, 0, 5), "slice h 2:2 is not a range within 0:3");
	slice_refused(base, slice_of(0, 6, 0, 6, 0, 3, 5, 6), "slice w 5:6 is not a range within 0:5");
	slice_refused(base, slice_of(0, 6, 0, 6, 0, 3, 4, INT64_MAX), "within 0:5");
	slice_refused(base, slice_of(2, 6, 0, 6, 0, 3, 0, 5),
		      "slice n 2:6 cuts a word of 4 packed elements: both ends must be multiples of 4");
	slice_refused(base, slice_of(4, 5, 0, 6, 0, 3, 0, 5), "slice n 4:5 cuts a word");
	slice_refused(base, slice_of(0, 5, 0, 6, 0, 3, 0, 5), "slice n 0:5 cuts a word");
}

/* 3 rows of 22 columns, 5 a channel: five channels on four NPUs, the last one of 2 columns. */
TEST(matrix_slices)
{
	uint8_t bytes[66], ramp[66];
	struct device_request request = rig_matrix(NPUMEM_FX8, 3, 22, 5);
	struct tensor *base = rig_place(&rig, &request);
	for (int i = 0; i < 66; i++)
		ramp[i] = (uint8_t)i;
	ck_assert_int_eq(rig_write(&rig, base, ramp), 0);
	/* Whole channels are a matrix again, */
	struct tensor *view = slice(base, slice_of(1, 3, 2, 5, 0, 1, 0, 5));
	ck_assert_int_eq(tensor_place(view).layout, NPUMEM_MATRIX);
	ck_assert_int_eq(tensor_place(view).rows, 2);
	ck_assert_int_eq(tensor_place(view).cols, 12);
	ck_assert_int_eq(rig_read(&rig, view, bytes), 0);
	for (int i = 0; i < 24; i++)
		ck_assert_int_eq(bytes[i], 22 * (1 + i / 12) + 10 + i % 12);
	view = slice(base, slice_of(0, 3, 4, 5, 0, 1, 0, 5));
	ck_assert_int_eq(tensor_place(view).cols, 2);
	ck_assert_int_eq(rig_read(&rig, view, bytes), 0);
	for (int i = 0; i < 6; i++)
		ck_assert_int_eq(bytes[i], 22 * (i / 2) + 20 + i % 2);
	/* parts of channels are not. */
	view = slice(base, slice_of(0, 3, 0, 4, 0, 1, 3, 5));
	ck_assert_int_eq(tensor_place(view).layout, NPUMEM_STRIDED);
	ck_assert_int_eq(rig_read(&rig, view, bytes), 0);
	for (int i = 0; i < 24; i++)
		ck_assert_int_eq(bytes[i], 22 * (i / 8) + 5 * (i / 2 % 4) + 3 + i % 2);
	slice(base, slice_of(0, 3, 0, 5, 0, 1, 0, 2));
	slice_refused(base, slice_of(0, 3, 0, 5, 0, 1, 0, 3), "slice w 0:3 goes past the 2 columns");
	slice_refused(base, slice_of(0, 3, 3, 5, 0, 1, 1, 5),
		      "slice w 1:5 goes past the 2 columns of the matrix's last channel");
	reshape_refused(base, 66, 1, 1, 1,
			"a matrix whose last channel has 2 columns and the others 5 has no other shape");
}

TEST(other_shapes)
{
	uint8_t bytes[240];
	struct tensor *base = counted(NPUMEM_ALIGNED, NPUMEM_MODE_PLAIN, 2, 6, 4, 5);
	static const int64_t good[][2] = {{20, 1}, {1, 20}, {2, 10}, {5, 4}, {4, 5}};
	for (unsigned i = 0; i < 5; i++) {
		struct tensor *view = reshape(base, 2, 6, good[i][0], good[i][1]);
		ck_assert_int_eq(rig_read(&rig, view, bytes), 0);
		for (int k = 0; k < 240; k++)
			ck_assert_int_eq(bytes[k], k);
	}
	reshape_refused(base, 2, 6, 4, 4, "shape 2,6,4,4 does not hold the same 240 elements");
	reshape_refused(base, 0, 6, 4, 5, "shape 0,6,4,5 does not hold");
	reshape_refused(base, -2, -6, 4, 5, "does not hold");
	reshape_refused(base, INT64_MAX, 6, 4, 5, "does not hold");
	reshape_refused(base, 2, 3, 8, 5, "shape has 3 channels, the tensor 6");
	reshape_refused(base, 4, 6, 2, 5, "shape has N 4, the tensor 2: N can only change with one channel");
	/* Rows with a gap between them cannot be joined, but taken apart. */
	struct tensor *part = slice(base, slice_of(0, 2, 0, 6, 0, 4, 1, 5));
	reshape_refused(part, 2, 6, 2, 8, "shape 2,6,2,8 would need strides that the tensor's gaps do not allow");
	reshape_refused(part, 2, 6, 8, 2, "do not allow");
	part = slice(base, slice_of(0, 2, 0, 6, 1, 2, 1, 5));
	ck_assert_int_eq(rig_read(&rig, reshape(part, 2, 6, 2, 2), bytes), 0);
	for (int k = 0; k < 48; k++)
		ck_assert_int_eq(bytes[k], k / 4 * 20 + 6 + k % 4);
}

/* What of its root a slice reaches, for the order of operations: of another shape's slice all of it, as its
 * elements lie elsewhere. */
TEST(what_of_its_root_a_view_reaches)
{
	struct tensor *base = counted(NPUMEM_ALIGNED, NPUMEM_MODE_PLAIN, 2, 6, 4, 5);
	const struct tensor_range whole = tensor_range(base);
	struct tensor *outer = slice(base, slice_of(1, 2, 2, 6, 1, 4, 1, 5));
	struct tensor_range range = tensor_range(slice(outer, slice_of(0, 1, 1, 3, 1, 2, 1, 4)));
	ck_assert_mem_eq(&range, &((struct tensor_range){{1, 3, 2, 2}, {2, 5, 3, 5}}), sizeof(range));
	struct tensor *other = reshape(base, 2, 6, 10, 2);
	range = tensor_range(slice(other, slice_of(0, 1, 0, 6, 9, 10, 0, 2)));
	ck_assert_mem_eq(&range, &whole, sizeof(range));
	range = tensor_range(
		slice(slice(other, slice_of(0, 1, 0, 6, 5, 10, 0, 2)), slice_of(0, 1, 0, 6, 4, 5, 0, 2)));
	ck_assert_mem_eq(&range, &whole, sizeof(range));
}

TEST(one_channel_may_trade_batches)
{
	uint8_t bytes[96];
	struct tensor *base = counted(NPUMEM_COMPACT, NPUMEM_MODE_PLAIN, 3, 1, 4, 8);
	/* It starts at NPU 2, so its one channel is in the first block row, and batches follow each other. */
	static const int64_t shapes[][3] = {{1, 1, 96}, {96, 1, 1}, {6, 4, 4}, {2, 6, 8}, {12, 1, 8}};
	for (unsigned i = 0; i < 5; i++) {
		struct tensor *view = reshape(base, shapes[i][0], 1, shapes[i][1], shapes[i][2]);
		ck_assert_int_eq(rig_read(&rig, view, bytes), 0);
		for (int k = 0; k < 96; k++)
			ck_assert_int_eq(bytes[k], k);
	}
	/* Aligned, there is a gap after each batch. */
	base = counted(NPUMEM_ALIGNED, NPUMEM_MODE_PLAIN, 3, 1, 4, 8);
	reshape_refused(base, 1, 1, 1, 96, "do not allow");
	ck_assert_int_eq(rig_read(&rig, reshape(base, 3, 1, 1, 32), bytes), 0);
	base = counted(NPUMEM_COMPACT, NPUMEM_MODE_4N, 8, 1, 2, 2);
	reshape_refused(base, 1, 1, 16, 2, "without a packed mode");
}

/* A stride whose dimension has extent 1 leads nowhere, so its value is no gap. */
TEST(strides_of_nothing)
{
	uint8_t bytes[6];
	struct device_request request = rig_request(NPUMEM_FX8, 2, 1, 1, 3);
	request.spec.layout = NPUMEM_STRIDED;
	request.spec.stride = (struct npumem_dims){3, 77, 50, 1};
	struct tensor *base = rig_place(&rig, &request);
	ck_assert_int_eq(rig_write(&rig, base, "abcdef"), 0);
	struct tensor *view = reshape(base, 1, 1, 1, 6);
	ck_assert_int_eq(rig_read(&rig, view, bytes), 0);
	ck_assert_int_eq(memcmp(bytes, "abcdef", 6), 0);
	reshape(base, 6, 1, 1, 1);
	/* The same elements in the same order are one tensor to a kernel, whatever those strides are. */
	struct tensor *again = reshape(reshape(view, 2, 1, 3, 1), 2, 1, 1, 3);
	ck_assert_int_ne(tensor_place(again).stride.h, tensor_place(base).stride.h);
	ck_assert_int_eq(rig_relu(&rig, base, again), 0);
}

TEST(operands_of_kernels)
{
	uint8_t bytes[540];
	struct tensor *base = counted(NPUMEM_COMPACT, NPUMEM_MODE_PLAIN, 2, 6, 3, 5);
	struct tensor *left = slice(base, slice_of(0, 1, 0, 6, 0, 3, 0, 2));
	struct tensor *right = slice(base, slice_of(0, 1, 0, 6, 0, 3, 3, 5));
	struct tensor *middle = slice(base, slice_of(0, 1, 0, 6, 0, 3, 1, 3));
	left->owner = "left";
	middle->owner = "middle";
	/* From one part of a tensor into another, in place, and not where the parts overlap. */
	ck_assert_int_eq(rig_relu(&rig, left, right), 0);
	ck_assert_int_eq(rig_relu(&rig, left, left), 0);
	ck_assert_int_eq(rig_relu(&rig, left, slice(base, slice_of(0, 1, 0, 6, 0, 3, 0, 2))), 0);
	rig_fails(&rig, rig_relu(&rig, left, middle), NPUMEM_INVALID,
		  "kernel relu: out and in share bytes without being one tensor (NPU 0, bytes ");
	rig_fails(&rig, rig_copy(&rig, middle, left), NPUMEM_INVALID,
		  "source and destination of a copy share bytes: NPU 0, bytes ");
	ck_assert_int_eq(rig_copy(&rig, left, left), NPUMEM_INVALID);
	ck_assert_int_eq(rig_read(&rig, base, bytes), 0);
	for (int i = 0; i < 180; i++)
		ck_assert_int_eq(bytes[i], i < 90 && i % 5 >= 3 ? i - 3 : i);
}

TEST(no_memory)
{
	struct tensor *view;
	struct tensor *base = counted(NPUMEM_ALIGNED, NPUMEM_MODE_PLAIN, 2, 6, 3, 5);
	struct device_slice all = {.to = tensor_place(base).shape};
	struct device_request request = rig_request(NPUMEM_FX8, 1, 1, 1, 8);
	struct tensor *fixed = rig_place(&rig, &request);
	while (rig.device->n_slots % TENSORS_PER_CHUNK)
		slice(base, all);
	struct tensor *last = tensor_views(base);
	scarce_arm(&rig.scarce, 0);
	npumem_error_clear(&rig.error);
	ck_assert_int_eq(device_view_slice(rig.device, base, &all, &view, &rig.context),
			 NPUMEM_RESOURCE_EXHAUSTED);
	rig_said(&rig, NPUMEM_RESOURCE_EXHAUSTED, "out of host memory");
	scarce_arm(&rig.scarce, 0);
	ck_assert_int_eq(device_view_reshape(rig.device, base, &TENSOR_PLACE(base)->shape, &view, &rig.context),
			 NPUMEM_RESOURCE_EXHAUSTED);
	scarce_arm(&rig.scarce, 0);
	ck_assert_int_eq(device_view_format(rig.device, fixed, 7, &view, &rig.context), NPUMEM_RESOURCE_EXHAUSTED);
	ck_assert_ptr_eq(tensor_views(base), last);
	rig_sound(&rig);
	slice(base, all);
}
