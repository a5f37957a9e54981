/* read: a tensor into an .npy file. */
#include "client/ctl/command.h"

#include <stdlib.h>

#include "client/ctl/core/arrays/array.h"

static const struct option read_options[] = {
	{"--dequantize", NULL, "as float32: real = fx / 2^frac_bits", false},
	{NULL, NULL, NULL, false},
};

static int read_into(struct ctl *ctl, const struct npumem_tensor *tensor, const struct array *array,
		     const char *path, bool dequantize, void *data)
{
	const struct npumem_done *done;
	if (npumem_read(ctl->npumem, tensor, data, array->bytes, &done, &ctl->error) ||
	    array_save(path, &tensor->place, array, dequantize, data, &ctl->error))
		return CTL_FAILED;
	ctl_warn(ctl, done->warning);
	if (ctl->json)
		return ctl_print(ctl, json_pack("{s:I, s:o}", "elements", (json_int_t)array->n, "warning",
						done->warning[0] ? json_string(done->warning) : json_null()));
	printf("%zu elements read\n", array->n);
	return CTL_OK;
}

static int read_run(struct ctl *ctl, const struct args *args)
{
	const struct npumem_tensor *tensor;
	struct array array;
	bool dequantize = args_has(args, "--dequantize");
	int code = ctl_open(ctl, args->words[0], &tensor);
	if (code)
		return code;
	if (array_of(tensor, &array, &ctl->error))
		return CTL_FAILED;
	if (dequantize && !npumem_dtype_is_fixed(tensor->place.dtype))
		return ctl_invalid(ctl, "--dequantize is for fx8 and fx16; %s is %s", args->words[0],
				   npumem_dtype_name(tensor->place.dtype));
	void *data = malloc(array.bytes);
	if (!data)
		return ctl_fail(ctl, "no memory for an array of %zu bytes", array.bytes);
	code = read_into(ctl, tensor, &array, args->words[1], dequantize, data);
	free(data);
	return code;
}

const struct command read_command = {
	.options = read_options,
	.least = 2,
	.most = 2,
	.run = read_run,
};
