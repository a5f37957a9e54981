/* fill: one value into every element. */
#include <inttypes.h>
#include <math.h>

#include "client/ctl/command.h"

#include "client/ctl/core/words/words.h"
#include "client/ctl/ctl.h"

static int fill_run(struct ctl *ctl, const struct args *args)
{
	const struct npumem_tensor *tensor;
	const char *text = args->words[1];
	struct bar bar;
	int64_t integer = 0;
	double real = 0;
	if (!numbers_integer(text, &integer) && !numbers_real(text, &real))
		return ctl_usage(ctl, "\"%.60s\" is not a number", text);
	int code = ctl_open(ctl, args->words[0], &tensor), status;
	if (code)
		return code;
	bool is_real = tensor->place.dtype == NPUMEM_FP32;
	if (!is_real && !numbers_integer(text, &integer)) {
		const char *dtype = npumem_dtype_name(tensor->place.dtype);
		int64_t frac_bits = tensor->place.frac_bits;
		numbers_real(text, &real);
		if (!npumem_dtype_is_fixed(tensor->place.dtype) || !isfinite(real))
			return ctl_invalid(ctl, "%s is %s, and VALUE must be an integer, not %.60s",
					   args->words[0], dtype ? dtype : "another's", text);
		return ctl_invalid(ctl,
				   "%s is %s with %" PRId64
				   " fractional bits, and VALUE must be an integer of the container: %.60s is "
				   "%.12g there",
				   args->words[0], dtype, frac_bits, text, ldexp(real, (int)frac_bits));
	}
	bar_follow(ctl, &bar);
	if (is_real) {
		numbers_real(text, &real);
		status = npumem_fill_float(ctl->npumem, tensor->handle, real, &ctl->error);
	} else {
		status = npumem_fill(ctl->npumem, tensor->handle, integer, &ctl->error);
	}
	bar_end(&bar);
	if (status)
		return CTL_FAILED;
	return ctl->json ? ctl_print(ctl, json_object()) : CTL_OK;
}

const struct command fill_command = {
	.least = 2,
	.most = 2,
	.run = fill_run,
	.notes = "VALUE is a real number for fp32 and an integer for all else; for fx8 and fx16 it is the integer "
		 "of the\n"
		 "container: 24 is 1.5 with 4 fractional bits.",
};
