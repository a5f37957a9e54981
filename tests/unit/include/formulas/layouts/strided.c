#include <stdio.h>

#include "tests/unit/include/formulas/map.h"
#include "tests/unit/include/formulas/specs.h"

/* The refusal names two elements that the map has on one place. */
static void check_named_pair(const struct npumem_geometry *geometry, const struct npumem_spec *spec,
			     const struct npumem_error *error)
{
	long e[2][4];
	ck_assert_str_eq(error->fields[0].key, "first");
	ck_assert_str_eq(error->fields[1].key, "second");
	struct npumem_spec huge = *spec;
	huge.stride = (struct npumem_dims){1000000, 10000, 100, 1}; /* to have a place to ask */
	struct npumem_geometry roomy = *geometry;
	roomy.npu_bytes = NPUMEM_NPU_BYTES_MAX;
	struct npumem_place place = specs_resolve(&roomy, &huge);
	place.stride = spec->stride;
	int64_t npu[2], offset[2];
	for (unsigned i = 0; i < 2; i++) {
		long *index = e[i];
		ck_assert_int_eq(sscanf(error->fields[i].text, "%ld,%ld,%ld,%ld", &index[0], &index[1], &index[2],
					&index[3]),
				 4);
		ck_assert(index[0] >= 0 && index[0] < spec->shape.n && index[1] >= 0 && index[1] < spec->shape.c);
		ck_assert(index[2] >= 0 && index[2] < spec->shape.h && index[3] >= 0 && index[3] < spec->shape.w);
		npumem_place_locate(geometry, &place, index[0], index[1], index[2], index[3], &npu[i], &offset[i]);
		ck_assert(strstr(error->message, error->fields[i].text));
	}
	ck_assert_int_ne(memcmp(e[0], e[1], sizeof(e[0])), 0);
	ck_assert_int_eq(npu[0], npu[1]);
	ck_assert_int_eq(offset[0], offset[1]);
	ck_assert_int_eq(npumem_error_find(error, "npu", -1), npu[0]);
	ck_assert_int_eq(npumem_error_find(error, "offset", -1), offset[0]);
}

/* Whether two elements meet, by the map: drawn with the strides as given. */
static bool map_collides(const struct npumem_geometry *geometry, const struct npumem_spec *spec)
{
	const int64_t element_bytes = npumem_dtype_bytes(spec->dtype);
	const int64_t lanes = spec->mode == NPUMEM_MODE_4N ? 4 : spec->mode == NPUMEM_MODE_PLAIN ? 1 : 2;
	const struct npumem_dims *shape = &spec->shape, *stride = &spec->stride;
	int64_t rows = 1 + (spec->start_npu + shape->c) / geometry->n_npus;
	struct map_tensor tensor = {
		.start_npu = spec->start_npu,
		.shape = *shape,
		.last_w = shape->w,
		.lanes = lanes,
		.element_bytes = element_bytes,
		.stride = *stride,
		.bytes = (shape->n * stride->n + rows * stride->c + shape->h * stride->h + shape->w * stride->w +
			  1) *
			 lanes * element_bytes,
	};
	struct map map = map_draw(geometry, &tensor);
	bool collided = map.collided;
	map_free(&map);
	return collided;
}

static const int64_t n_npus[] = {1, 2, 3, 4, 5, 8};

/* Refused exactly where two elements meet. */
TEST(collisions, .to = sizeof(n_npus) / sizeof(n_npus[0]))
{
	const struct npumem_geometry geometry = {
		.n_npus = n_npus[_i], .npu_bytes = 1 << 20, .n_banks = 1, .eu_bytes = 128};
	uint64_t state = 31 + (uint64_t)_i;
	unsigned refused = 0, accepted = 0;
	for (unsigned round = 0; round < 1200; round++) {
		struct npumem_spec spec = specs_any(&state, &geometry);
		if (spec.layout != NPUMEM_STRIDED)
			continue;
		struct npumem_place place;
		struct npumem_error error = {0};
		bool refusal = npumem_place_resolve(&geometry, &spec, &place, &error) != 0;
		if (refusal != map_collides(&geometry, &spec))
			ck_abort_msg("round %u: %s", round, refusal ? error.message : "accepted");
		if (refusal)
			check_named_pair(&geometry, &spec, &error);
		refused += refusal;
		accepted += !refusal;
	}
	ck_assert_uint_gt(refused, 30);
	ck_assert_uint_gt(accepted, 30);
}

/* Strides of 0 or less, or too large to multiply. */
TEST(strides)
{
	static const int64_t bad[] = {0, -1, INT64_C(1) << 31, INT64_MAX, INT64_MIN};
	static const char *const names[] = {"stride N is ", "stride C is ", "stride H is ", "stride W is "};
	for (unsigned d = 0; d < 4; d++) {
		for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
			struct npumem_spec spec = specs_tensor(NPUMEM_INT8, 2, 5, 2, 2);
			spec.layout = NPUMEM_STRIDED;
			spec.stride = (struct npumem_dims){100, 50, 10, 1};
			int64_t *values[] = {&spec.stride.n, &spec.stride.c, &spec.stride.h, &spec.stride.w};
			*values[d] = bad[i];
			char part[96];
			snprintf(part, sizeof(part), "%s%ld, which is not in 1..2147483647", names[d],
				 (long)bad[i]);
			specs_refused(&specs_seed, &spec, part);
		}
	}
}

/* One that leads nowhere may be left out, but makes as little sense negative or huge as any other. */
TEST(left_out)
{
	struct npumem_spec spec = specs_tensor(NPUMEM_UINT8, 4, 4, 1, 1);
	spec.layout = NPUMEM_STRIDED;
	spec.mode = NPUMEM_MODE_4N;
	struct npumem_place place = specs_resolve(&specs_seed, &spec);
	specs_stride_eq(&place.stride, 1, 1, 1, 1);
	ck_assert_int_eq(place.bytes_per_npu, 4);
	ck_assert_int_eq(place.blocks.data, 16);
	static const int64_t bad[] = {-1, INT64_C(1) << 31, INT64_MIN};
	for (unsigned i = 0; i < 3; i++) {
		spec.stride.h = bad[i];
		specs_refused(&specs_seed, &spec, "stride H is ");
	}
	spec.stride.h = 0;
	spec.start_npu = 1; /* two block rows: channel 3 is one C stride after nothing, but on another NPU */
	specs_refused(&specs_seed, &spec, "stride C is 0");
	spec.start_npu = 0;
	spec.shape.n = 5;
	specs_refused(&specs_seed, &spec, "stride N is 0");
}

TEST(named)
{
	struct npumem_spec spec = specs_tensor(NPUMEM_FP32, 1, 9, 2, 4);
	spec.layout = NPUMEM_STRIDED;
	spec.start_npu = 2;
	spec.stride = (struct npumem_dims){.n = 1, .c = 6, .h = 100, .w = 3};
	specs_refused(&specs_seed, &spec,
		      "elements 0,0,0,2 and 0,4,0,0 (n,c,h,w) lie at the same place: NPU 2, 24 bytes after the "
		      "tensor's start");
}

/* The extent, in words and rounded up to 4 bytes; the element decides the alignment. */
TEST(extent)
{
	struct npumem_spec spec = specs_tensor(NPUMEM_UINT8, 2, 1, 1, 3);
	spec.layout = NPUMEM_STRIDED;
	spec.stride = (struct npumem_dims){.n = 10, .c = 1, .h = 1, .w = 2};
	spec.address = 1025;
	struct npumem_place place = specs_resolve(&specs_seed, &spec);
	ck_assert_int_eq(place.bytes_per_npu, 16); /* 15 */
	ck_assert_int_eq(place.align_bytes, 1);
	ck_assert_int_eq(place.offset, 1);
	ck_assert_int_eq(place.blocks.data, 6);
	ck_assert_int_eq(place.blocks.empty, 3 * 6);
	ck_assert_int_eq(place.blocks.padding, 4 * 16 - 4 * 6);
}

/* Extents near 2^30, X * S beyond 32 bits: decided at once. */
TEST(large)
{
	const struct npumem_geometry geometry = {
		.n_npus = 1024, .npu_bytes = 1 << 30, .n_banks = 1, .eu_bytes = 128};
	struct npumem_spec spec = specs_tensor(NPUMEM_UINT8, 1, 1024, 16384, 32768);
	spec.layout = NPUMEM_STRIDED;
	spec.stride = (struct npumem_dims){.n = 1, .c = 1, .h = 32768, .w = 1};
	struct npumem_place place = specs_resolve(&geometry, &spec);
	ck_assert_int_eq(place.blocks.data, INT64_C(1024) << 29);
	ck_assert_int_eq(place.blocks.empty, 0);
	spec.start_npu = 1; /* two rows, never on one NPU; row 1 is row 0 moved by one word */
	place = specs_resolve(&geometry, &spec);
	ck_assert_int_eq(place.blocks.empty, 1024);
	spec.stride.h = 32767;
	specs_refused(&geometry, &spec, "elements 0,0,0,32767 and 0,0,1,0 (n,c,h,w) lie at the same place");
	spec.shape = (struct npumem_dims){1 << 20, 1 << 20, 1 << 20, 1 << 20};
	spec.stride = (struct npumem_dims){1, 1, 1, 1};
	specs_refused(&geometry, &spec, "lie at the same place");
}
