/* load: an array into a tensor of its own, in one step. All that can be wrong with the file is found before the
 * tensor is allocated. */
#include <inttypes.h>

#include "client/ctl/command.h"
#include "client/ctl/core/arrays/values.h"
#include "client/ctl/core/memory.h"
#include "client/ctl/core/output/output.h"
#include "client/ctl/core/words/words.h"

static const struct option load_options[] = {
	SPEC_OPTIONS,
	{"--perm", "P", "dimension i of the tensor is dimension P[i] of the array: 1,0,2,3 makes IOHW of OIHW",
	 false},
	{"--rounding", "R", "of real numbers: convergent, up, nearest; left out: the device's", false},
	{"--dma-only", NULL, "no kernel may write it", false},
	{"--pinned", NULL, "compact leaves it where it is", false},
	{NULL, NULL, NULL, false},
};

/* The spec's shape from the array's, where the options have none. */
static int load_shape(struct ctl *ctl, const struct args *args, const struct values *values,
		      struct npumem_spec *spec)
{
	bool matrix = spec->layout == NPUMEM_MATRIX, given = args_has(args, matrix ? "--rows" : "--shape");
	int64_t n;
	if (matrix && !given && values->n_dims == 2) {
		spec->rows = values->shape[0];
		spec->cols = values->shape[1];
	} else if (matrix && !given) {
		return ctl_invalid(ctl, "a matrix takes an array of two dimensions, or --rows and --cols");
	} else if (!given) {
		return values_shape(values, &spec->shape, &ctl->error) ? CTL_FAILED : CTL_OK;
	}
	const struct npumem_dims *s = &spec->shape;
	bool over = matrix ? __builtin_mul_overflow(spec->rows, spec->cols, &n)
			   : __builtin_mul_overflow(s->n, s->c, &n) || __builtin_mul_overflow(n, s->h, &n) ||
				     __builtin_mul_overflow(n, s->w, &n);
	if (over || n != (int64_t)values->n)
		return ctl_invalid(ctl, "the array has %zu elements, the shape that is given has %s", values->n,
				   over ? "too many" : "another number of them");
	return CTL_OK;
}

static int load_format(struct ctl *ctl, const struct args *args, const struct values *values, int rounding,
		       struct npumem_spec *spec)
{
	if (!spec->dtype)
		spec->dtype = values->dtype;
	if (!spec->dtype)
		return ctl_usage(ctl, "--dtype is missing: no element type has the array's numbers as they are");
	if (!spec_is_auto(args))
		return CTL_OK;
	if (!values->is_real || !npumem_dtype_is_fixed(spec->dtype))
		return ctl_usage(ctl, "--frac-bits auto is for real numbers that become fx8 or fx16");
	return formats_auto(values, spec->dtype, rounding, &spec->frac_bits, &ctl->error) ? CTL_FAILED : CTL_OK;
}

static int load_tell(struct ctl *ctl, const struct npumem_tensor *tensor, int64_t n, int64_t saturated)
{
	char dtype[PRESENT_TEXT_BYTES], shape[PRESENT_TEXT_BYTES];
	if (!ctl->json) {
		printf("%s is %s %s at address %" PRId64 " (NPU %" PRId64 ", offset %" PRId64 "), %" PRId64
		       " bytes per NPU; %" PRId64 " element%s written, %" PRId64 " saturated\n",
		       tensor->name, present_dtype(&tensor->place, dtype), present_shape(&tensor->place, shape),
		       tensor->place.address, tensor->place.npu, tensor->place.offset, tensor->place.bytes_per_npu,
		       n, present_s((uint64_t)n), saturated);
		return CTL_OK;
	}
	json_t *object = present_whole(tensor);
	jsons_put(&object, "elements", json_integer(n));
	jsons_put(&object, "saturated", json_integer(saturated));
	return ctl_print(ctl, object);
}

static int load_write(struct ctl *ctl, const struct args *args, const struct npumem_spec *spec,
		      const struct values *values, int rounding, void *data)
{
	struct npumem_allocation allocation = NPUMEM_ALLOCATION_INIT;
	const struct npumem_tensor *tensor;
	int64_t saturated;
	allocation.spec = *spec;
	allocation.name = args->words[0];
	allocation.dma_only = args_has(args, "--dma-only");
	allocation.pinned = args_has(args, "--pinned");
	if (values_encode(values, spec->dtype, spec->frac_bits, rounding, data, &saturated, &ctl->error))
		return ctl_refuse(ctl, &ctl->error, "%.200s: %.300s", args->words[1], ctl->error.message);
	if (npumem_alloc(ctl->npumem, &allocation, 1, &tensor, &ctl->error))
		return CTL_FAILED;
	if (npumem_write(ctl->npumem, tensor, data, values->n * npumem_dtype_bytes(spec->dtype), &ctl->error)) {
		npumem_free(ctl->npumem, &tensor->handle, 1, NULL);
		return CTL_FAILED;
	}
	return load_tell(ctl, tensor, (int64_t)values->n, saturated);
}

static int load_values(struct ctl *ctl, const struct args *args, struct npumem_spec *spec, struct values *values,
		       int rounding)
{
	const struct npumem_info *info;
	int code = load_shape(ctl, args, values, spec);
	if (!code)
		code = ctl_info(ctl, &info);
	if (!code) {
		rounding = rounding ? rounding : info->rounding;
		code = load_format(ctl, args, values, rounding, spec);
	}
	if (code)
		return code;
	if (npumem_dtype_is_fixed(spec->dtype) && spec->frac_bits == NPUMEM_ANY)
		return ctl_usage(ctl, "--frac-bits is missing: %s needs it, 0 to 127, or auto",
				 npumem_dtype_name(spec->dtype));
	void *data = memory_data(values->n, npumem_dtype_bytes(spec->dtype));
	return data ? load_write(ctl, args, spec, values, rounding, data) : ctl_fail(ctl, "no memory");
}

static int load_run(struct ctl *ctl, const struct args *args)
{
	struct npumem_spec spec;
	struct values values;
	int rounding = 0;
	if (spec_read(args, &spec, &ctl->error) || spec_name(args, "--rounding", "rounding", npumem_rounding_parse,
							     npumem_rounding_name, &rounding, &ctl->error))
		return CTL_USAGE;
	if (!args->words[0][0])
		return ctl_usage(ctl, "the name is empty");
	if (values_read(args->words[1], args_value(args, "--perm"), &values, &ctl->error))
		return CTL_FAILED;
	return load_values(ctl, args, &spec, &values, rounding);
}

const struct command load_command = {
	.options = load_options,
	.least = 2,
	.most = 2,
	.run = load_run,
	.notes =
		"  npumemctl load w weights.npy --dtype fx8 --frac-bits auto --perm 1,0,2,3\n"
		"Takes .npy, .npz (FILE.npz:NAME), float16 to float64, integers, either byte order, C and Fortran "
		"order.\n"
		"The shape is the array's: a bias of M is [1,M,1,1], C,H,W is [1,C,H,W], K,M is [K,M,1,1] or a "
		"matrix.\n"
		"--frac-bits auto: the most with which no number is clipped; npumemctl numeric formats tells "
		"more.",
};
