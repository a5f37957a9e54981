/* read: a tensor into an .npy file. */
#include "client/ctl/command.h"

#include <string.h>

#include "client/ctl/core/arrays/stream.h"
#include "client/ctl/core/arrays/values.h"
#include "client/ctl/core/memory.h"
#include "client/ctl/core/output/output.h"

static const struct option read_options[] = {
	{"--dequantize", NULL, "as float32: real = fx / 2^frac_bits", false},
	{NULL, NULL, NULL, false},
};

/* The values themselves: as the container's integers, or as what they mean. */
static int read_print(struct ctl *ctl, const struct npumem_tensor *tensor, const struct array *array,
		      bool dequantize, void *data)
{
	const struct npumem_place *place = &tensor->place;
	const struct npumem_done *done;
	struct values values = {.n_dims = array->n_dims, .n = array->n};
	if (npumem_read(ctl->npumem, tensor, data, array->bytes, &done, &ctl->error))
		return CTL_FAILED;
	values.data = memory_data(array->n, sizeof(*values.data));
	if (!values.data)
		return ctl_fail(ctl, "no memory for %zu numbers", array->n);
	memcpy(values.shape, array->shape, sizeof(array->shape));
	values_decode(data, place->dtype, dequantize ? place->frac_bits : 0, &values);
	values.is_real = dequantize || place->dtype == NPUMEM_FP32;
	ctl_warn(ctl, done->warning);
	if (ctl->json)
		return ctl_print(ctl, json_pack("{s:o, s:o}", "values", values_json(&values), "warning",
						jsons_text(done->warning)));
	values_print(stdout, &values);
	return CTL_OK;
}

static int read_into(struct ctl *ctl, const struct npumem_tensor *tensor, const struct array *array,
		     const char *path, bool dequantize, void *data)
{
	const struct npumem_done *done;
	if (npumem_read(ctl->npumem, tensor, data, array->bytes, &done, &ctl->error) ||
	    array_save(path, &tensor->place, array, dequantize, data, &ctl->error))
		return CTL_FAILED;
	ctl_warn(ctl, done->warning);
	if (!strcmp(path, "-"))
		return CTL_OK;
	if (ctl->json)
		return ctl_print(ctl, json_pack("{s:I, s:o}", "elements", (json_int_t)array->n, "warning",
						jsons_text(done->warning)));
	printf("%zu element%s read\n", array->n, present_s(array->n));
	return CTL_OK;
}

static int read_run(struct ctl *ctl, const struct args *args)
{
	const struct npumem_tensor *tensor;
	struct array array;
	bool dequantize = args_has(args, "--dequantize"), file = args->n_words > 1;
	if (file && ctl->json && !strcmp(args->words[1], "-"))
		return ctl_usage(
			ctl, "with - the array is all that is on stdout; without a file --json prints the values");
	int code = ctl_open(ctl, args->words[0], &tensor);
	if (code)
		return code;
	if (array_of(tensor, &array, &ctl->error))
		return CTL_FAILED;
	if (dequantize && !npumem_dtype_is_fixed(tensor->place.dtype))
		return ctl_invalid(ctl, "--dequantize is for fx8 and fx16; %s is %s", args->words[0],
				   npumem_dtype_name(tensor->place.dtype));
	void *data = memory_data(array.bytes, 1);
	if (!data)
		return ctl_fail(ctl, "no memory for an array of %zu bytes", array.bytes);
	return file ? read_into(ctl, tensor, &array, args->words[1], dequantize, data)
		    : read_print(ctl, tensor, &array, dequantize, data);
}

const struct command read_command = {
	.options = read_options,
	.least = 1,
	.most = 2,
	.pipes = true,
	.run = read_run,
	.notes =
		"  npumemctl read x - | npumemctl write y -\n"
		"With - the .npy goes to stdout. Without a file the values are printed: the container's integers, "
		"or with\n"
		"--dequantize what they mean; with --json as nested arrays.",
};
