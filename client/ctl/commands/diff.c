/* diff: a tensor against an array. Real numbers are compared as such, integers with the container's. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "client/ctl/command.h"
#include "client/ctl/core/arrays/stream.h"
#include "client/ctl/core/arrays/values.h"
#include "client/ctl/core/memory.h"
#include "client/ctl/core/output/output.h"
#include "client/ctl/core/words/words.h"

static const struct option diff_options[] = {
	{"--within", "E", "counts two elements as the same if they differ by E or less", false},
	{"--perm", "P", "dimension i of the tensor is dimension P[i] of the array", false},
	{NULL, NULL, NULL, false},
};

static int diff_json(struct ctl *ctl, const struct compare *compare, const struct array *array, bool equal)
{
	json_t *index = json_array();
	int64_t at[4], rest = (int64_t)compare->first;
	for (unsigned d = array->n_dims; d-- > 0; rest /= array->shape[d])
		at[d] = rest % array->shape[d];
	for (unsigned d = 0; d < array->n_dims; d++)
		json_array_append_new(index, json_integer(at[d]));
	json_t *first = compare->n_differ
				? json_pack("{s:o, s:o, s:o}", "index", index, "is", jsons_real(compare->is),
					    "expected", jsons_real(compare->expected))
				: json_null();
	return ctl_print(ctl, json_pack("{s:b, s:I, s:I, s:o, s:o, s:o, s:o}", "equal", equal, "elements",
					(json_int_t)compare->n, "differ", (json_int_t)compare->n_differ, "first",
					first, "largest_error", jsons_real(compare->largest), "cosine",
					jsons_real(compare_cosine(compare)), "snr_db",
					jsons_real(compare_snr(compare))));
}

static int diff_tell(struct ctl *ctl, const struct compare *compare, const struct npumem_tensor *tensor,
		     const struct array *array, double within)
{
	bool equal = !compare->n_differ || compare->largest <= within;
	const struct npumem_info *info;
	char text[400];
	if (npumem_info(ctl->npumem, &info, &ctl->error))
		return CTL_FAILED;
	int code = ctl->json ? diff_json(ctl, compare, array, equal) : CTL_OK;
	if (code)
		return code;
	if (!compare->n_differ)
		snprintf(text, sizeof(text),
			 compare->n == 1 ? "its %zu element is the same" : "all %zu elements are the same",
			 compare->n);
	else
		compare_text(compare, &info->geometry, &tensor->place, text, sizeof(text));
	if (equal && !ctl->json)
		printf("%s%s\n", text, compare->n_differ ? ", within what is allowed" : "");
	return equal ? CTL_OK : ctl_invalid(ctl, "%s; cosine %.9g", text, compare_cosine(compare));
}

/* The tensor's elements as numbers of the file's kind. */
static int diff_read(struct ctl *ctl, const struct npumem_tensor *tensor, const struct array *array, bool is_real,
		     struct values *is)
{
	const struct npumem_place *place = &tensor->place;
	const struct npumem_done *done;
	void *data = memory_data(array->bytes, 1);
	*is = (struct values){.n = array->n, .data = memory_data(array->n, sizeof(*is->data))};
	int code = data && is->data ? CTL_OK : ctl_fail(ctl, "no memory for %zu elements", array->n);
	if (!code && npumem_read(ctl->npumem, tensor, data, array->bytes, &done, &ctl->error))
		code = CTL_FAILED;
	if (!code) {
		values_decode(data, place->dtype, is_real ? place->frac_bits : 0, is);
		ctl_warn(ctl, done->warning);
	}
	return code;
}

static int diff_values(struct ctl *ctl, const struct npumem_tensor *tensor, const struct values *expected,
		       double within)
{
	struct compare compare = {.n = 0};
	struct array array;
	struct values is;
	if (array_of(tensor, &array, &ctl->error))
		return CTL_FAILED;
	if (!npy_same_extents(array.shape, array.n_dims, expected->shape, expected->n_dims)) {
		char has[128], wants[128];
		return ctl_invalid(ctl, "the array has shape %s, %s has %s",
				   npy_shape_text(expected->shape, expected->n_dims, has, sizeof(has)),
				   tensor->name, npy_shape_text(array.shape, array.n_dims, wants, sizeof(wants)));
	}
	int code = diff_read(ctl, tensor, &array, expected->is_real, &is);
	if (!code) {
		compare_add_numbers(&compare, is.data, expected->data, array.n);
		code = diff_tell(ctl, &compare, tensor, &array, within);
	}
	return code;
}

static int diff_run(struct ctl *ctl, const struct args *args)
{
	const struct npumem_tensor *tensor;
	const char *text = args_value(args, "--within");
	struct values expected;
	double within = 0;
	if (text && (!numbers_real(text, &within) || !(within >= 0)))
		return ctl_usage(ctl, "--within \"%.40s\" is not a number from 0 on", text);
	if (values_read(args->words[1], args_value(args, "--perm"), &expected, &ctl->error))
		return CTL_FAILED;
	int code = ctl_open(ctl, args->words[0], &tensor);
	return code ? code : diff_values(ctl, tensor, &expected, within);
}

const struct command diff_command = {
	.options = diff_options,
	.least = 2,
	.most = 2,
	.run = diff_run,
	.notes = "An array of real numbers is compared with what the fixed-point numbers mean, one of integers "
		 "with the\n"
		 "integers of the container. Takes what load takes. Exits with 0 where nothing differs, else with "
		 "1.",
};
