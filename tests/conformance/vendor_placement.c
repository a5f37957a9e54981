/* vendor/placement.json: which bytes a DMA writes. Every case runs over two poisons and compares all bytes of the
 * device, so that padding, empty blocks and everything else are known to be left alone. */
#include "tests/conformance/vendor.h"

#include <zlib.h>

static struct vendor vendor;
static json_t *json;
static const uint8_t poisons[] = {0xa5, 0x5a};

static void setup(void)
{
	json = vendor_load("placement");
}

static void teardown(void)
{
	json_decref(json);
}

/* "element with flat index k is (k*2654435761 mod 2^32) mod 2^dtype_bits" */
static uint8_t *system_elements(int64_t n, int64_t element_bytes)
{
	uint8_t *bytes = malloc((size_t)(n * element_bytes));
	ck_assert(bytes != NULL);
	for (int64_t k = 0; k < n; k++) {
		uint32_t value = (uint32_t)((uint64_t)k * 2654435761u);
		for (int64_t i = 0; i < element_bytes; i++)
			bytes[k * element_bytes + i] = (uint8_t)(value >> (8 * i));
	}
	return bytes;
}

/* Elements from the first to the last one of a strided array. */
static int64_t span(const struct npumem_dims *shape, const struct npumem_dims *stride)
{
	return 1 + (shape->n - 1) * stride->n + (shape->c - 1) * stride->c + (shape->h - 1) * stride->h +
	       (shape->w - 1) * stride->w;
}

static int64_t element_bytes_of(const json_t *one)
{
	return vendor_int(one, "dtype_bits") / 8;
}

static struct tensor *place_of(const json_t *one, const char *address, const char *stride_key, const char *layout)
{
	struct npumem_dims shape = vendor_dims(one, "shape"), stride = vendor_dims(one, stride_key);
	struct npumem_spec spec = vendor_spec(vendor_dtype(vendor_int(one, "dtype_bits")), NPUMEM_MODE_PLAIN,
					      layout, vendor_int(one, address), &shape, &stride);
	struct tensor *tensor = vendor_place(&vendor, &spec);
	vendor_stride_eq(&TENSOR_PLACE(tensor)->stride, &stride, vendor_int(one, "id"));
	return tensor;
}

static void check_blocks(const json_t *one, const struct npumem_place *place)
{
	if (place->layout == NPUMEM_STRIDED)
		return; /* the vendor's count takes the caller's gaps for blocks */
	ck_assert_int_eq(place->blocks.padding -
				 (place->bytes_per_npu - place->words_n * place->stride.n * place->word_bytes) *
					 vendor.geometry.n_npus,
			 vendor_int(one, "padding_bytes_verified_untouched"));
	ck_assert_int_eq(place->blocks.empty, vendor_int(one, "empty_block_bytes_verified_untouched"));
}

/* The vendor's model lets rows overlap and the last element win; npumem names the two. */
static bool overlaps(const json_t *one)
{
	struct npumem_dims shape = vendor_dims(one, "shape"), stride = vendor_dims(one, "dst_stride");
	if (vendor_int(one, "total_bytes_written") ==
	    shape.n * shape.c * shape.h * shape.w * element_bytes_of(one))
		return false;
	struct npumem_spec spec = vendor_spec(vendor_dtype(vendor_int(one, "dtype_bits")), NPUMEM_MODE_PLAIN,
					      "free", vendor_int(one, "dst_address"), &shape, &stride);
	struct npumem_error error = {0};
	struct tensor *none;
	ck_assert_int_eq(vendor_try(&vendor, &spec, &none, &error), NPUMEM_INVALID);
	ck_assert_msg(strstr(error.message, "lie at the same place"), "%s", error.message);
	return true;
}

static void run_s2l(const json_t *one)
{
	struct npumem_dims shape = vendor_dims(one, "shape"), stride = vendor_dims(one, "src_stride");
	int64_t n = span(&shape, &stride), bytes = element_bytes_of(one);
	uint8_t *system = system_elements(n, bytes);
	struct tensor *tensor = place_of(one, "dst_address", "dst_stride", vendor_text(one, "layout"));
	check_blocks(one, TENSOR_PLACE(tensor));
	vendor_write(&vendor, tensor, system, (size_t)(n * bytes), &stride);
	free(system);
}

/* From local to local memory: a copy by DMA, or by a kernel that gives the same bytes. */
static void run_l2l(const json_t *one)
{
	struct npumem_dims shape = vendor_dims(one, "shape");
	int64_t n = shape.n * shape.c * shape.h * shape.w, bytes = element_bytes_of(one);
	uint8_t *system = system_elements(n, bytes), *back = malloc((size_t)(n * bytes));
	struct tensor *from = place_of(one, "src_address", "src_stride", "free");
	struct tensor *to = place_of(one, "dst_address", "dst_stride", "free");
	vendor_write(&vendor, from, system, (size_t)(n * bytes), NULL);
	vendor_copy(&vendor, to, from);
	vendor_read(&vendor, from, back, (size_t)(n * bytes), NULL);
	ck_assert_mem_eq(back, system, (size_t)(n * bytes));
	vendor_drop(&vendor, from);
	free(system);
	free(back);
}

static struct tensor *write_matrix(const json_t *one)
{
	int64_t rows = vendor_int(one, "rows"), cols = vendor_int(one, "cols"),
		row_stride = vendor_int(one, "row_stride");
	int64_t n = (rows - 1) * row_stride + cols;
	uint8_t *system = system_elements(n, 4);
	struct npumem_spec spec;
	npumem_spec_init(&spec);
	spec.dtype = NPUMEM_UINT32;
	spec.layout = NPUMEM_MATRIX;
	spec.rows = rows;
	spec.cols = cols;
	spec.w = vendor_int(one, "cols_per_channel");
	spec.address = vendor_int(one, "dst_address");
	if (spec.w > cols) {
		/* The vendor's model takes a W beyond the columns; the manual has it in [1, M]. */
		struct npumem_error error = {0};
		struct tensor *none;
		ck_assert_int_eq(vendor_try(&vendor, &spec, &none, &error), NPUMEM_INVALID);
		spec.w = cols;
	}
	struct tensor *tensor = vendor_place(&vendor, &spec);
	ck_assert_int_eq(TENSOR_PLACE(tensor)->stride.n, vendor_dims(one, "dst_stride").n);
	ck_assert_int_eq(TENSOR_PLACE(tensor)->stride.c, vendor_dims(one, "dst_stride").c);
	ck_assert_int_eq(TENSOR_PLACE(tensor)->shape.c, vendor_dims(one, "shape").c);
	ck_assert_int_eq(TENSOR_PLACE(tensor)->last_w,
			 spec.w < cols ? vendor_int(one, "last_channel_cols") : cols);
	struct npumem_dims stride = {.n = row_stride, .c = 1, .h = 1, .w = 1};
	vendor_write(&vendor, tensor, system, (size_t)(n * 4), &stride);
	free(system);
	return tensor;
}

/* Where the vendor's matrix DMA forgets the start NPU: npumem's bytes are those of the manual's N stride, and with
 * the recorded N stride in its place they would be the vendor's. */
static void check_matrix_difference(const json_t *one)
{
	const struct npumem_place place = tensor_place(vendor.tensors[0]);
	const int64_t wrong = vendor_int(one, "n_stride_without_start_npu");
	uint8_t *rows = malloc((size_t)(place.rows * place.cols * 4));
	ck_assert(rows != NULL);
	vendor_read(&vendor, vendor.tensors[0], rows, (size_t)(place.rows * place.cols * 4), NULL);
	ck_assert_int_ge(vendor_difference(&vendor), 0);
	ck_assert_int_ne(place.stride.n, wrong);

	vendor_reset(&vendor);
	vendor_expect_runs(&vendor, json_object_get(one, "npus"));
	for (int64_t r = 0; r < place.rows; r++) {
		for (int64_t c = 0; c < place.cols; c++) {
			int64_t npu, offset;
			npumem_place_locate(&vendor.geometry, &place, r, c / place.w, 0, c % place.w, &npu,
					    &offset);
			offset += place.offset + r * (wrong - place.stride.n) * 4;
			vendor_expect(&vendor, npu, offset, rows + (r * place.cols + c) * 4, 4);
		}
	}
	/* The image is now drawn in `expected`; its CRCs are the recorded ones, and nothing else was drawn. */
	json_t *npu, *run;
	size_t i, j;
	int64_t n_bytes = 0;
	json_array_foreach(json_object_get(one, "npus"), i, npu)
	{
		json_array_foreach(json_object_get(npu, "runs"), j, run)
		{
			int64_t at = vendor_int(npu, "npu") * vendor.geometry.npu_bytes +
				     json_integer_value(json_array_get(run, 0));
			int64_t n = json_integer_value(json_array_get(run, 1));
			ck_assert_int_eq(crc32(0, vendor.expected + at, (uInt)n),
					 json_integer_value(json_array_get(run, 2)));
			n_bytes += n;
		}
	}
	ck_assert_int_eq(n_bytes, place.rows * place.cols * 4);
	memset(vendor.expected, vendor.poison, (size_t)(vendor.geometry.n_npus * vendor.geometry.npu_bytes));
	free(rows);
}

START_TEST(cases)
{
	vendor_open(&vendor, poisons[_i]);
	unsigned n[4] = {0}, differ = 0, overlapping = 0;
	size_t i;
	json_t *one;
	json_array_foreach(json_object_get(json, "cases"), i, one)
	{
		const char *kind = vendor_text(one, "kind");
		int64_t id = vendor_int(one, "id");
		if (!strcmp(kind, "S2L") && overlaps(one)) {
			overlapping++;
			continue;
		}
		if (!strcmp(kind, "S2L")) {
			n[0]++;
			run_s2l(one);
		} else if (!strcmp(kind, "MATRIX_S2L")) {
			n[1]++;
			write_matrix(one);
		} else {
			n[strcmp(kind, "L2L") ? 3 : 2]++;
			ck_assert(!strcmp(kind, "L2L") || !strcmp(kind, "BDC_OR"));
			run_l2l(one);
		}
		const struct npumem_place *place = TENSOR_PLACE(vendor.tensors[0]);
		ck_assert_int_eq(place->npu, vendor_int(one, "dst_start_npu"));
		ck_assert_int_eq(place->offset, vendor_int(one, "dst_offset"));
		ck_assert_int_eq(place->blocks.data, vendor_int(one, "total_bytes_written"));
		vendor_expect_runs(&vendor, json_object_get(one, "npus"));
		if (vendor_bool(one, "matches_seed_formula")) {
			vendor_compare(&vendor, kind, id);
		} else {
			ck_assert_str_eq(kind, "MATRIX_S2L");
			differ++;
			check_matrix_difference(one);
		}
		vendor_reset(&vendor);
	}
	ck_assert_uint_eq(n[0], 25);
	ck_assert_uint_eq(overlapping, 1);
	ck_assert_uint_eq(n[1], 12);
	ck_assert_uint_eq(n[2], 9);
	ck_assert_uint_eq(n[3], 9);
	ck_assert_uint_eq(differ, 3);
	vendor_close(&vendor);
}
END_TEST

/* From local to system memory, with gaps between its rows. */
START_TEST(l2s)
{
	vendor_open(&vendor, poisons[_i]);
	size_t i, j;
	json_t *one, *run;
	json_array_foreach(json_object_get(json, "l2s"), i, one)
	{
		struct npumem_dims shape = vendor_dims(one, "shape"), stride = vendor_dims(one, "dst_stride");
		int64_t bytes = element_bytes_of(one), n = shape.n * shape.c * shape.h * shape.w;
		size_t size = (size_t)(span(&shape, &stride) * bytes);
		uint8_t *elements = system_elements(n, bytes), *system = malloc(size + 64);
		struct tensor *tensor = place_of(one, "src_address", "src_stride", vendor_text(one, "layout"));
		vendor_write(&vendor, tensor, elements, (size_t)(n * bytes), NULL);
		memset(system, vendor.poison, size + 64);
		vendor_read(&vendor, tensor, system, size, &stride);
		int64_t end = 0;
		json_array_foreach(json_object_get(one, "system_runs"), j, run)
		{
			int64_t from = json_integer_value(json_array_get(run, 0));
			int64_t length = json_integer_value(json_array_get(run, 1));
			for (; end < from; end++)
				ck_assert_uint_eq(system[end], vendor.poison);
			ck_assert_int_eq(crc32(0, system + from, (uInt)length),
					 json_integer_value(json_array_get(run, 2)));
			end = from + length;
		}
		for (; end < (int64_t)size + 64; end++)
			ck_assert_uint_eq(system[end], vendor.poison);
		free(elements);
		free(system);
		vendor_reset(&vendor);
	}
	ck_assert_uint_eq(i, 6);
	vendor_close(&vendor);
}
END_TEST

/* The vendor's matrix read goes wrong from an NPU other than 0; npumem reads the manual's image back. */
START_TEST(matrix_l2s)
{
	vendor_open(&vendor, poisons[_i]);
	size_t i;
	json_t *one;
	json_array_foreach(json_object_get(json, "matrix_l2s"), i, one)
	{
		int64_t rows = vendor_int(one, "rows"), cols = vendor_int(one, "cols"),
			w = vendor_int(one, "cols_per_channel");
		ck_assert(!vendor_bool(one, "reads_back_image_of_seed_formula"));
		ck_assert_int_eq(cols % w, 0);
		uint8_t *elements = system_elements(rows * cols, 4), *back = malloc((size_t)(rows * cols * 4));
		struct npumem_spec spec;
		npumem_spec_init(&spec);
		spec.dtype = NPUMEM_UINT32;
		spec.layout = NPUMEM_MATRIX;
		spec.rows = rows;
		spec.cols = cols;
		spec.w = w;
		spec.address = vendor_int(one, "address");
		struct tensor *tensor = vendor_place(&vendor, &spec);
		vendor_write(&vendor, tensor, elements, (size_t)(rows * cols * 4), NULL);
		/* The image by the manual's words, element by element. */
		int64_t start = vendor_int(one, "start_npu"), block = (w + 31) / 32 * 32;
		int64_t n_stride = block * ((start + cols / w + 63) / 64);
		for (int64_t k = 0; k < rows * cols; k++) {
			int64_t channel = start + k % cols / w;
			int64_t word = k / cols * n_stride + channel / 64 * block + k % cols % w;
			vendor_expect(&vendor, channel % 64, spec.address % 524288 + word * 4, elements + k * 4,
				      4);
		}
		vendor_compare(&vendor, "matrix_l2s", (int64_t)i);
		vendor_read(&vendor, tensor, back, (size_t)(rows * cols * 4), NULL);
		ck_assert_mem_eq(back, elements, (size_t)(rows * cols * 4));
		free(elements);
		free(back);
		vendor_reset(&vendor);
	}
	ck_assert_uint_eq(i, 1);
	vendor_close(&vendor);
}
END_TEST

/* What the vendor's model aborts on. npumem refuses the addresses too; a W stride of 2 it takes, as the manual
 * does. */
START_TEST(rejected)
{
	vendor_open(&vendor, poisons[_i]);
	size_t i;
	json_t *one;
	unsigned taken = 0;
	json_array_foreach(json_object_get(json, "rejected_by_cmodel"), i, one)
	{
		int64_t bits, address;
		struct npumem_dims shape, stride;
		ck_assert_int_eq(sscanf(vendor_text(one, "what"),
					"S2L %ld %ld (%ld, %ld, %ld, %ld) (%ld, %ld, %ld, %ld)", &bits, &address,
					&shape.n, &shape.c, &shape.h, &shape.w, &stride.n, &stride.c, &stride.h,
					&stride.w),
				 10);
		struct npumem_spec spec =
			vendor_spec(vendor_dtype(bits), NPUMEM_MODE_PLAIN, "free", address, &shape, &stride);
		struct npumem_error error = {0};
		struct tensor *tensor;
		int status = vendor_try(&vendor, &spec, &tensor, &error);
		if (stride.w == 2) {
			ck_assert_int_eq(status, 0);
			taken++;
			device_release(vendor.device, tensor, NULL, NULL);
			continue;
		}
		ck_assert_int_eq(status, NPUMEM_INVALID);
		ck_assert(strstr(error.message, "is not a multiple of") ||
			  strstr(error.message, "past the end of the NPU"));
	}
	ck_assert_uint_eq(taken, 3);
	ck_assert_uint_eq(i, 6);
	vendor_close(&vendor);
}
END_TEST

Suite *vendor_suite_placement(void)
{
	Suite *suite = suite_create("placement.json");
	TCase *tcase = tcase_create("placement");
	tcase_set_timeout(tcase, 60);
	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_loop_test(tcase, cases, 0, 2);
	tcase_add_loop_test(tcase, l2s, 0, 2);
	tcase_add_loop_test(tcase, matrix_l2s, 0, 2);
	tcase_add_loop_test(tcase, rejected, 0, 1);
	suite_add_tcase(suite, tcase);
	return suite;
}
