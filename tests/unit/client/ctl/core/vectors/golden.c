/* Recording undoes what conform does: every golden vector, laid out for the device and recorded from there, is
 * again what it was. */
#include <dirent.h>
#include <stdlib.h>
#include <string.h>

#include "client/ctl/core/memory.h"
#include "client/ctl/core/vectors/vectors.h"
#include "tests/support/test.h"

#define VECTORS "tests/conformance/vectors"

static unsigned n_cases, n_families;

static bool same_params(const struct npumem_param *a, unsigned n_a, const struct npumem_param *b, unsigned n_b)
{
	unsigned n_same = 0;
	for (unsigned i = 0; i < n_a; i++)
		for (unsigned k = 0; k < n_b; k++)
			n_same += a[i].number == b[k].number && a[i].n_values == b[k].n_values &&
				  !memcmp(a[i].values, b[k].values, a[i].n_values * sizeof(a[i].values[0]));
	return n_a == n_b && n_same == n_a;
}

/* Params without rounding: "any" asks for none, and comes back as the device's. */
static unsigned params_of(const struct vectors_case *one, const struct npumem_kernel_row *row,
			  struct npumem_param params[NPUMEM_PARAMS_MAX])
{
	struct vectors_case silent = *one;
	struct npumem_error error = {.status = 0};
	unsigned n;
	silent.rounding = NULL;
	ck_assert_msg(!mapping_params(&silent, row, params, &n, &error), "%s: %s", one->name, error.message);
	return n;
}

static json_t *recorded(const struct vectors_case *one, const struct npumem_kernel_row *row)
{
	struct npumem_param params[NPUMEM_PARAMS_MAX];
	struct golden golden = {.row = row, .params = params, .rounding = NPUMEM_CONVERGENT};
	struct npumem_error error = {.status = 0};
	golden.n_params = params_of(one, row, params);
	if (one->rounding && strcmp(one->rounding, "any"))
		ck_assert_int_eq(npumem_param_parse("rounding", one->rounding, &params[golden.n_params++], &error),
				 0);
	for (unsigned i = 0; i < one->n_tensors; i++) {
		const struct vectors_tensor *tensor = &one->tensors[i];
		struct mapping mapping;
		ck_assert_int_eq(mapping_tensor(one, tensor, &mapping, &error), 0);
		void *data = memory_data(tensor->n, npumem_dtype_bytes(tensor->dtype));
		mapping_pack(tensor, &mapping, data);
		golden.tensors[golden.n_tensors++] = (struct golden_tensor){
			.role = tensor->role,
			.dtype = tensor->dtype,
			.mode = tensor->mode ? tensor->mode : NPUMEM_MODE_PLAIN,
			.frac_bits = tensor->frac_bits,
			.shape = mapping.shape,
			.data = data,
		};
		ck_assert_int_eq(golden_check(&golden.tensors[i], &error), 0);
	}
	json_t *json = golden_case(&golden, 7);
	ck_assert_ptr_nonnull(json);
	return json;
}

static void check_case(const json_t *original)
{
	struct vectors_case one, again;
	struct npumem_param before[NPUMEM_PARAMS_MAX], after[NPUMEM_PARAMS_MAX];
	struct npumem_error error = {.status = 0};
	char name[160];
	ck_assert_msg(!vectors_case(original, &one, &error), "%s", error.message);
	const struct npumem_kernel_row *row = npumem_kernel_by_name(one.kernel);
	ck_assert_msg(row != NULL, "%s", one.kernel);
	json_t *json = recorded(&one, row);
	json_t *was = json_deep_copy(json_object_get(original, "tensors")), *is = json_object_get(json, "tensors");
	/* What lies as [1,N,1,1] could have been either; a feature map's vectors are more often N,C,H,W. */
	if (!strcmp(one.kernel, "softmax"))
		for (void *at = json_object_iter(was); at; at = json_object_iter_next(was, at)) {
			json_t *tensor = json_object_iter_value(at);
			if (json_array_size(json_object_get(tensor, "dims")) != 1)
				continue;
			json_int_t n = json_integer_value(json_array_get(json_object_get(tensor, "shape"), 0));
			json_object_update_new(tensor, json_pack("{s:[ssss], s:[iIii]}", "dims", "N", "C", "H",
								 "W", "shape", 1, n, 1, 1));
		}
	ck_assert_msg(json_equal(was, is), "%s", one.name);
	ck_assert_msg(!vectors_case(json, &again, &error), "%s", error.message);
	ck_assert_msg(same_params(before, params_of(&one, row, before), after, params_of(&again, row, after)),
		      "%s: parameters", one.name);
	const char *dtype = json_string_value(json_object_get(original, "dtype"));
	if (!strcmp(dtype, "fx8w16d"))
		dtype = "fx16_fx8_fx8";
	const char *rounding = strcmp(one.rounding, "any") ? one.rounding : "convergent";
	if (!strcmp(row->types, "packed"))
		rounding = "up";
	snprintf(name, sizeof(name), "%s/%s/recorded7@%s", one.kernel, dtype, rounding);
	ck_assert_str_eq(again.name, name);
	ck_assert_str_eq(again.rounding, rounding);
	vectors_case_deinit(&again);
	vectors_case_deinit(&one);
	json_decref(was);
	json_decref(json);
	n_cases++;
}

TEST(every_vector)
{
	DIR *directory = opendir(VECTORS);
	ck_assert_ptr_nonnull(directory);
	for (const struct dirent *entry; (entry = readdir(directory));) {
		struct npumem_error error = {.status = 0};
		const json_t *cases;
		json_t *root;
		char path[512];
		if (!strstr(entry->d_name, ".json"))
			continue;
		snprintf(path, sizeof(path), VECTORS "/%s", entry->d_name);
		ck_assert_msg(!vectors_load(path, &root, &cases, &error), "%s", error.message);
		for (size_t i = 0; i < json_array_size(cases); i++)
			check_case(json_array_get(cases, i));
		n_families += json_array_size(cases) > 0;
		json_decref(root);
	}
	closedir(directory);
	ck_assert_uint_ge(n_families, 29);
	ck_assert_uint_ge(n_cases, 1000);
}

/* ---- what no golden vector has ---- */

static json_t *record_one(const char *kernel, const char *role, struct npumem_dims shape, const int8_t *data,
			  const struct npumem_param *params, unsigned n_params)
{
	struct golden golden = {
		.row = npumem_kernel_by_name(kernel),
		.params = params,
		.n_params = n_params,
		.rounding = NPUMEM_NEAREST,
		.tensors = {{role, NPUMEM_FX8, NPUMEM_MODE_4N, 3, shape, data}},
		.n_tensors = 1,
	};
	json_t *json = golden_case(&golden, 1);
	ck_assert_ptr_nonnull(json);
	return json;
}

static void expect(json_t *json, const char *key, const char *role, const char *text)
{
	json_t *of = json_object_get(json, key);
	if (role) {
		json_t *tensor = json_object_get(of, role);
		of = json_pack("[O, O, O]", json_object_get(tensor, "dims"), json_object_get(tensor, "shape"),
			       json_object_get(tensor, "data"));
	} else {
		json_incref(of);
	}
	char *is = json_dumps(of, JSON_COMPACT | JSON_ENCODE_ANY);
	ck_assert_str_eq(is, text);
	json_decref(of);
	json_decref(json);
}

TEST(other_shapes)
{
	static const int8_t data[] = {1, 2, 3, 4};
	/* Several vectors, or a feature map, into fully_connected. */
	expect(record_one("fully_connected", "in", (struct npumem_dims){2, 2, 1, 1}, data, NULL, 0), "tensors",
	       "in", "[[\"N\",\"C\",\"H\",\"W\"],[2,2,1,1],[1,2,3,4]]");
	expect(record_one("fully_connected", "weights", (struct npumem_dims){2, 2, 1, 1}, data, NULL, 0),
	       "tensors", "weights", "[[\"M\",\"N\"],[2,2],[1,3,2,4]]");
	/* A matrix of matmul; no storage mode where the operation is not packed. */
	json_t *json = record_one("matmul", "left", (struct npumem_dims){2, 2, 1, 1}, data, NULL, 0);
	ck_assert_ptr_null(json_object_get(json_object_get(json_object_get(json, "tensors"), "left"), "mode"));
	ck_assert_str_eq(json_string_value(json_object_get(json, "name")), "matmul/fx8/recorded1@nearest");
	expect(json, "tensors", "left", "[[\"N\",\"C\",\"H\",\"W\"],[2,2,1,1],[1,2,3,4]]");
}

static void expect_param(const char *kernel, const char *name, const char *text, struct npumem_dims shape,
			 const char *json)
{
	static const int8_t data[] = {1, 2, 3, 4};
	struct npumem_param param;
	ck_assert_int_eq(npumem_param_parse(name, text, &param, NULL), 0);
	expect(record_one(kernel, "in", shape, data, &param, 1), "params", NULL, json);
}

TEST(parameters)
{
	const struct npumem_dims one = {1, 2, 1, 2}, two = {2, 2, 1, 1};
	expect_param("conv2d", "padding", "1,2,3,4", one,
		     "{\"padding\":{\"top\":1,\"bottom\":2,\"left\":3,\"right\":4}}");
	expect_param("conv2d", "rounding", "up", one, "{}");
	expect_param("relu", "relu", "6", one, "{\"relu\":\"6\"}");
	expect_param("reduce_sum", "axes", "c,w", one, "{\"axes\":[\"C\",\"W\"]}");
	expect_param("softmax", "axis", "none", one, "{\"axis\":null}");
	expect_param("concat", "axis", "n", one, "{\"axis\":\"N\"}");
	/* Three numbers are of C,H,W; for several n the vectors need all four. */
	expect_param("permute", "perm", "2,0,1", one, "{\"perm_dim\":[2,0,1]}");
	expect_param("permute", "perm", "2,0,1", two, "{\"perm_dim\":[0,3,1,2]}");
	expect_param("permute", "perm", "0,3,1,2", one, "{\"perm_dim\":[2,0,1]}");
	expect_param("permute", "perm", "1,0,2,3", one, "{\"perm_dim\":[1,0,2,3]}");
	expect_param("lstm_cell", "lut", "mli1_1", one, "{\"luts\":[\"sigmoid_mli1_1\",\"tanh_mli1_1\"]}");
	expect_param("lstm_cell", "rules", "mli2_0", one, "{\"rules\":\"mli2_0\"}");
	expect_param("packed_add_c", "value_dtype", "int8", one, "{\"value_dtype\":\"int8\"}");
}

TEST(refused)
{
	struct npumem_error error = {.status = 0};
	struct golden_tensor tensor = {.role = "in", .dtype = NPUMEM_FP32, .shape = {1, 1, 1, 1}};
	ck_assert_int_eq(golden_check(&tensor, &error), NPUMEM_INVALID);
	ck_assert_str_eq(error.message, "in is fp32, and golden vectors hold integers only");
	npumem_error_clear(&error);
	tensor.dtype = NPUMEM_INT8;
	tensor.shape = (struct npumem_dims){1, 1, 1, VECTORS_ELEMENTS_MAX};
	ck_assert_int_eq(golden_check(&tensor, &error), 0);
	tensor.shape.n = 2;
	ck_assert_int_eq(golden_check(&tensor, &error), NPUMEM_INVALID);
}
