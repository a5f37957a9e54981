/* map: a picture of the device, or of one tensor. */
#include "client/ctl/command.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/ctl/core/memory.h"
#include "client/ctl/core/output/output.h"
#include "client/ctl/core/pictures/picture.h"
#include "client/ctl/core/pictures/svg.h"

static const struct option map_options[] = {
	{"--svg", "FILE", "writes the picture to FILE as SVG", false},
	{"--to-scale", NULL, "heights of the SVG in proportion to bytes", false},
	{"--by", "WHAT", "feature: a cell for each feature (n,c) of the tensor", false},
	{NULL, NULL, NULL, false},
};

/* What is drawn: one tensor, or all of them. */
struct subject {
	const struct npumem_info *info;
	const struct npumem_tensor *const *tensors;
	unsigned n;
	const struct npumem_tensor *one; /* or NULL */
	bool hidden;			 /* the device has tensors that are not among these */
	bool by_feature, to_scale;
};

static int map_load(struct ctl *ctl, const struct args *args, struct subject *subject)
{
	int code = ctl_info(ctl, &subject->info);
	if (code)
		return code;
	if (!args->n_words) {
		const struct npumem_stat *stat;
		const struct npumem_tensors *tensors;
		if (npumem_list(ctl->npumem, &tensors, &ctl->error) ||
		    npumem_stat(ctl->npumem, &stat, &ctl->error))
			return CTL_FAILED;
		subject->tensors = tensors->list;
		subject->n = tensors->n;
		subject->hidden = stat->tensors + stat->views > subject->n;
		return CTL_OK;
	}
	code = ctl_open(ctl, args->words[0], &subject->one);
	subject->tensors = &subject->one;
	subject->n = 1;
	if (!code && !subject->one->place.dtype)
		return ctl_fail(ctl, "%s is not this uid's to see", args->words[0]);
	return code;
}

static int map_svg(struct ctl *ctl, const struct subject *subject, const char *path)
{
	const struct npumem_geometry *geometry = &subject->info->geometry;
	FILE *file = ctl_create(ctl, path);
	if (!file)
		return CTL_FAILED;
	const struct svg_device how = {
		.to_scale = subject->to_scale, .hidden = subject->hidden, .uid = subject->info->uid};
	if (!subject->one)
		svg_device_draw(file, geometry, subject->tensors, subject->n, &how);
	else if (subject->by_feature)
		svg_tensor_features(file, geometry, subject->one, how.uid);
	else
		svg_tensor_draw(file, geometry, subject->one, how.uid, NULL);
	int code = ctl_close(ctl, path, file);
	return !code && ctl->json ? ctl_print(ctl, json_pack("{s:s}", "svg", path)) : code;
}

static int map_json(struct ctl *ctl, const struct subject *subject)
{
	const struct npumem_geometry *g = &subject->info->geometry;
	json_t *array = json_array();
	for (unsigned i = 0; i < subject->n; i++)
		jsons_append(&array, present_whole(subject->tensors[i]));
	return ctl_print(ctl, json_pack("{s:I, s:I, s:o}", "npus", (json_int_t)g->n_npus, "npu_bytes",
					(json_int_t)g->npu_bytes, "tensors", array));
}

static void map_draw(const struct subject *subject, const struct picture_look *look, FILE *out)
{
	const struct npumem_geometry *geometry = &subject->info->geometry;
	char name[PRESENT_TEXT_BYTES], dtype[PRESENT_TEXT_BYTES], shape[PRESENT_TEXT_BYTES];
	if (!subject->one) {
		picture_device(out, geometry, subject->tensors, subject->n, subject->info->uid, subject->hidden,
			       look);
		return;
	}
	const struct npumem_place *place = &subject->one->place;
	fprintf(out, "%s: %s %s, %s, %s, at offset %" PRId64 "\n",
		present_name(subject->one, subject->info->uid, name), present_dtype(place, dtype),
		present_shape(place, shape), npumem_layout_name(place->layout), npumem_mode_name(place->mode),
		place->offset);
	if (subject->by_feature)
		picture_features(out, geometry, place, look->width);
	else
		picture_place(out, geometry, place, look);
}

static int map_text(const struct subject *subject)
{
	const struct picture_look look = {.width = terminal_columns(STDOUT_FILENO),
					  .colours = terminal_colours(STDOUT_FILENO)};
	char *text = NULL;
	size_t bytes;
	FILE *out = open_memstream(&text, &bytes);
	if (!out)
		memory_none();
	map_draw(subject, &look, out);
	if (fclose(out))
		memory_none();
	picture_fit(stdout, text, look.width);
	free(text);
	return CTL_OK;
}

static int map_run(struct ctl *ctl, const struct args *args)
{
	struct subject subject = {.by_feature = args_has(args, "--by"), .to_scale = args_has(args, "--to-scale")};
	const char *path = args_value(args, "--svg"), *by = args_value(args, "--by");
	if (by && strcmp(by, "feature"))
		return ctl_usage(ctl, "--by \"%.40s\": pictures are by feature, or by byte", by);
	if (by && !args->n_words)
		return ctl_usage(ctl, "--by feature is for one tensor: map NAME --by feature");
	if (subject.to_scale && (!path || args->n_words))
		return ctl_usage(ctl, "--to-scale is for an SVG of the device: map --svg FILE --to-scale");
	int code = map_load(ctl, args, &subject);
	if (!code && path)
		code = map_svg(ctl, &subject, path);
	else if (!code)
		code = ctl->json ? map_json(ctl, &subject) : map_text(&subject);
	return code;
}

const struct command map_command = {.options = map_options, .most = 1, .run = map_run};
