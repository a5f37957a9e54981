/* A tensor returns the place that it was given, of every layout and mode, and with the largest numbers. */
#include "daemon/device/tensors/tensor.h"

#include "daemon/device/tensors/view.h"
#include "tests/support/random_place.h"
#include "tests/unit/daemon/device/rig.h"

static void equal_dims(const struct npumem_dims *a, const struct npumem_dims *b)
{
	ck_assert_int_eq(a->n, b->n);
	ck_assert_int_eq(a->c, b->c);
	ck_assert_int_eq(a->h, b->h);
	ck_assert_int_eq(a->w, b->w);
}

static void equal_sizes(const struct npumem_place *a, const struct npumem_place *b)
{
	ck_assert_int_eq(a->last_w, b->last_w);
	ck_assert_int_eq(a->lanes, b->lanes);
	ck_assert_int_eq(a->word_bytes, b->word_bytes);
	ck_assert_int_eq(a->words_n, b->words_n);
	ck_assert_int_eq(a->channels_per_npu, b->channels_per_npu);
	ck_assert_int_eq(a->bytes_per_npu, b->bytes_per_npu);
	ck_assert_int_eq(a->align_bytes, b->align_bytes);
	ck_assert_int_eq(a->blocks.data, b->blocks.data);
	ck_assert_int_eq(a->blocks.dummy, b->blocks.dummy);
	ck_assert_int_eq(a->blocks.padding, b->blocks.padding);
	ck_assert_int_eq(a->blocks.empty, b->blocks.empty);
}

/* Also what is asked for without the place. */
static void equal_parts(const struct tensor *tensor, const struct npumem_place *place)
{
	const struct npumem_blocks *blocks = &place->blocks;
	ck_assert_int_eq(tensor_dtype(tensor), place->dtype);
	ck_assert_int_eq(tensor_lanes(tensor), place->lanes);
	ck_assert_int_eq(tensor_start_npu(tensor), place->start_npu);
	ck_assert_int_eq(tensor_address(tensor), place->address);
	ck_assert_int_eq(tensor_offset(tensor), place->offset);
	ck_assert_int_eq(tensor_bytes_per_npu(tensor), place->bytes_per_npu);
	ck_assert_int_eq(tensor_end(tensor), place->offset + place->bytes_per_npu);
	ck_assert_int_eq(tensor_elements(tensor), npumem_place_elements(place));
	ck_assert_int_eq(tensor_columns(tensor), place->layout == NPUMEM_MATRIX ? place->cols : place->shape.c);
	ck_assert_int_eq(tensor_data_bytes(tensor), blocks->data);
	ck_assert_int_eq(tensor_filled_bytes(tensor), blocks->data + blocks->dummy);
	ck_assert_int_eq(tensor_footprint_bytes(tensor),
			 blocks->data + blocks->dummy + blocks->padding + blocks->empty);
}

static void holds(const struct tensor *tensor, const struct npumem_place *place)
{
	const struct npumem_place found = tensor_place(tensor);
	ck_assert_int_eq(found.dtype, place->dtype);
	ck_assert_int_eq(found.frac_bits, place->frac_bits);
	ck_assert_int_eq(found.layout, place->layout);
	ck_assert_int_eq(found.mode, place->mode);
	equal_dims(&found.shape, &place->shape);
	equal_dims(&found.stride, &place->stride);
	ck_assert_int_eq(found.rows, place->rows);
	ck_assert_int_eq(found.cols, place->cols);
	ck_assert_int_eq(found.w, place->w);
	ck_assert_int_eq(found.start_npu, place->start_npu);
	ck_assert_int_eq(found.address, place->address);
	ck_assert_int_eq(found.npu, place->npu);
	ck_assert_int_eq(found.offset, place->offset);
	equal_sizes(&found, place);
	equal_parts(tensor, place);
}

/* Nowhere, and at the last address where it fits. */
static void keeps(const struct npumem_geometry *geometry, struct npumem_place *place)
{
	struct tensor tensor;
	int64_t last = (geometry->npu_bytes - place->bytes_per_npu) / place->align_bytes * place->align_bytes;
	memset(&tensor, 0xff, sizeof(tensor));
	tensor_set_place(&tensor, place);
	holds(&tensor, place);
	ck_assert_int_eq(npumem_place_at(geometry, place, place->start_npu * geometry->npu_bytes + last, NULL), 0);
	tensor_set_offset(&tensor, geometry->npu_bytes, last);
	holds(&tensor, place);
	place->address = place->npu = place->offset = NPUMEM_ANY;
	tensor_set_nowhere(&tensor);
	holds(&tensor, place);
}

TEST(random_places)
{
	uint64_t random = 11;
	unsigned n = 0;
	for (unsigned i = 0; i < 20000; i++) {
		struct npumem_geometry geometry = {oracle_between(&random, 1, 9), 1 << 16, 4, 64};
		struct npumem_spec spec = random_place_spec(&random, &geometry);
		struct npumem_place place;
		if (npumem_place_resolve(&geometry, &spec, &place, NULL))
			continue;
		keeps(&geometry, &place);
		n++;
	}
	ck_assert_uint_gt(n, 5000);
}

static void largest(struct npumem_spec *spec)
{
	const struct npumem_geometry geometry = {NPUMEM_NPUS_MAX, NPUMEM_NPU_BYTES_MAX, 16, 128};
	struct npumem_place place;
	spec->start_npu = NPUMEM_NPUS_MAX - 1;
	ck_assert_int_eq(npumem_place_resolve(&geometry, spec, &place, NULL), 0);
	keeps(&geometry, &place);
}

/* Each dimension and each stride at its limit, and whole devices of data, of padding and of empty blocks. */
TEST(largest_places)
{
	const struct npumem_dims shapes[] = {{1, INT32_MAX, 1, 1},    {1, 1, 1, 1 << 30}, {1, 1, 1 << 30, 1},
					     {1 << 30, 1, 1, 1},      {1, 1, 1, 1},	  {1, 1 << 10, 1, 1 << 29},
					     {1, 1, 1 << 15, 1 << 15}};
	struct npumem_spec spec;
	for (unsigned i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
		npumem_spec_init(&spec);
		spec.dtype = NPUMEM_FX8;
		spec.frac_bits = NPUMEM_FRAC_BITS_MAX;
		spec.layout = NPUMEM_COMPACT;
		spec.shape = shapes[i];
		largest(&spec);
		spec.mode = shapes[i].w == 1 && shapes[i].n > 1 ? NPUMEM_MODE_4N : NPUMEM_MODE_PLAIN;
		largest(&spec);
	}
	npumem_spec_init(&spec);
	spec.layout = NPUMEM_STRIDED;
	spec.shape = (struct npumem_dims){1, 1, 1, 2};
	spec.stride = (struct npumem_dims){INT32_MAX, INT32_MAX, INT32_MAX, (1 << 30) - 4};
	largest(&spec);
	npumem_spec_init(&spec);
	spec.layout = NPUMEM_MATRIX;
	spec.rows = 1;
	spec.cols = INT32_MAX;
	largest(&spec);
	spec.rows = 1 << 23;
	spec.cols = 7;
	spec.w = 4;
	spec.dtype = NPUMEM_FP32;
	spec.mode = NPUMEM_MODE_2IC;
	largest(&spec);
}

/* A view's place is that of its slice, and its range is what it was given. */
TEST(views)
{
	const struct device_slice slice = {{0, 1, 0, 0}, {2, 8, 1, 7}}, part = {{0, 1, 0, 2}, {1, 3, 1, 5}};
	const struct device_slice *const slices[] = {&slice, &part};
	struct rig rig;
	rig_open(&rig, 4, 4096);
	struct device_request request = rig_matrix(NPUMEM_FX16, 2, 54, 7);
	struct tensor *matrix = rig_place(&rig, &request), *view;
	for (unsigned i = 0; i < 2; i++) {
		struct npumem_place place;
		ck_assert_int_eq(view_slice_place(&rig.options.geometry, TENSOR_PLACE(matrix), slices[i], &place,
						  &rig.context),
				 0);
		ck_assert_int_eq(device_view_slice(rig.device, matrix, slices[i], &view, &rig.context), 0);
		holds(view, &place);
		struct tensor_range range = tensor_range(view);
		equal_dims(&range.from, &slices[i]->from);
		equal_dims(&range.to, &slices[i]->to);
	}
	rig_close(&rig);
}
