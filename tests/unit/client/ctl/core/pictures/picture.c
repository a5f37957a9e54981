/* Pictures of places whose blocks are known: the seed's figures and a tensor of two block rows. */
#include <stdlib.h>
#include <string.h>

#include "client/ctl/core/pictures/picture.h"
#include "client/ctl/core/pictures/svg.h"
#include "tests/support/test.h"

static const struct npumem_geometry four = {.n_npus = 4, .npu_bytes = 1024, .n_banks = 4, .eu_bytes = 128};

static const struct picture_look piped = {.width = 0};

static struct npumem_tensor tensor_of(const char *name, int dtype, struct npumem_dims shape, int mode,
				      int64_t address)
{
	struct npumem_tensor tensor = {.handle = 1, .state = "ok"};
	struct npumem_spec spec;
	npumem_spec_init(&spec);
	spec.dtype = dtype;
	spec.shape = shape;
	spec.mode = mode;
	spec.address = address;
	strcpy(tensor.name, name);
	ck_assert_int_eq(npumem_place_resolve(&four, &spec, &tensor.place, NULL), 0);
	return tensor;
}

static unsigned count(const char *text, const char *what)
{
	unsigned n = 0;
	for (const char *at = strstr(text, what); at; at = strstr(at + 1, what))
		n++;
	return n;
}

/* What a picture prints; the caller frees. */
/* Of one tensor or none. */
static char *drawn(const struct npumem_tensor *tensor, unsigned n, int what)
{
	const struct npumem_tensor *const tensors[] = {tensor};
	char *text = NULL;
	size_t bytes;
	FILE *out = open_memstream(&text, &bytes);
	ck_assert_ptr_nonnull(out);
	if (what == 't')
		picture_place(out, &four, &tensor->place, &piped);
	else if (what == 'd' || what == 'h')
		picture_device(out, &four, tensors, n, 0, what == 'h', &piped);
	else if (what == 'T')
		svg_tensor_draw(out, &four, tensor, 0, NULL);
	else
		svg_device_draw(out, &four, tensors, n, &(struct svg_device){.uid = 0});
	fclose(out);
	return text;
}

TEST(block_rows)
{
	struct npumem_tensor tensor = tensor_of("t", NPUMEM_INT8, (struct npumem_dims){1, 5, 4, 8}, 0, 0);
	char *text = drawn(&tensor, 1, 't');
	ck_assert_ptr_nonnull(strstr(text, "           0  ####### ####### ####### #######\n"
					   "          32  ------- ------- ------- -------\n"));
	ck_assert_ptr_nonnull(strstr(text, "         128  ####### ....... ....... .......\n"
					   "         160  ------- ....... ....... .......\n"));
	free(text);
}

/* The seed's stride_local_1: NPU 0 holds none of it. */
TEST(no_padding_where_there_is_none_of_it)
{
	struct npumem_tensor tensor = {.state = "ok"};
	struct npumem_spec spec;
	npumem_spec_init(&spec);
	spec.dtype = NPUMEM_FP32;
	spec.layout = NPUMEM_STRIDED;
	spec.shape = (struct npumem_dims){2, 3, 1, 10};
	spec.stride = (struct npumem_dims){120, 0, 0, 2};
	spec.address = 1024;
	ck_assert_int_eq(npumem_place_resolve(&four, &spec, &tensor.place, NULL), 0);
	char *text = drawn(&tensor, 1, 't');
	ck_assert_ptr_nonnull(strstr(text, "           0  ....... +++++++ +++++++ +++++++\n"
					   "          76  ....... ------- ------- -------\n"));
	free(text);
}

TEST(rows_that_look_alike_are_one)
{
	struct npumem_tensor tensor = tensor_of("t", NPUMEM_INT8, (struct npumem_dims){1, 18, 1, 128}, 0, 256);
	/* Starts at NPU 0: rows 0 to 3 are full, row 4 has two channels. */
	char *text = drawn(&tensor, 1, 't');
	ck_assert_ptr_nonnull(strstr(text, "block rows 0 to 3, all alike\n"));
	ck_assert_ptr_nonnull(strstr(text, "block row 4\n         512  ####### ####### ....... .......\n"));
	free(text);
	text = drawn(&tensor, 1, 'd');
	ck_assert_ptr_nonnull(strstr(text, "           0  256 bytes free\n"
					   "         256  AAAAAAA AAAAAAA AAAAAAA AAAAAAA\n"
					   "              (3 more such rows)\n"
					   "         768  AAAAAAA AAAAAAA ....... .......\n"
					   "         896  128 bytes free\n"));
	free(text);
}

/* Without the colours: the columns that a line takes. */
static unsigned columns_of(const char *line)
{
	unsigned n = 0;
	for (; *line; line++) {
		if (*line == '\033')
			line = strchr(line, 'm');
		else
			n++;
	}
	return n;
}

/* A tensor, and the device with it, on a terminal. */
static char *on_terminal(const struct npumem_geometry *geometry, const struct npumem_tensor *tensor,
			 const struct picture_look *look)
{
	const struct npumem_tensor *const tensors[] = {tensor};
	char *text = NULL, *fitted = NULL;
	size_t bytes;
	FILE *out = open_memstream(&text, &bytes);
	picture_place(out, geometry, &tensor->place, look);
	picture_device(out, geometry, tensors, 1, 0, true, look);
	picture_features(out, geometry, &tensor->place, look->width);
	fclose(out);
	out = open_memstream(&fitted, &bytes);
	picture_fit(out, text, look->width);
	fclose(out);
	free(text);
	return fitted;
}

TEST(no_line_is_wider_than_a_terminal)
{
	for (int64_t n_npus = 1; n_npus <= 1024; n_npus = n_npus * 3 + 1)
		for (unsigned width = 24; width <= 300; width = width * 2 - 8) {
			struct npumem_geometry geometry = four;
			struct npumem_tensor tensor =
				tensor_of("a_name_that_is_as_long_as_names_may_be_so_that_it_needs_2_lines",
					  NPUMEM_INT8, (struct npumem_dims){1, 1, 1, 1}, 0, 0);
			struct picture_look look = {.width = width, .colours = n_npus % 2};
			struct npumem_spec spec;
			geometry.n_npus = n_npus;
			npumem_spec_init(&spec);
			spec.shape = (struct npumem_dims){1, 2 * n_npus + 1, 1, 100};
			spec.address = 0;
			ck_assert_int_eq(npumem_place_resolve(&geometry, &spec, &tensor.place, NULL), 0);
			char *text = on_terminal(&geometry, &tensor, &look);
			ck_assert_int_eq(strchr(text, '\033') != NULL, look.colours);
			for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"))
				ck_assert_msg(columns_of(line) <= width, "%u: %s", width, line);
			free(text);
		}
}

/* align_fp32_start_2_2_3_4_5: 120 elements, 12 blocks appended to each of 6 features, the rest of 4 * 128 empty.
 */
TEST(the_seeds_aligned_figure)
{
	struct npumem_tensor tensor = tensor_of("t", NPUMEM_FP32, (struct npumem_dims){2, 3, 4, 5}, 0, 2 * 1024);
	char *text = drawn(&tensor, 1, 'T');
	ck_assert_uint_eq(count(text, "class=\"k k8"), 120 + 1); /* and the legend's */
	ck_assert_uint_eq(count(text, "class=\"k k4\""), 0);
	ck_assert_uint_eq(count(text, "class=\"k k2\""), 72 + 1);
	ck_assert_uint_eq(count(text, "class=\"k k1\""), 320 + 1);
	ck_assert_uint_eq(count(text, ">1,2,3,4<"), 1);
	free(text);
}

/* aligned_4N: int8 (6,5,4,5): two packed n, of which the last has two elements and two dummies in each word: each
 * is drawn. */
TEST(the_seeds_4n_figure)
{
	struct npumem_tensor tensor =
		tensor_of("t", NPUMEM_INT8, (struct npumem_dims){6, 5, 4, 5}, NPUMEM_MODE_4N, 0);
	char *text = drawn(&tensor, 1, 'T');
	ck_assert_uint_eq(count(text, "class=\"k k8"), 6 * 5 * 20 + 1);
	ck_assert_uint_eq(count(text, "class=\"k k4\""), 2 * 5 * 20 + 1);
	free(text);
}

TEST(names_are_escaped)
{
	struct npumem_tensor tensor = tensor_of("a<b>&c", NPUMEM_INT8, (struct npumem_dims){1, 1, 1, 1}, 0, 0);
	char *text = drawn(&tensor, 1, 'D');
	ck_assert_ptr_nonnull(strstr(text, "a&lt;b&gt;&amp;c"));
	ck_assert_ptr_null(strstr(text, "<b>"));
	free(text);
}

TEST(tensors_without_a_place_are_left_out)
{
	struct npumem_tensor tensors[2] = {
		[1] = tensor_of("t", NPUMEM_INT8, (struct npumem_dims){1, 1, 1, 1}, 0, 0)};
	unsigned n;
	const struct npumem_tensor **sorted =
		picture_sort((const struct npumem_tensor *const[]){&tensors[0], &tensors[1]}, 2, &n);
	ck_assert_uint_eq(n, 1);
	ck_assert_ptr_eq(sorted[0], &tensors[1]);
	char *text = drawn(tensors, 0, 'd');
	ck_assert_ptr_nonnull(strstr(text, "1024 bytes free\n"));
	free(text);
	text = drawn(tensors, 0, 'h');
	ck_assert_ptr_nonnull(strstr(text, "1024 bytes free, or another uid's\n"));
	free(text);
}
