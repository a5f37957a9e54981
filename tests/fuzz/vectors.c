/* Golden vectors from JSON: every case read, mapped to N,C,H,W, packed and unpacked again, its parameters and its
 * places in every way that conform has. */
#include <string.h>

#include "client/ctl/core/memory.h"
#include "client/ctl/core/vectors/vectors.h"
#include "tests/fuzz/file.h"
#include "tests/fuzz/fuzz.h"

static void check_refused(int status, const struct npumem_error *error)
{
	if (status && (!error->message[0] || error->status != status))
		fuzz_fail("refused with %d and without a reason", status);
}

static void place(const struct vectors_tensor *tensor, const struct mapping *mapping)
{
	static const int layouts[] = {NPUMEM_ALIGNED, NPUMEM_COMPACT, NPUMEM_MATRIX, NPUMEM_STRIDED};
	struct npumem_geometry geometry;

	npumem_geometry_default(&geometry);
	for (unsigned i = 0; i < 8; i++) {
		struct variant variant = {layouts[i % 4], i < 4 ? NPUMEM_MODE_PLAIN : NPUMEM_MODE_4N, i * 5};
		struct npumem_error error = {.status = 0};
		struct npumem_place resolved;
		struct npumem_spec spec;

		npumem_spec_init(&spec);
		variant_spec(&variant, &geometry, tensor, mapping, &spec);
		check_refused(npumem_place_resolve(&geometry, &spec, &resolved, &error), &error);
	}
}

static void check_tensor(const struct vectors_case *one, const struct vectors_tensor *tensor)
{
	struct npumem_error error = {.status = 0};
	struct mapping mapping;
	void *packed;
	int status = mapping_tensor(one, tensor, &mapping, &error);

	check_refused(status, &error);
	if (status)
		return;
	packed = memory_data(tensor->n, npumem_dtype_bytes(tensor->dtype));
	mapping_pack(tensor, &mapping, packed);
	for (size_t i = 0; i < tensor->n; i++)
		if (mapping_value(tensor->dtype, packed, i) != mapping_expected(tensor, &mapping, i))
			fuzz_fail("element %zu is packed as another", i);
	place(tensor, &mapping);
}

static void check_case(const json_t *json)
{
	struct npumem_error error = {.status = 0};
	struct npumem_param params[NPUMEM_PARAMS_MAX];
	const struct npumem_kernel_row *row;
	struct vectors_case one;
	unsigned n_params;
	int status = vectors_case(json, &one, &error);

	check_refused(status, &error);
	if (status)
		return;
	for (unsigned i = 0; i < one.n_tensors; i++)
		check_tensor(&one, &one.tensors[i]);
	row = npumem_kernel_by_name(one.kernel);
	if (row)
		check_refused(mapping_params(&one, row, params, &n_params, &error), &error);
	vectors_case_deinit(&one);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
	struct npumem_error error = {.status = 0};
	const json_t *cases;
	json_t *root;
	int status = vectors_load(file_of(bytes, n), &root, &cases, &error);

	check_refused(status, &error);
	for (size_t i = 0; !status && i < json_array_size(cases); i++)
		check_case(json_array_get(cases, i));
	memory_end();
	return 0;
}
