/* Options to a spec. Checks what is wrong on every device; the formulas check the rest. */
#include "client/ctl/core/words/words.h"

#include <stdio.h>
#include <string.h>

int spec_no_such_name(const char *what, const char *text, const char *(*name)(int), struct npumem_error *error)
{
	char nearest[SUGGEST_TEXT_BYTES], all[256] = "";
	struct suggest suggest;
	size_t n = 0;
	suggest_init(&suggest, text);
	for (int i = 1; name(i); i++)
		suggest_offer(&suggest, name(i));
	for (int i = 1; name(i) && !suggest.best[0] && n < sizeof(all); i++)
		n += (size_t)snprintf(all + n, sizeof(all) - n, "%s%s", i > 1 ? ", " : "; it is one of ", name(i));
	return npumem_error_set(error, NPUMEM_INVALID, "there is no %s \"%.40s\"%s%s", what, text,
				suggest_text(&suggest, nearest), all);
}

int spec_name(const struct args *args, const char *option, const char *what, int (*parse)(const char *),
	      const char *(*name)(int), int *value, struct npumem_error *error)
{
	const char *text = args_value(args, option);
	if (!text)
		return 0;
	*value = parse(text);
	if (*value)
		return 0;
	return spec_no_such_name(what, text, name, error);
}

int spec_count(const struct args *args, const char *option, int64_t *value, struct npumem_error *error)
{
	const char *text = args_value(args, option);
	return text ? numbers_count(option, text, value, error) : 0;
}

bool spec_is_auto(const struct args *args)
{
	const char *text = args_value(args, "--frac-bits");
	return text && !strcmp(text, "auto");
}

static int missing(const char *option, struct npumem_error *error)
{
	return npumem_error_set(error, NPUMEM_INVALID, "%s is missing", option);
}

int spec_read(const struct args *args, struct npumem_spec *spec, struct npumem_error *error)
{
	const char *shape = args_value(args, "--shape"), *stride = args_value(args, "--stride");
	npumem_spec_init(spec);
	int status = spec_name(args, "--dtype", "element type", npumem_dtype_parse, npumem_dtype_name,
			       &spec->dtype, error);
	if (!status)
		status = spec_name(args, "--layout", "layout", npumem_layout_parse, npumem_layout_name,
				   &spec->layout, error);
	if (!status)
		status = spec_name(args, "--mode", "storage mode", npumem_mode_parse, npumem_mode_name,
				   &spec->mode, error);
	if (!status && shape)
		status = numbers_dims("--shape", shape, &spec->shape, error);
	if (!status && stride)
		status = numbers_dims("--stride", stride, &spec->stride, error);
	if (!status && !spec_is_auto(args))
		status = spec_count(args, "--frac-bits", &spec->frac_bits, error);
	if (!status)
		status = spec_count(args, "--start-npu", &spec->start_npu, error);
	if (!status)
		status = spec_count(args, "--rows", &spec->rows, error);
	if (!status)
		status = spec_count(args, "--cols", &spec->cols, error);
	if (!status)
		status = spec_count(args, "--w", &spec->w, error);
	if (!status)
		status = spec_count(args, "--address", &spec->address, error);
	if (status)
		return status;
	bool matrix = spec->layout == NPUMEM_MATRIX, rows = args_has(args, "--rows"),
	     cols = args_has(args, "--cols");
	if (matrix && shape)
		return npumem_error_set(error, NPUMEM_INVALID,
					"--layout matrix takes --rows and --cols, not --shape");
	if (!matrix && (rows || cols || args_has(args, "--w")))
		return npumem_error_set(error, NPUMEM_INVALID, "--rows, --cols and --w are for --layout matrix");
	if (matrix && rows != cols)
		return missing(rows ? "--cols" : "--rows", error);
	/* Extents of 1 need no stride. */
	bool steps = !shape || spec->shape.n > 1 || spec->shape.h > 1 || spec->shape.w > 1;
	return spec->layout == NPUMEM_STRIDED && !stride && steps ? missing("--stride", error) : 0;
}

int spec_parse(const struct args *args, struct npumem_spec *spec, struct npumem_error *error)
{
	int status = spec_read(args, spec, error);
	if (status)
		return status;
	if (spec_is_auto(args))
		return npumem_error_set(error, NPUMEM_INVALID,
					"--frac-bits auto is for load, which has the numbers");
	if (spec->layout != NPUMEM_MATRIX && !args_has(args, "--shape"))
		return missing("--shape", error);
	if (spec->layout == NPUMEM_MATRIX && !args_has(args, "--rows"))
		return missing("--rows", error);
	if (!spec->dtype)
		return missing("--dtype", error);
	if (npumem_dtype_is_fixed(spec->dtype) && spec->frac_bits == NPUMEM_ANY)
		return npumem_error_set(error, NPUMEM_INVALID, "--frac-bits is missing: %s needs it, 0 to 127",
					npumem_dtype_name(spec->dtype));
	return 0;
}
