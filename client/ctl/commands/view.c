/* view: a name for a part of a tensor, or for its bytes in another shape or with other frac_bits. */
#include "client/ctl/command.h"

#include "client/ctl/core/arrays/slice.h"
#include "client/ctl/core/memory.h"
#include "client/ctl/core/output/output.h"
#include "client/ctl/core/words/words.h"

static const struct option view_options[] = {
	{"--shape", "N,C,H,W", "the same elements in another shape, instead of ranges", false},
	{"--frac-bits", "F", "the same elements with other frac_bits, instead of ranges", false},
	{NULL, NULL, NULL, false},
};

/* The words as one text: the shell may have cut the expression at its blanks. */
static char *words_join(const struct args *args)
{
	char *text = memory_text("%s", args->words[0]);
	for (unsigned i = 1; i < args->n_words; i++)
		text = memory_text("%s %s", text, args->words[i]);
	return text;
}

static int view_make(struct ctl *ctl, const struct slice *slice, const struct npumem_dims *shape,
		     const int64_t *frac_bits, const struct npumem_tensor **view)
{
	const struct npumem_tensor *base;
	struct npumem_dims from, to;
	int code = ctl_open(ctl, slice->base, &base), status;
	if (code)
		return code;
	if (frac_bits) {
		status = npumem_view_format(ctl->npumem, base->handle, slice->name, *frac_bits, view, &ctl->error);
	} else if (shape) {
		status = npumem_reshape(ctl->npumem, base->handle, slice->name, shape, view, &ctl->error);
	} else {
		slice_resolve(slice, &base->place.shape, &from, &to);
		status = npumem_view(ctl->npumem, base->handle, slice->name, &from, &to, view, &ctl->error);
	}
	return status ? CTL_FAILED : CTL_OK;
}

static int view_run(struct ctl *ctl, const struct args *args)
{
	const char *shape_text = args_value(args, "--shape"), *frac_text = args_value(args, "--frac-bits");
	struct npumem_dims shape;
	int64_t frac_bits;
	const struct npumem_tensor *view;
	struct slice slice;
	char text[PRESENT_TEXT_BYTES];
	int status = slice_parse(words_join(args), &slice, &ctl->error);
	if (!status && shape_text)
		status = numbers_dims("--shape", shape_text, &shape, &ctl->error);
	if (!status && frac_text)
		status = numbers_count("--frac-bits", frac_text, &frac_bits, &ctl->error);
	if (status)
		return CTL_USAGE;
	if (slice.ranges + !!shape_text + !!frac_text > 1)
		return ctl_usage(ctl, "a view has one of ranges, --shape and --frac-bits");
	int code = view_make(ctl, &slice, shape_text ? &shape : NULL, frac_text ? &frac_bits : NULL, &view);
	if (code)
		return code;
	if (ctl->json)
		return ctl_print(ctl, present_whole(view));
	printf("%s is a view of %s with shape %s\n", view->name, slice.base, present_shape(&view->place, text));
	return CTL_OK;
}

const struct command view_command = {
	.options = view_options,
	.least = 1,
	.most = COMMAND_WORDS_ANY,
	.run = view_run,
	.notes = "A range is a:b, a:, :b, : or one index; ranges left out at the end are whole. Quote the "
		 "brackets.",
};
