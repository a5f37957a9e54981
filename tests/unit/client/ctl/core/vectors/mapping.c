/* Vectors to runs: dimensions, parameters, placements. */
#include <stdlib.h>
#include <string.h>

#include "client/ctl/core/vectors/vectors.h"
#include "tests/support/test.h"

static json_t *json;
static struct vectors_case one;
static struct npumem_error error;

static int load(const char *text)
{
	json_error_t why;
	json = json_loads(text, 0, &why);
	ck_assert_msg(json != NULL, "%s", why.text);
	npumem_error_clear(&error);
	return vectors_case(json, &one, &error);
}

static void drop(void)
{
	vectors_case_deinit(&one);
	json_decref(json);
}

#define CASE(kernel, params, tensors)                                                                             \
	"{\"name\": \"x\", \"kernel\": \"" kernel "\", \"rounding\": \"up\", \"params\": {" params                \
	"}, \"tensors\": {" tensors "}}"
#define TENSOR(role, dtype, dims, shape, data)                                                                    \
	"\"" role "\": {\"role\": \"weights\", \"dtype\": \"" dtype "\", \"dims\": [" dims                        \
	"], \"shape\": [" shape "], \"frac_bits\": 3, \"data\": [" data "]}"

/* The N,C,H,W that the only tensor of a case gets, and its data in that order. */
static void expect(const char *text, const char *shape, const char *data)
{
	struct mapping mapping;
	char got[64], values[256] = "";
	ck_assert_msg(!load(text), "%s", error.message);
	ck_assert_msg(!mapping_tensor(&one, &one.tensors[0], &mapping, &error), "%s", error.message);
	snprintf(got, sizeof(got), "%d,%d,%d,%d", (int)mapping.shape.n, (int)mapping.shape.c, (int)mapping.shape.h,
		 (int)mapping.shape.w);
	ck_assert_str_eq(got, shape);
	int16_t packed[64];
	mapping_pack(&one.tensors[0], &mapping, packed);
	for (size_t i = 0; i < one.tensors[0].n; i++) {
		int64_t value = mapping_value(one.tensors[0].dtype, packed, i);
		ck_assert_int_eq(value, mapping_expected(&one.tensors[0], &mapping, i));
		snprintf(values + strlen(values), sizeof(values) - strlen(values), "%d ", (int)value);
	}
	ck_assert_str_eq(values, data);
	drop();
}

TEST(four_dims)
{
	/* Feature maps stay; OIHW becomes [I,O,kh,kw]; [M,N] becomes [K,M,1,1]. */
	expect(CASE("relu", "", TENSOR("in", "fx16", "\"N\",\"C\",\"H\",\"W\"", "1,2,1,2", "1,2,3,-4")), "1,2,1,2",
	       "1 2 3 -4 ");
	expect(CASE("conv2d", "",
		    TENSOR("weights", "fx8", "\"O\",\"I\",\"H\",\"W\"", "2,3,1,2", "1,2,3,4,5,6,7,8,9,10,11,12")),
	       "3,2,1,2", "1 2 7 8 3 4 9 10 5 6 11 12 ");
	expect(CASE("fully_connected", "", TENSOR("weights", "fx16", "\"M\",\"N\"", "2,3", "1,2,3,4,5,6")),
	       "3,2,1,1", "1 4 2 5 3 6 ");
	expect(CASE("fully_connected", "", TENSOR("in", "fx16", "\"N\"", "3", "1,2,3")), "1,3,1,1", "1 2 3 ");
	expect(CASE("conv2d", "", TENSOR("bias", "fx16", "\"O\"", "2", "1,2")), "1,2,1,1", "1 2 ");
	expect(CASE("leaky_relu", "", TENSOR("slope", "fx16", "\"S\"", "1", "7")), "1,1,1,1", "7 ");
	/* Cells: a step is an n, a gate is an n. */
	expect(CASE("lstm_cell", "", TENSOR("in", "fx16", "\"T\",\"N\"", "2,3", "1,2,3,4,5,6")), "2,3,1,1",
	       "1 2 3 4 5 6 ");
	expect(CASE("lstm_cell", "", TENSOR("weights_in", "fx16", "\"G\",\"M\",\"N\"", "2,1,3", "1,2,3,4,5,6")),
	       "2,1,1,3", "1 2 3 4 5 6 ");
	expect(CASE("basic_rnn_cell", "", TENSOR("weights", "fx16", "\"M\",\"N+M\"", "2,3", "1,2,3,4,5,6")),
	       "1,2,1,3", "1 2 3 4 5 6 ");
	expect(CASE("permute", "", TENSOR("in", "fx16", "\"d0\",\"d1\",\"d2\"", "1,2,3", "1,2,3,4,5,6")),
	       "1,1,2,3", "1 2 3 4 5 6 ");
	expect(CASE("argmax", "", TENSOR("out", "i32", "\"one\",\"K\"", "1,2", "1,2")), "1,2,1,1", "1 2 ");
	expect(CASE("argmax", "", TENSOR("out", "i32", "\"C\",\"K\"", "2,1", "1,2")), "1,2,1,1", "1 2 ");
	ck_assert_int_eq(load(CASE("x", "", TENSOR("in", "fx16", "\"Q\"", "1", "1"))), 0);
	ck_assert_int_ne(mapping_tensor(&one, &one.tensors[0], &(struct mapping){.from = {0}}, &error), 0);
	ck_assert_str_eq(error.message, "in has dims Q, which have no place in N,C,H,W");
	drop();
}

static const struct npumem_kernel_row conv2d = {
	.name = "conv2d", .roles = "in weights bias? >out", .parameters = "stride padding dilation relu"};

static int64_t value_of(const struct npumem_param *params, unsigned n, int number, unsigned i)
{
	for (unsigned k = 0; k < n; k++)
		if (params[k].number == number && i < params[k].n_values)
			return params[k].values[i];
	return -1;
}

TEST(parameters)
{
	struct npumem_param params[NPUMEM_PARAMS_MAX];
	unsigned n;
	load(CASE("conv2d",
		  "\"stride\": [3,2], \"padding\": {\"left\": 3, \"top\": 1, \"right\": 4, \"bottom\": 2}, "
		  "\"dilation\": [1,1], "
		  "\"groups\": 1, \"relu\": \"6\", \"op\": \"add\", \"scalar_operand\": null",
		  TENSOR("bias", "fx16", "\"O\"", "2", "1,2")));
	ck_assert_msg(!mapping_params(&one, &conv2d, params, &n, &error), "%s", error.message);
	ck_assert_uint_eq(n, 5);
	ck_assert_int_eq(value_of(params, n, NPUMEM_PARAM_STRIDE, 0), 3);
	for (unsigned i = 0; i < 4; i++)
		ck_assert_int_eq(value_of(params, n, NPUMEM_PARAM_PADDING, i),
				 i + 1); /* top, bottom, left, right */
	ck_assert_int_eq(value_of(params, n, NPUMEM_PARAM_RELU, 0), 4);
	ck_assert_int_eq(value_of(params, n, NPUMEM_PARAM_ROUNDING, 0), NPUMEM_UP);
	drop();
	load(CASE("conv2d", "\"colour\": 1", TENSOR("bias", "fx16", "\"O\"", "2", "1,2")));
	ck_assert_int_ne(mapping_params(&one, &conv2d, params, &n, &error), 0);
	ck_assert_str_eq(error.message, "conv2d has no such parameter: colour");
	drop();
	load(CASE("conv2d", "\"padding\": {\"top\": 1}", TENSOR("bias", "fx16", "\"O\"", "2", "1,2")));
	ck_assert_int_ne(mapping_params(&one, &conv2d, params, &n, &error), 0);
	drop();
}

TEST(cases_that_are_wrong)
{
	static const char *const wrong[] = {
		"{}",
		"[]",
		"{\"name\": \"x\", \"kernel\": \"k\", \"tensors\": []}",
		CASE("k", "", TENSOR("in", "fx9", "\"N\"", "1", "1")),
		CASE("k", "", TENSOR("in", "fx16", "\"N\"", "2", "1")),
		CASE("k", "", TENSOR("in", "fx16", "\"N\"", "0", "")),
		CASE("k", "", TENSOR("in", "fx16", "\"N\",\"M\"", "1", "1")),
		CASE("k", "", TENSOR("in", "fx8", "\"N\"", "1", "128")),
		CASE("k", "", TENSOR("in", "fx8", "\"N\"", "1", "1.5")),
		CASE("k", "", TENSOR("in", "fp32", "\"N\"", "1", "1")),
		CASE("k", "", TENSOR("in", "fx8", "1", "1", "1")),
		CASE("k", "", TENSOR("in", "fx8", "\"N\",\"N\",\"N\"", "4000000,4000000,4000000", "1")),
		CASE("k", "", TENSOR("a_role_that_is_longer_than_any", "fx8", "\"N\"", "1", "1")),
	};
	for (unsigned i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		ck_assert_msg(load(wrong[i]) != 0, "%s", wrong[i]);
		json_decref(json);
	}
}

TEST(placements)
{
	struct npumem_geometry geometry;
	struct npumem_spec spec;
	struct mapping mapping;
	npumem_geometry_default(&geometry);
	load(CASE("k", "",
		  TENSOR("in", "fx8", "\"N\",\"C\",\"H\",\"W\"", "1,2,1,2",
			 "1,2,3,4") "," TENSOR("m", "fx16", "\"M\",\"N\"", "2,2", "1,2,3,4")));
	unsigned map = strcmp(one.tensors[0].role, "in") ? 0 : 1, matrix = map;
	map = 1 - map;
	ck_assert_int_eq(mapping_tensor(&one, &one.tensors[map], &mapping, NULL), 0);
	/* 8 bits take 4n, not 2n; a feature map is no matrix. */
	variant_spec(&(struct variant){NPUMEM_COMPACT, NPUMEM_MODE_4N, 3}, &geometry, &one.tensors[map], &mapping,
		     &spec);
	ck_assert_int_eq(spec.layout, NPUMEM_COMPACT);
	ck_assert_int_eq(spec.mode, NPUMEM_MODE_4N);
	ck_assert_int_eq(spec.start_npu, 3);
	ck_assert_int_eq(spec.frac_bits, 3);
	variant_spec(&(struct variant){NPUMEM_MATRIX, NPUMEM_MODE_2N, 3}, &geometry, &one.tensors[map], &mapping,
		     &spec);
	ck_assert_int_ne(spec.layout, NPUMEM_MATRIX);
	ck_assert_int_ne(spec.mode, NPUMEM_MODE_2N);
	ck_assert_int_eq(spec.start_npu, 3);
	variant_spec(&(struct variant){NPUMEM_STRIDED, NPUMEM_MODE_PLAIN, 63}, &geometry, &one.tensors[map],
		     &mapping, &spec);
	ck_assert_int_eq(spec.layout, NPUMEM_STRIDED);
	ck_assert_int_eq(npumem_place_resolve(&geometry, &spec, &(struct npumem_place){.dtype = 0}, NULL), 0);
	ck_assert_int_eq(mapping_tensor(&one, &one.tensors[matrix], &mapping, NULL), 0);
	variant_spec(&(struct variant){NPUMEM_MATRIX, NPUMEM_MODE_2N, 0}, &geometry, &one.tensors[matrix],
		     &mapping, &spec);
	ck_assert_int_eq(spec.layout, NPUMEM_MATRIX);
	ck_assert_int_eq(spec.rows, 2);
	ck_assert_int_eq(spec.mode, NPUMEM_MODE_2N);
	drop();
}
