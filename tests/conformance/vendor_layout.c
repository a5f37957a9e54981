/* vendor/layout.json: strides, channels per NPU, the start NPU of an address, continuous strides. */
#include "tests/conformance/vendor.h"

static struct vendor vendor;

static void setup(void)
{
	vendor_open(&vendor, 0xa5);
}

static void teardown(void)
{
	vendor_close(&vendor);
}

START_TEST(strides)
{
	json_t *json = vendor_load("layout"), *one;
	size_t i;
	json_array_foreach(json_object_get(json, "cases"), i, one)
	{
		int64_t id = vendor_int(one, "id");
		struct npumem_spec spec;
		npumem_spec_init(&spec);
		spec.dtype = vendor_dtype(vendor_int(one, "dtype_bits"));
		spec.layout = npumem_layout_parse(vendor_text(one, "layout"));
		ck_assert(spec.layout == NPUMEM_ALIGNED || spec.layout == NPUMEM_COMPACT);
		spec.shape = vendor_dims(one, "shape");
		spec.start_npu = vendor_int(one, "start_npu");
		const struct npumem_place *place = TENSOR_PLACE(vendor_place(&vendor, &spec));
		struct npumem_dims stride = vendor_dims(one, "stride");
		vendor_stride_eq(&place->stride, &stride, id);
		ck_assert_int_eq(place->channels_per_npu, vendor_int(one, "channels_per_npu"));
		vendor_reset(&vendor);
	}
	ck_assert_uint_eq(i, 326);
	json_decref(json);
}
END_TEST

START_TEST(continuous)
{
	json_t *json = vendor_load("layout"), *one;
	size_t i;
	json_array_foreach(json_object_get(json, "continuous"), i, one)
	{
		struct npumem_dims shape = vendor_dims(one, "shape"), expected = vendor_dims(one, "stride"),
				   stride;
		npumem_continuous_stride(&shape, &stride);
		vendor_stride_eq(&stride, &expected, (int64_t)i);
	}
	ck_assert_uint_eq(i, 15);
	json_decref(json);
}
END_TEST

/* An element of one byte at each address; the device's last byte is no place for the 4 bytes that any tensor
 * takes, and the refusal tells the offset. */
START_TEST(start_npu_index)
{
	static const struct npumem_dims one_by_one = {1, 1, 1, 1};
	json_t *json = vendor_load("layout"), *one;
	size_t i;
	json_array_foreach(json_object_get(json, "start_npu_index"), i, one)
	{
		int64_t offset = vendor_int(one, "offset");
		struct npumem_spec spec = vendor_spec(NPUMEM_UINT8, NPUMEM_MODE_PLAIN, "free",
						      vendor_int(one, "address"), &one_by_one, &one_by_one);
		if (offset > vendor.geometry.npu_bytes - 4) {
			struct npumem_error error = {0};
			struct tensor *tensor;
			char part[64];
			ck_assert_int_eq(vendor_try(&vendor, &spec, &tensor, &error), NPUMEM_INVALID);
			snprintf(part, sizeof(part), "at offset %ld the tensor's 4 bytes", (long)offset);
			ck_assert_msg(strstr(error.message, part), "%s", error.message);
			continue;
		}
		struct tensor *tensor = vendor_place(&vendor, &spec);
		ck_assert_int_eq(TENSOR_PLACE(tensor)->npu, vendor_int(one, "start_npu"));
		ck_assert_int_eq(TENSOR_PLACE(tensor)->offset, offset);
		vendor_write(&vendor, tensor, "\x11", 1, NULL);
		vendor_expect(&vendor, vendor_int(one, "start_npu"), offset, "\x11", 1);
		vendor_compare(&vendor, "start_npu_index", (int64_t)i);
		vendor_reset(&vendor);
	}
	ck_assert_uint_eq(i, 13);
	json_decref(json);
}
END_TEST

Suite *vendor_suite_layout(void)
{
	Suite *suite = suite_create("layout.json");
	TCase *tcase = tcase_create("layout");
	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, strides);
	tcase_add_test(tcase, continuous);
	tcase_add_test(tcase, start_npu_index);
	suite_add_tcase(suite, tcase);
	return suite;
}
