/* vendor/modes.json: how 4N, 2N and 2IC tensors lie in memory, byte by byte. npumem's writes put 0 into the
 * dummies, which the vendor's images leave out; its kernels leave the dummies of their outputs alone, as the
 * vendor's do. */
#include "tests/conformance/vendor.h"

#include <math.h>

static struct vendor vendor;
static json_t *json;

static void setup(void)
{
	json = vendor_load("modes");
	vendor_open(&vendor, 0xa5);
}

static void teardown(void)
{
	vendor_close(&vendor);
	json_decref(json);
}

static int mode_of(int dtype)
{
	return npumem_dtype_bytes(dtype) == 1 ? NPUMEM_MODE_4N : NPUMEM_MODE_2N;
}

static int64_t elements_of(const struct npumem_dims *shape)
{
	return shape->n * shape->c * shape->h * shape->w;
}

/* The values as an array of `dtype`, saturated. */
static uint8_t *container(const json_t *values, int dtype)
{
	const int64_t bytes = npumem_dtype_bytes(dtype);
	uint8_t *array = malloc(json_array_size(values) * (size_t)bytes);
	int64_t low, high;
	ck_assert(array && npumem_dtype_range(dtype, &low, &high));
	size_t i;
	json_t *one;
	json_array_foreach(values, i, one)
	{
		int64_t value = json_integer_value(one);
		value = value < low ? low : value > high ? high : value;
		for (int64_t b = 0; b < bytes; b++)
			array[(int64_t)i * bytes + b] = (uint8_t)((uint64_t)value >> (8 * b));
	}
	return array;
}

/* The lanes of the last word past N, which are `value`. Returns how many bytes. */
static int64_t expect_dummies(const struct npumem_place *place, uint8_t value)
{
	const int64_t bytes = place->word_bytes / place->lanes;
	int64_t total = 0;
	for (int64_t n = place->shape.n; n < place->words_n * place->lanes; n++) {
		for (int64_t c = 0; c < place->shape.c; c++) {
			for (int64_t h = 0; h < place->shape.h; h++) {
				for (int64_t w = 0; w < place->shape.w; w++) {
					int64_t channel = place->start_npu + c;
					int64_t word = (place->words_n - 1) * place->stride.n +
						       channel / 64 * place->stride.c + h * place->stride.h +
						       w * place->stride.w;
					int64_t at = place->offset + word * place->word_bytes +
						     n % place->lanes * bytes;
					for (int64_t b = 0; b < bytes; b++, total++)
						vendor_expect(&vendor, channel % 64, at + b, &value, 1);
				}
			}
		}
	}
	return total;
}

static struct tensor *place_of(const json_t *one, const char *dtype_key, const char *address_key,
			       const char *stride_key, const char *words_key)
{
	struct npumem_dims shape = vendor_dims(one, "shape"), stride = vendor_dims(one, stride_key);
	int dtype = npumem_dtype_parse(vendor_text(one, dtype_key));
	struct npumem_spec spec = vendor_spec(dtype, mode_of(dtype), vendor_text(one, "layout"),
					      vendor_int(one, address_key), &shape, &stride);
	struct tensor *tensor = vendor_place(&vendor, &spec);
	vendor_stride_eq(&TENSOR_PLACE(tensor)->stride, &stride, vendor_int(one, "id"));
	ck_assert_int_eq(TENSOR_PLACE(tensor)->words_n, vendor_dims(one, words_key).n);
	ck_assert_int_eq(TENSOR_PLACE(tensor)->start_npu, vendor_int(one, "start_npu"));
	return tensor;
}

/* Written by DMA, the bytes of `image` and zeros in the dummies. */
static void check_written(const json_t *one, struct tensor *tensor, const char *image)
{
	const struct npumem_place *place = TENSOR_PLACE(tensor);
	uint8_t *array = container(json_object_get(one, "values_nchw"), place->dtype);
	const size_t bytes = (size_t)place->blocks.data;
	vendor_write(&vendor, tensor, array, bytes, NULL);
	ck_assert_int_eq(vendor_expect_image(&vendor, json_object_get(one, image)), place->blocks.data);
	ck_assert_int_eq(expect_dummies(place, 0), place->blocks.dummy);
	vendor_compare(&vendor, image, vendor_int(one, "id"));
	uint8_t *back = malloc(bytes);
	vendor_read(&vendor, tensor, back, bytes, NULL);
	ck_assert_mem_eq(back, array, bytes);
	free(array);
	free(back);
}

START_TEST(packed_images)
{
	size_t i;
	json_t *one;
	json_array_foreach(json_object_get(json, "cases"), i, one)
	{
		ck_assert(vendor_bool(one, "matches_seed_layout"));
		struct npumem_dims shape = vendor_dims(one, "shape");
		ck_assert_int_eq((int64_t)json_array_size(json_object_get(one, "values_nchw")),
				 elements_of(&shape));
		struct tensor *from = place_of(one, "dtype", "src_address", "src_stride_words", "word_shape");
		check_written(one, from, "src_image");
		ck_assert_int_eq(TENSOR_PLACE(from)->words_n * TENSOR_PLACE(from)->lanes - shape.n,
				 vendor_int(one, "dummy_lanes_per_last_word"));
		vendor_drop(&vendor, from);
		struct tensor *to =
			place_of(one, "dst_dtype", "dst_address", "dst_stride_words", "dst_word_shape");
		check_written(one, to, "dst_written");
		vendor_reset(&vendor);
	}
	ck_assert_uint_eq(i, 34);
}
END_TEST

/* What the vendor ran to see where results go: src + 0, not shifted. Dummies of the output keep what they were. */
START_TEST(packed_add)
{
	const struct npumem_kernel_row *kernel = npumem_kernel_by_name("packed_add");
	struct npumem_param rshift;
	ck_assert_int_eq(npumem_param_parse("rshift", "0", &rshift, NULL), 0);
	size_t i;
	json_t *one;
	json_array_foreach(json_object_get(json, "cases"), i, one)
	{
		ck_assert_str_eq(vendor_text(one, "op"), "packed_add(src, zeros, rshift 0)");
		ck_assert(vendor_bool(one, "dummy_lanes_left_untouched"));
		struct tensor *from = place_of(one, "dtype", "src_address", "src_stride_words", "word_shape");
		struct tensor *to =
			place_of(one, "dst_dtype", "dst_address", "dst_stride_words", "dst_word_shape");
		struct npumem_dims shape = vendor_dims(one, "shape"),
				   stride = vendor_dims(one, "src_stride_words");
		struct npumem_spec spec = vendor_spec(TENSOR_PLACE(from)->dtype, TENSOR_PLACE(from)->mode, "free",
						      vendor_int(one, "src_address") + 131072, &shape, &stride);
		struct tensor *zeros = vendor_place(&vendor, &spec);
		uint8_t *array = container(json_object_get(one, "values_nchw"), TENSOR_PLACE(from)->dtype);
		vendor_write(&vendor, from, array, (size_t)TENSOR_PLACE(from)->blocks.data, NULL);
		memset(array, 0, (size_t)TENSOR_PLACE(from)->blocks.data);
		vendor_write(&vendor, zeros, array, (size_t)TENSOR_PLACE(from)->blocks.data, NULL);
		free(array);
		vendor_run(&vendor, kernel, from, zeros, to, &rshift);
		vendor_drop(&vendor, from);
		vendor_drop(&vendor, zeros);
		vendor_expect_image(&vendor, json_object_get(one, "dst_written"));
		vendor_compare(&vendor, "packed_add", vendor_int(one, "id"));
		vendor_reset(&vendor);
	}
	ck_assert_uint_eq(i, 34);
}
END_TEST

static float number_of(const json_t *value)
{
	return json_is_string(value) ? NAN : (float)json_number_value(value);
}

/* The weights' image; its odd channel's dummy is the vendor test's own value, npumem's is 0. */
START_TEST(weights_2ic)
{
	size_t i, k;
	json_t *one, *weight;
	json_array_foreach(json_object_get(json, "conv2d_2ic"), i, one)
	{
		struct npumem_dims words = vendor_dims(one, "weight_shape_2ic"),
				   stride = vendor_dims(one, "weight_stride_fp32x2");
		struct npumem_dims shape = {vendor_int(one, "input_c"), vendor_int(one, "output_c"),
					    vendor_int(one, "kernel_h"), vendor_int(one, "kernel_w")};
		const json_t *weights = json_object_get(one, "weights_iohw");
		float *array = malloc(json_array_size(weights) * sizeof(*array));
		json_array_foreach(weights, k, weight) array[k] = number_of(weight);
		ck_assert_int_eq((int64_t)k, elements_of(&shape));
		struct npumem_spec spec = vendor_spec(NPUMEM_FP32, NPUMEM_MODE_2IC, "free",
						      vendor_int(one, "weight_address"), &shape, &stride);
		struct tensor *tensor = vendor_place(&vendor, &spec);
		const struct npumem_place *place = TENSOR_PLACE(tensor);
		ck_assert_int_eq(place->words_n, words.n);
		ck_assert_int_eq(place->shape.c, words.c);
		ck_assert_int_eq(place->start_npu, vendor_int(one, "weight_start_npu"));
		vendor_write(&vendor, tensor, array, (size_t)place->blocks.data, NULL);
		int64_t drawn = vendor_expect_image(&vendor, json_object_get(one, "weight_image"));
		ck_assert_int_eq(drawn, place->blocks.data + place->blocks.dummy);
		ck_assert_int_eq(expect_dummies(place, 0), place->blocks.dummy);
		vendor_compare(&vendor, "weight_image", vendor_int(one, "id"));
		free(array);
		vendor_reset(&vendor);
	}
	ck_assert_uint_eq(i, 11);
}
END_TEST

/* The one refusal of the vendor's that is about memory: "the fp32 conv weight should be 8 aligned". */
START_TEST(weights_address)
{
	static const struct npumem_dims shape = {3, 3, 3, 3}, stride = {9, 9, 3, 1};
	ck_assert_str_eq(vendor_text(json_array_get(json_object_get(json, "rejected_by_cmodel"), 1), "note"),
			 "weight address 4 mod 8");
	for (int layout = NPUMEM_ALIGNED; layout <= NPUMEM_STRIDED; layout++) {
		struct npumem_spec spec = vendor_spec(NPUMEM_FP32, NPUMEM_MODE_2IC, npumem_layout_name(layout),
						      131072, &shape, &stride);
		if (layout == NPUMEM_MATRIX)
			continue; /* weights are no matrix */
		spec.address = 131072 + 4;
		struct npumem_error error = {0};
		struct tensor *tensor;
		ck_assert_int_eq(vendor_try(&vendor, &spec, &tensor, &error), NPUMEM_INVALID);
		ck_assert_msg(strstr(error.message, "is not a multiple of"), "%s", error.message);
	}
}
END_TEST

Suite *vendor_suite_modes(void)
{
	Suite *suite = suite_create("modes.json");
	TCase *tcase = tcase_create("modes");
	tcase_set_timeout(tcase, 60);
	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, packed_images);
	tcase_add_test(tcase, packed_add);
	tcase_add_test(tcase, weights_2ic);
	tcase_add_test(tcase, weights_address);
	suite_add_tcase(suite, tcase);
	return suite;
}
