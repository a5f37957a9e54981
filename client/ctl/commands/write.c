/* write: an array of a file into a tensor. */
#include "client/ctl/command.h"

#include <inttypes.h>

#include "client/ctl/core/arrays/values.h"
#include "client/ctl/core/memory.h"
#include "client/ctl/core/output/output.h"
#include "client/ctl/core/words/words.h"

static const struct option write_options[] = {
	{"--quantize", NULL, "takes real numbers: fx = Round(real * 2^frac_bits), saturated", false},
	{"--rounding", "R", "of --quantize: convergent, up, nearest; left out: the device's", false},
	{"--perm", "P", "dimension i of the tensor is dimension P[i] of the array: 1,0,2,3 makes IOHW of OIHW",
	 false},
	{NULL, NULL, NULL, false},
};

/* The array's numbers as the tensor has them; integers are containers, real numbers are rounded. */
static int write_encode(struct ctl *ctl, const struct npumem_place *place, const struct array *array,
			const struct values *values, bool quantize, int rounding, void *data, int64_t *saturated)
{
	char is[160], expected[160];
	bool fixed = npumem_dtype_is_fixed(place->dtype);
	if (!npy_same_extents(values->shape, values->n_dims, array->shape, array->n_dims))
		return ctl_invalid(ctl, "the array has shape %s; %s is expected",
				   npy_shape_text(values->shape, values->n_dims, is, sizeof(is)),
				   npy_shape_text(array->shape, array->n_dims, expected, sizeof(expected)));
	if (fixed && values->is_real != quantize)
		return ctl_invalid(
			ctl,
			quantize ? "the array has integers; --quantize is for real numbers"
				 : "the array has real numbers: --quantize rounds them to %s with %" PRId64
				   " fractional bits",
			npumem_dtype_name(place->dtype), place->frac_bits);
	return values_encode(values, place->dtype, place->frac_bits, rounding, data, saturated, &ctl->error)
		       ? CTL_FAILED
		       : CTL_OK;
}

static int write_send(struct ctl *ctl, const struct npumem_tensor *tensor, const struct args *args,
		      const struct array *array, const struct values *values, int rounding)
{
	bool quantize = args_has(args, "--quantize");
	void *data = memory_data(array->bytes, 1);
	int64_t saturated = 0;
	if (!data)
		return ctl_fail(ctl, "no memory for an array of %zu bytes", array->bytes);
	if (write_encode(ctl, &tensor->place, array, values, quantize, rounding, data, &saturated))
		return ctl_refuse(ctl, &ctl->error, "%.200s: %.300s", args->words[1], ctl->error.message);
	if (npumem_write(ctl->npumem, tensor, data, array->bytes, &ctl->error))
		return CTL_FAILED;
	if (ctl->json)
		return ctl_print(ctl, json_pack("{s:I, s:I}", "elements", (json_int_t)array->n, "saturated",
						(json_int_t)saturated));
	printf("%zu element%s written", array->n, present_s(array->n));
	if (quantize)
		printf(", %" PRId64 " saturated", saturated);
	putchar('\n');
	return CTL_OK;
}

static int write_run(struct ctl *ctl, const struct args *args)
{
	const struct npumem_tensor *tensor;
	const struct npumem_info *info;
	struct values values;
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
	if (quantize && !rounding) {
		if (ctl_info(ctl, &info))
			return CTL_FAILED;
		rounding = info->rounding;
	}
	if (values_read(args->words[1], args_value(args, "--perm"), &values, &ctl->error))
		return CTL_FAILED;
	return write_send(ctl, tensor, args, &array, &values, rounding);
}

const struct command write_command = {
	.options = write_options,
	.least = 2,
	.most = 2,
	.run = write_run,
	.notes = "Takes the files that load takes. The array has the tensor's extents in the order N,C,H,W (of a\n"
		 "matrix: rows, cols); extents of 1 may be left out or added: (8,) fits [1,8,1,1]. Integers are "
		 "the\n"
		 "tensor's own, of fx8 and fx16 those of the container: 24 is 1.5 with 4 fractional bits.",
};
