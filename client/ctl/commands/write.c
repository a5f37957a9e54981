/* write: an .npy file into a tensor. */
#include "client/ctl/command.h"

#include <inttypes.h>

#include "client/ctl/core/arrays/stream.h"
#include "client/ctl/core/memory.h"
#include "client/ctl/core/output/output.h"
#include "client/ctl/core/words/words.h"

static const struct option write_options[] = {
	{"--quantize", NULL, "takes float32 or float64: fx = Round(real * 2^frac_bits), saturated", false},
	{"--rounding", "R", "of --quantize: convergent, up, nearest; left out: the device's", false},
	{NULL, NULL, NULL, false},
};

static int write_send(struct ctl *ctl, const struct npumem_tensor *tensor, const struct array *array,
		      const char *path, bool quantize, int rounding, void *data)
{
	const struct npumem_info *info = NULL;
	int64_t saturated = 0;
	if (quantize && !rounding && npumem_info(ctl->npumem, &info, &ctl->error))
		return CTL_FAILED;
	if (array_load(path, &tensor->place, array, quantize, info ? info->rounding : rounding, data, &saturated,
		       &ctl->error) ||
	    npumem_write(ctl->npumem, tensor, data, array->bytes, &ctl->error))
		return CTL_FAILED;
	if (ctl->json)
		return ctl_print(ctl, json_pack("{s:I, s:I}", "elements", (json_int_t)array->n, "saturated",
						(json_int_t)saturated));
	if (quantize)
		printf("%zu element%s written, %" PRId64 " saturated\n", array->n, present_s(array->n), saturated);
	else
		printf("%zu element%s written\n", array->n, present_s(array->n));
	return CTL_OK;
}

static int write_run(struct ctl *ctl, const struct args *args)
{
	const struct npumem_tensor *tensor;
	struct array array;
	bool quantize = args_has(args, "--quantize");
	int rounding = 0;
	if (spec_name(args, "--rounding", "rounding", npumem_rounding_parse, npumem_rounding_name, &rounding,
		      &ctl->error))
		return CTL_USAGE;
	if (rounding && !quantize)
		return ctl_usage(ctl, "--rounding goes with --quantize");
	int code = ctl_open(ctl, args->words[0], &tensor);
	if (code)
		return code;
	if (array_of(tensor, &array, &ctl->error))
		return CTL_FAILED;
	if (quantize && !npumem_dtype_is_fixed(tensor->place.dtype))
		return ctl_invalid(ctl, "--quantize is for fx8 and fx16; %s is %s", args->words[0],
				   npumem_dtype_name(tensor->place.dtype));
	void *data = memory_data(array.bytes, 1);
	return data ? write_send(ctl, tensor, &array, args->words[1], quantize, rounding, data)
		    : ctl_fail(ctl, "no memory for an array of %zu bytes", array.bytes);
}

const struct command write_command = {
	.options = write_options,
	.least = 2,
	.most = 2,
	.run = write_run,
	.notes = "The array has the tensor's extents in the order N,C,H,W (of a matrix: rows, cols); extents of 1 "
		 "may "
		 "be left out\n"
		 "or added: (8,) fits [1,8,1,1]. Its type is the container: int8 for fx8, int16 for fx16.",
};
