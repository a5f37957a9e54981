/* What all pictures share: colours, units, columns of NPUs that look alike; and what a device's picture says. */
#include <stdlib.h>
#include <string.h>

#include "client/ctl/core/pictures/picture.h"
#include "client/ctl/core/pictures/svg.h"
#include "tests/support/test.h"

static const struct npumem_geometry many = {.n_npus = 1024, .npu_bytes = 65536, .n_banks = 4, .eu_bytes = 128};

static struct npumem_tensor tensor_of(const char *name, int64_t channels, int64_t address, const char *state)
{
	struct npumem_tensor tensor = {.handle = 1};
	struct npumem_spec spec;
	npumem_spec_init(&spec);
	spec.shape = (struct npumem_dims){1, channels, 1, 128};
	spec.address = address;
	strcpy(tensor.name, name);
	strcpy(tensor.state, state);
	ck_assert_int_eq(npumem_place_resolve(&many, &spec, &tensor.place, NULL), 0);
	return tensor;
}

static char *device(const struct npumem_tensor *const *tensors, unsigned n, const struct svg_device *how)
{
	char *text = NULL;
	size_t bytes;
	FILE *out = open_memstream(&text, &bytes);
	ck_assert_ptr_nonnull(out);
	svg_device_draw(out, &many, tensors, n, how);
	fclose(out);
	return text;
}

TEST(sizes_have_units)
{
	char text[SVG_BYTES_TEXT];
	ck_assert_str_eq(svg_bytes(0, text), "0 B");
	ck_assert_str_eq(svg_bytes(1023, text), "1023 B");
	ck_assert_str_eq(svg_bytes(1536, text), "1.5 KiB");
	ck_assert_str_eq(svg_bytes(524288, text), "512 KiB");
	ck_assert_str_eq(svg_bytes(INT64_C(1) << 40, text), "1 TiB");
}

/* As they are: a tensor keeps its colour from version to version. */
TEST(colours_are_stable)
{
	ck_assert_int_eq(svg_colour("x"), svg_colour("x"));
	ck_assert_int_eq(svg_colour("weights"), 288 / 24 * 2 + 1);
	ck_assert_int_eq(svg_colour("out"), 240 / 24 * 2);
}

TEST(npus_that_look_alike_share_a_column)
{
	/* From NPU 1000 on, over the end, to NPU 9; and NPU 0 to 99. */
	struct npumem_tensor a = tensor_of("a", 34, INT64_C(1000) * 65536, "ok"),
			     b = tensor_of("b", 100, 4096, "ok");
	const struct npumem_tensor *const tensors[] = {&a, &b};
	struct svg_columns columns;
	char text[SVG_BYTES_TEXT];
	svg_columns_of(&columns, &many, tensors, 2);
	ck_assert_int_eq(columns.n, 4);
	const int64_t first[] = {0, 10, 100, 1000, 1024};
	for (unsigned i = 0; i < 5; i++)
		ck_assert_int_eq(columns.first[i], first[i]);
	ck_assert_str_eq(svg_columns_name(&columns, 2, text), "NPU 100 to 999");
	for (int64_t npu = 0; npu < 1024; npu++) {
		ck_assert_int_eq(picture_holds(&many, &a.place, npu), npu < 10 || npu >= 1000);
		ck_assert_int_eq(picture_holds(&many, &b.place, npu), npu < 100);
	}
	char *drawing = device(tensors, 2, &(struct svg_device){.uid = 0});
	ck_assert_ptr_nonnull(strstr(drawing, "<title>a: data, NPU 1000 to 1023, offsets 0 to 127</title>"));
	ck_assert_ptr_nonnull(strstr(drawing, "<title>b: empty, NPU 100 to 999, offsets 4096 to 4223</title>"));
	ck_assert_ptr_nonnull(strstr(drawing, "NPUs that look alike share a column"));
	free(drawing);
}

/* A mark and its word in the legend, only where it occurs. */
TEST(states_are_marked)
{
	struct npumem_tensor a = tensor_of("a", 3, 0, "ok"), b = tensor_of("b", 3, 128, "damaged");
	struct npumem_tensor c = tensor_of("c", 3, 256, "partly written");
	const struct npumem_tensor *const tensors[] = {&a, &b, &c};
	char *text = device(tensors, 1, &(struct svg_device){.uid = 0});
	ck_assert_ptr_null(strstr(text, "sealed"));
	ck_assert_ptr_null(strstr(text, "damaged"));
	ck_assert_ptr_null(strstr(text, "never written"));
	ck_assert_ptr_null(strstr(text, "dummy</text>"));
	free(text);
	a.sealed = true;
	text = device(tensors, 3, &(struct svg_device){.uid = 0});
	ck_assert_ptr_nonnull(strstr(text, "<title>sealed</title>"));
	ck_assert_ptr_nonnull(strstr(text, "<title>damaged</title>"));
	ck_assert_ptr_nonnull(strstr(text, "<title>never written</title>"));
	free(text);
}

/* To scale 64 KiB are 960 high, so that 32 KiB free are 480. */
TEST(heights_to_scale)
{
	struct npumem_tensor a = tensor_of("a", 3, 32768, "ok");
	const struct npumem_tensor *const tensors[] = {&a};
	char *text = device(tensors, 1, &(struct svg_device){.to_scale = true, .hidden = true});
	ck_assert_ptr_nonnull(strstr(text,
				     "height=\"480.00\" class=\"k k64\"><title>free, or another uid's: all NPUs, "
				     "offsets 0 to 32767, 32768 bytes each"));
	ck_assert_ptr_nonnull(strstr(text, "height=\"1.88\" class=\"k k8"));
	free(text);
}

TEST(no_byte_of_a_name_breaks_the_file)
{
	struct npumem_tensor a = tensor_of("<\x01&\">", 3, 0, "ok");
	const struct npumem_tensor *const tensors[] = {&a};
	char *text = device(tensors, 1, &(struct svg_device){.uid = 0});
	ck_assert_ptr_nonnull(strstr(text, "&lt;?&amp;\"&gt;: data"));
	ck_assert_ptr_null(strchr(text, '\x01'));
	free(text);
}

TEST(addresses_on_large_devices)
{
	const int64_t addresses[] = {0, INT64_C(700) * 65536 + 32768, INT64_C(1024) * 65536 - 1};
	char *text = NULL;
	size_t bytes;
	FILE *out = open_memstream(&text, &bytes);
	svg_address_draw(out, &many, addresses, 3);
	fclose(out);
	ck_assert_ptr_nonnull(strstr(text, ">B = 45907968: NPU 700, offset 32768<"));
	ck_assert_ptr_nonnull(strstr(text, "C: address 67108863 = 1023 * 65536 + 65535; NPU 1023, offset 65535"));
	ck_assert_ptr_nonnull(strstr(text, ">NPU 1 to 699<"));
	free(text);
}

/* Rows of 16 of 128 bytes; and every second block row of 1000 n. */
TEST(kinds_that_take_turns_have_their_shares)
{
	struct npumem_tensor a = tensor_of("a", 3, 0, "ok");
	const struct npumem_tensor *const tensors[] = {&a};
	struct npumem_spec spec;
	npumem_spec_init(&spec);
	spec.layout = NPUMEM_MATRIX;
	spec.rows = 400;
	spec.cols = 64;
	spec.w = 16;
	spec.address = 0;
	ck_assert_int_eq(npumem_place_resolve(&many, &spec, &a.place, NULL), 0);
	char *text = device(tensors, 1, &(struct svg_device){.uid = 0});
	ck_assert_ptr_nonnull(
		strstr(text, "<title>a: data, 12.5 % of, NPU 0 to 3, offsets about 0 to 51199</title>"));
	ck_assert_ptr_nonnull(strstr(text, "<title>a: padding, 87.5 % of, NPU 0 to 3,"));
	free(text);
	npumem_spec_init(&spec);
	spec.layout = NPUMEM_COMPACT;
	spec.shape = (struct npumem_dims){1000, 1025, 1, 4};
	spec.address = 0;
	ck_assert_int_eq(npumem_place_resolve(&many, &spec, &a.place, NULL), 0);
	text = device(tensors, 1, &(struct svg_device){.uid = 0});
	ck_assert_ptr_nonnull(strstr(text, "<title>a: empty, 50 % of, NPU 1 to 1023,"));
	ck_assert_ptr_nonnull(strstr(text, "<title>a: data, NPU 0, "));
	free(text);
}

/* The picture of many features is cut, and says so. */
TEST(features_of_large_tensors)
{
	struct npumem_tensor a = tensor_of("a", 10000, 0, "ok");
	char *text = NULL;
	size_t bytes;
	FILE *out = open_memstream(&text, &bytes);
	svg_tensor_features(out, &many, &a, 0);
	fclose(out);
	ck_assert_ptr_nonnull(strstr(text, "the first 1 of 1 n and 4 of 10 block rows"));
	ck_assert_ptr_nonnull(strstr(text, "feature (0,4095); NPU 1023, block row 3, offset 384"));
	free(text);
}
