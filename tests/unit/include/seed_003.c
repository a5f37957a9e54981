/* Every worked example and figure of the vendor's "Tensor in Local Memory" chapter, with its own numbers, each
 * checked element by element against a map drawn from the text. */
#include "tests/unit/include/formulas/map.h"
#include "tests/unit/include/formulas/specs.h"

/* "340, 1472, 2300 and 3088" */
TEST(address)
{
	static const struct {
		int64_t address, npu, offset;
	} figures[] = {{340, 0, 340}, {1472, 1, 448}, {2300, 2, 252}, {3088, 3, 16}};
	for (unsigned i = 0; i < 4; i++) {
		struct npumem_spec spec = specs_tensor(NPUMEM_FP32, 1, 1, 1, 1);
		spec.layout = NPUMEM_COMPACT;
		spec.address = figures[i].address;
		struct npumem_place place = specs_resolve(&specs_seed, &spec);
		ck_assert_int_eq(place.npu, figures[i].npu);
		ck_assert_int_eq(place.start_npu, figures[i].npu);
		ck_assert_int_eq(place.offset, figures[i].offset);
		ck_assert_int_eq(place.address, figures[i].address);
	}
	struct npumem_spec spec = specs_tensor(NPUMEM_UINT8, 1, 1, 1, 1);
	spec.layout = NPUMEM_COMPACT;
	spec.address = 4 * 1024 - 4; /* the last one that 4 bytes fit at */
	ck_assert_int_eq(specs_resolve(&specs_seed, &spec).npu, 3);
	spec.address = 4 * 1024;
	specs_refused(&specs_seed, &spec, "address 4096 is not below the 4096 bytes");
}

static struct npumem_place scatter(int64_t x, int64_t c, int64_t start_npu)
{
	struct npumem_geometry geometry = specs_seed;
	geometry.n_npus = x;
	struct npumem_spec spec = specs_tensor(NPUMEM_FP32, 2, c, 1, 1);
	spec.start_npu = start_npu;
	struct npumem_place place = specs_resolve(&geometry, &spec);
	map_check(&geometry, &place, true);
	return place;
}

static int64_t npu_of(int64_t x, const struct npumem_place *place, int64_t n, int64_t c)
{
	struct npumem_geometry geometry = specs_seed;
	geometry.n_npus = x;
	int64_t npu, offset;
	npumem_place_locate(&geometry, place, n, c, 0, 0, &npu, &offset);
	return npu;
}

static const int64_t scatter_npus[] = {2, 3, 4, 7, 64, 1024};

/* scatter_0: C = X - 1 from NPU 0; scatter_1: from NPU 1. */
TEST(scatter_one_row, .to = sizeof(scatter_npus) / sizeof(scatter_npus[0]))
{
	const int64_t x = scatter_npus[_i];
	struct npumem_place place = scatter(x, x - 1, 0);
	ck_assert_int_eq(place.channels_per_npu, 1);
	ck_assert_int_eq(npu_of(x, &place, 0, x - 2), x - 2);
	ck_assert_int_eq(npu_of(x, &place, 1, 0), 0); /* "instead, it is in NPU 0" */
	ck_assert_int_eq(place.blocks.empty, 2 * 128);

	place = scatter(x, x - 1, 1);
	ck_assert_int_eq(place.channels_per_npu, 1);
	ck_assert_int_eq(npu_of(x, &place, 0, 0), 1);
	ck_assert_int_eq(npu_of(x, &place, 1, x - 2), x - 1);
	ck_assert_int_eq(place.blocks.empty, 2 * 128);
}

/* scatter_2: C = X + 2 from NPU 0; scatter_3: from NPU X - 1. */
TEST(scatter_more_rows, .to = sizeof(scatter_npus) / sizeof(scatter_npus[0]))
{
	const int64_t x = scatter_npus[_i];
	struct npumem_place place = scatter(x, x + 2, 0);
	ck_assert_int_eq(place.channels_per_npu, 2);
	ck_assert_int_eq(npu_of(x, &place, 0, x), 0);
	ck_assert_int_eq(npu_of(x, &place, 1, x + 1), 1);
	ck_assert_int_eq(place.blocks.empty, 2 * (x - 2) * 128); /* "there are X - 2 empty blocks" */

	place = scatter(x, x + 2, x - 1);
	ck_assert_int_eq(place.channels_per_npu, 3);
	ck_assert_int_eq(npu_of(x, &place, 0, 0), x - 1);
	ck_assert_int_eq(npu_of(x, &place, 0, 1), 0);
	ck_assert_int_eq(npu_of(x, &place, 0, x + 1), 0);
	ck_assert_int_eq(place.blocks.empty, 2 * 2 * (x - 1) * 128); /* "X - 1 empty blocks in each" */
}

static void element_at(const struct npumem_place *place, int64_t n, int64_t c, int64_t h, int64_t w, int64_t npu,
		       int64_t offset)
{
	int64_t at_npu, at_offset;
	npumem_place_locate(&specs_seed, place, n, c, h, w, &at_npu, &at_offset);
	ck_assert_int_eq(at_npu, npu);
	ck_assert_int_eq(at_offset, offset);
}

/* (2, 5, 3, 4) fp32 from NPU 0, strides 120, 56, 16, 2 */
TEST(stride_local_0)
{
	struct npumem_spec spec = specs_tensor(NPUMEM_FP32, 2, 5, 3, 4);
	spec.layout = NPUMEM_STRIDED;
	spec.stride = (struct npumem_dims){.n = 120, .c = 56, .h = 16, .w = 2};
	struct npumem_place place = specs_resolve(&specs_seed, &spec);
	specs_stride_eq(&place.stride, 120, 56, 16, 2);
	ck_assert_int_eq(place.channels_per_npu, 2);
	ck_assert_int_eq(place.bytes_per_npu, (1 + 120 + 56 + 2 * 16 + 3 * 2) * 4);
	element_at(&place, 0, 0, 0, 1, 0, 2 * 4);
	element_at(&place, 0, 3, 1, 0, 3, 16 * 4);
	element_at(&place, 0, 4, 0, 0, 0, 56 * 4);
	element_at(&place, 1, 1, 0, 0, 1, 120 * 4);
	element_at(&place, 1, 4, 2, 3, 0, 214 * 4);
	/* Row 1 is on NPU 0 only: its 24 elements are missing on the three others. */
	ck_assert_int_eq(place.blocks.empty, 3 * 24 * 4);
	map_check(&specs_seed, &place, false);
}

/* (2, 3, 1, 10) fp32 from NPU 1, W stride 2, N stride 120: "H stride and C stride both make no sense" */
TEST(stride_local_1)
{
	static const int64_t senseless[] = {0, 1, 2, 999, INT32_MAX, 0};
	for (unsigned i = 0; i < 6; i++) {
		int64_t c = senseless[i], h = senseless[5 - i];
		struct npumem_spec spec = specs_tensor(NPUMEM_FP32, 2, 3, 1, 10);
		spec.layout = NPUMEM_STRIDED;
		spec.start_npu = 1;
		spec.stride = (struct npumem_dims){.n = 120, .c = c, .h = h, .w = 2};
		struct npumem_place place = specs_resolve(&specs_seed, &spec);
		ck_assert_int_eq(place.channels_per_npu, 1);
		ck_assert_int_eq(place.bytes_per_npu, (1 + 120 + 9 * 2) * 4);
		specs_stride_eq(&place.stride, 120, c ? c : 1, h ? h : 1, 2);
		element_at(&place, 0, 0, 0, 9, 1, 18 * 4);
		element_at(&place, 1, 2, 0, 0, 3, 120 * 4);
		map_check(&specs_seed, &place, false);
	}
}

/* (2, 3, 4, 5) fp32, aligned, from NPU 0 and 2 */
TEST(align_fp32)
{
	struct npumem_spec spec = specs_tensor(NPUMEM_FP32, 2, 3, 4, 5);
	spec.layout = NPUMEM_ALIGNED;
	struct npumem_place place = specs_resolve(&specs_seed, &spec);
	specs_stride_eq(&place.stride, 32, 32, 5, 1);
	ck_assert_int_eq(place.channels_per_npu, 1);
	ck_assert_int_eq(place.bytes_per_npu, 2 * 32 * 4);
	ck_assert_int_eq(place.align_bytes, 128);
	/* "12 empty blocks are appended to each feature": they are padding; NPU 3's blocks are empty. */
	ck_assert_int_eq(place.blocks.padding, 2 * 3 * 12 * 4);
	ck_assert_int_eq(place.blocks.empty, 2 * 32 * 4);
	map_check(&specs_seed, &place, true);

	spec.start_npu = 2;
	place = specs_resolve(&specs_seed, &spec);
	specs_stride_eq(&place.stride, 64, 32, 5, 1);
	ck_assert_int_eq(place.channels_per_npu, 2);
	element_at(&place, 0, 2, 0, 0, 0, 32 * 4);
	element_at(&place, 1, 0, 0, 0, 2, 64 * 4);
	map_check(&specs_seed, &place, true);
}

/* The same, compact */
TEST(compact_fp32)
{
	struct npumem_spec spec = specs_tensor(NPUMEM_FP32, 2, 3, 4, 5);
	spec.layout = NPUMEM_COMPACT;
	struct npumem_place place = specs_resolve(&specs_seed, &spec);
	specs_stride_eq(&place.stride, 20, 20, 5, 1);
	ck_assert_int_eq(place.bytes_per_npu, 2 * 20 * 4);
	ck_assert_int_eq(place.align_bytes, 4);
	ck_assert_int_eq(place.blocks.padding, 0);
	map_check(&specs_seed, &place, true);

	spec.start_npu = 2;
	place = specs_resolve(&specs_seed, &spec);
	specs_stride_eq(&place.stride, 40, 20, 5, 1);
	ck_assert_int_eq(place.channels_per_npu, 2);
	element_at(&place, 0, 2, 3, 4, 0, 39 * 4);
	map_check(&specs_seed, &place, true);
}

/* A 2-by-40 matrix of fp32 with W = 40, 20, 10, 8, 15 and 6 */
TEST(matrix_w)
{
	static const struct {
		int64_t w, channels, channels_per_npu, row_words, last_w;
	} figures[] = {
		{40, 1, 1, 64, 40}, {20, 2, 1, 32, 20}, {10, 4, 1, 32, 10},
		{8, 5, 2, 64, 8},   {15, 3, 1, 32, 10}, {6, 7, 2, 64, 4},
	};
	for (unsigned i = 0; i < sizeof(figures) / sizeof(figures[0]); i++) {
		struct npumem_spec spec = specs_matrix(NPUMEM_FP32, 2, 40, figures[i].w);
		struct npumem_place place = specs_resolve(&specs_seed, &spec);
		ck_assert_int_eq(place.shape.n, 2);
		ck_assert_int_eq(place.shape.c, figures[i].channels);
		ck_assert_int_eq(place.shape.h, 1);
		ck_assert_int_eq(place.shape.w, figures[i].w);
		ck_assert_int_eq(place.channels_per_npu, figures[i].channels_per_npu);
		ck_assert_int_eq(place.stride.n, figures[i].row_words);
		ck_assert_int_eq(place.last_w, figures[i].last_w);
		ck_assert_int_eq(place.bytes_per_npu, 2 * figures[i].row_words * 4);
		ck_assert_int_eq(npumem_place_elements(&place), 80);
		map_check(&specs_seed, &place, true);
	}
	/* W = 15: "in NPU 2, the number is 40 - 15 * 2 = 10" */
	struct npumem_spec spec = specs_matrix(NPUMEM_FP32, 2, 40, 15);
	struct npumem_place place = specs_resolve(&specs_seed, &spec);
	uint8_t kinds[256] = {0};
	npumem_place_paint(&specs_seed, &place, 2, 0, 256, kinds);
	ck_assert_int_eq(kinds[10 * 4 - 1], NPUMEM_BYTE_DATA);
	ck_assert_int_eq(kinds[10 * 4], NPUMEM_BYTE_PADDING);
}

/* (6, 5, 4, 5) int8 in 4N, aligned: M = 2, two dummies */
TEST(aligned_4n)
{
	static const int dtypes[] = {NPUMEM_INT8, NPUMEM_UINT8, NPUMEM_FX8};
	for (unsigned i = 0; i < 3; i++) {
		struct npumem_spec spec = specs_tensor(dtypes[i], 6, 5, 4, 5);
		spec.mode = NPUMEM_MODE_4N;
		struct npumem_place place = specs_resolve(&specs_seed, &spec);
		ck_assert_int_eq(place.words_n, 2);
		ck_assert_int_eq(place.word_bytes, 4);
		specs_stride_eq(&place.stride, 64, 32, 5, 1);
		ck_assert_int_eq(place.channels_per_npu, 2);
		ck_assert_int_eq(place.blocks.data, 6 * 5 * 20);
		ck_assert_int_eq(place.blocks.dummy, 2 * 5 * 20);
		/* "(1, 0, 0, 0) of the new shape contains (4, 0, 0, 0) and (5, 0, 0, 0) and two dummy ones" */
		element_at(&place, 4, 0, 0, 0, 0, 64 * 4);
		element_at(&place, 5, 0, 0, 0, 0, 64 * 4 + 1);
		uint8_t kinds[512] = {0};
		npumem_place_paint(&specs_seed, &place, 0, 0, 512, kinds);
		ck_assert_int_eq(kinds[64 * 4 + 1], NPUMEM_BYTE_DATA);
		ck_assert_int_eq(kinds[64 * 4 + 2], NPUMEM_BYTE_DUMMY);
		ck_assert_int_eq(kinds[64 * 4 + 3], NPUMEM_BYTE_DUMMY);
		ck_assert_int_eq(kinds[20 * 4], NPUMEM_BYTE_PADDING);
		map_check(&specs_seed, &place, true);
	}
}

/* (3, 5, 4, 5) int16 in 2N, aligned: M = 2, one dummy; the text's "int8 element" is an int16 one */
TEST(aligned_2n)
{
	static const int dtypes[] = {NPUMEM_INT16, NPUMEM_UINT16, NPUMEM_FX16};
	for (unsigned i = 0; i < 3; i++) {
		struct npumem_spec spec = specs_tensor(dtypes[i], 3, 5, 4, 5);
		spec.mode = NPUMEM_MODE_2N;
		struct npumem_place place = specs_resolve(&specs_seed, &spec);
		ck_assert_int_eq(place.words_n, 2);
		ck_assert_int_eq(place.word_bytes, 4);
		specs_stride_eq(&place.stride, 64, 32, 5, 1);
		ck_assert_int_eq(place.blocks.data, 3 * 5 * 20 * 2);
		ck_assert_int_eq(place.blocks.dummy, 5 * 20 * 2);
		element_at(&place, 2, 0, 0, 0, 0, 64 * 4);
		element_at(&place, 1, 4, 0, 1, 0, (32 + 1) * 4 + 2);
		map_check(&specs_seed, &place, true);
	}
}

/* Weights [I, O, H, W] in 2IC: J = ceil(I / 2) words of 64 bits; an odd I leaves a dummy */
TEST(weights_2ic)
{
	struct npumem_spec spec = specs_tensor(NPUMEM_FP32, 3, 5, 3, 3);
	spec.mode = NPUMEM_MODE_2IC;
	struct npumem_place place = specs_resolve(&specs_seed, &spec);
	ck_assert_int_eq(place.words_n, 2);
	ck_assert_int_eq(place.word_bytes, 8);
	specs_stride_eq(&place.stride, 32, 16, 3, 1); /* ceil(9 / 16) * 16 words */
	element_at(&place, 1, 0, 0, 0, 0, 4);
	element_at(&place, 2, 4, 2, 2, 0, (32 + 16 + 8) * 8);
	ck_assert_int_eq(place.blocks.dummy, 5 * 9 * 4);
	map_check(&specs_seed, &place, true);
}

TEST(continuous)
{
	struct npumem_dims shape = {.n = 2, .c = 3, .h = 4, .w = 5}, stride;
	npumem_continuous_stride(&shape, &stride);
	specs_stride_eq(&stride, 3 * 4 * 5, 4 * 5, 5, 1);
	/* A shape that no memory holds must not overflow. */
	shape = (struct npumem_dims){.n = INT32_MAX, .c = INT32_MAX, .h = INT32_MAX, .w = INT32_MAX};
	npumem_continuous_stride(&shape, &stride);
	ck_assert_int_eq(stride.n, INT64_MAX);
}
