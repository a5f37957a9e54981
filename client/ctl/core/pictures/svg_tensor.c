/* One tensor as SVG: runs of bytes, or cells where they are few (svg_words.c). */
#include "client/ctl/core/pictures/svg_tensor.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "client/ctl/core/pictures/svg_columns.h"
#include "client/ctl/core/pictures/svg_words.h"
#include "client/ctl/core/present.h"

static void subtitle_place(struct svg *svg, const struct npumem_geometry *geometry,
			   const struct npumem_tensor *tensor)
{
	const struct npumem_place *p = &tensor->place;
	char text[320], bytes[SVG_BYTES_TEXT], all[SVG_BYTES_TEXT];
	int at;
	snprintf(text, sizeof(text),
		 "strides n %" PRId64 ", c %" PRId64 ", h %" PRId64 ", w %" PRId64 "; %s per NPU, %s on %" PRId64
		 " NPUs; %" PRId64 " block row%s",
		 p->stride.n, p->stride.c, p->stride.h, p->stride.w, svg_bytes(p->bytes_per_npu, bytes),
		 svg_bytes(p->bytes_per_npu * geometry->n_npus, all), geometry->n_npus, p->channels_per_npu,
		 p->channels_per_npu == 1 ? "" : "s");
	svg_subtitle(svg, 0, text);
	if (p->address == NPUMEM_ANY)
		at = snprintf(text, sizeof(text), "starts at NPU %" PRId64 "; no address yet", p->start_npu);
	else
		at = snprintf(text, sizeof(text),
			      "starts at NPU %" PRId64 "; address %" PRId64 " = %" PRId64 " * %" PRId64
			      " + offset %" PRId64,
			      p->start_npu, p->address, p->npu, geometry->npu_bytes, p->offset);
	if (*tensor->state)
		snprintf(text + at, sizeof(text) - (size_t)at, "; %s%s%s%s%s", tensor->state,
			 tensor->sealed ? ", sealed" : "", tensor->dma_only ? ", for DMA only" : "",
			 tensor->lends ? ", lends empty blocks" : "",
			 tensor->borrows ? ", borrows empty blocks" : "");
	svg_subtitle(svg, 1, text);
}

int svg_tensor_begin(struct svg *svg, FILE *out, const struct npumem_geometry *geometry,
		     const struct npumem_tensor *tensor, uint32_t uid, const char *note,
		     struct npumem_error *error)
{
	char name[PRESENT_TEXT_BYTES], dtype[PRESENT_TEXT_BYTES], shape[PRESENT_TEXT_BYTES];
	char title[3 * PRESENT_TEXT_BYTES + 64];
	const struct npumem_place *p = &tensor->place;
	bool plan = !*tensor->state && !*tensor->name;
	snprintf(title, sizeof(title), "%s%s%s %s, %s, %s", plan ? "" : present_name(tensor, uid, name),
		 plan ? "" : ": ", present_dtype(p, dtype), present_shape(p, shape), npumem_layout_name(p->layout),
		 npumem_mode_name(p->mode));
	int status = svg_begin(svg, out, title, error);
	if (status)
		return status;
	subtitle_place(svg, geometry, tensor);
	svg_subtitle(svg, 2, note);
	svg_marks(svg, 16 + 8.6 * (double)strlen(title) + 8, 11, tensor);
	return 0;
}

static int draw_runs(struct svg *svg, const struct npumem_geometry *geometry, const struct npumem_tensor *tensor,
		     const struct svg_mark *mark, struct npumem_error *error)
{
	static const unsigned order[] = {SVG_NOTHING, NPUMEM_BYTE_EMPTY, NPUMEM_BYTE_PADDING, NPUMEM_BYTE_DUMMY,
					 NPUMEM_BYTE_DATA};
	const struct npumem_place *p = &tensor->place;
	int64_t base = p->offset == NPUMEM_ANY ? 0 : p->offset;
	struct svg_columns columns;
	svg_columns_of(&columns, geometry, &tensor, 1);
	struct svg_box box = {.geometry = geometry,
			      .tensor = tensor,
			      .columns = &columns,
			      .y = SVG_TOP,
			      .height = SVG_STEPS,
			      .colour = svg_colour(present_called(tensor)),
			      .name = *tensor->name ? tensor->name : "tensor"};
	int status = svg_box_new(&box, error);
	if (status)
		return status;
	svg_columns_numbers(svg, &columns);
	for (unsigned k = 0; k < sizeof(order) / sizeof(order[0]); k++)
		svg_box_draw(svg, &box, order[k], order[k]);
	free(box.bits);
	if (mark) {
		int64_t i = 0;
		while (i + 1 < columns.n && columns.first[i + 1] <= mark->npu)
			i++;
		/* One byte is too small to be seen. */
		svg_frame(svg, svg_columns_x(&columns, i) - 2,
			  SVG_TOP + (double)SVG_STEPS * (double)mark->offset / (double)p->bytes_per_npu - 2,
			  columns.width + 4,
			  (double)SVG_STEPS * (double)p->word_bytes / (double)p->bytes_per_npu + 4);
	}
	for (int i = 0; i <= 8; i++)
		svg_offset(svg, SVG_TOP + (double)SVG_STEPS * i / 8 + (i ? 0 : 10),
			   base + p->bytes_per_npu * i / 8);
	return 0;
}

int svg_tensor_draw(FILE *out, const struct npumem_geometry *geometry, const struct npumem_tensor *tensor,
		    uint32_t uid, const struct svg_mark *mark, struct npumem_error *error)
{
	const struct npumem_place *p = &tensor->place;
	bool small = svg_words_few(geometry, p);
	const char *index = p->layout == NPUMEM_MATRIX ? "row,column" : "n,c,h,w";
	char note[320];
	struct svg svg;
	if (!small)
		snprintf(note, sizeof(note),
			 "offsets are bytes in each NPU; kinds that take turns are side by side, by their shares");
	else if (p->lanes > 1)
		snprintf(note, sizeof(note), "a box is one packed word of %" PRId64 " elements, each labelled %s",
			 p->lanes, index);
	else
		snprintf(note, sizeof(note), "a box is one element, labelled %s", index);
	size_t at = strlen(note);
	if (mark)
		snprintf(note + at, sizeof(note) - at, "; framed: %.120s", mark->what);
	int status = svg_tensor_begin(&svg, out, geometry, tensor, uid, note, error);
	if (status)
		return status;
	status = small ? svg_words_draw(&svg, geometry, tensor, mark, error)
		       : draw_runs(&svg, geometry, tensor, mark, error);
	int ended = svg_end(&svg, error);
	return status ? status : ended;
}
