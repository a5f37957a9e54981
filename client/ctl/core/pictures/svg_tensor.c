/* One tensor as SVG. Words are drawn one by one only where they are few. */
#include "client/ctl/core/pictures/svg_tensor.h"

#include <inttypes.h>
#include <stdlib.h>

#include "client/ctl/core/pictures/picture.h"
#include "client/ctl/core/present.h"
#include "client/ctl/core/pictures/svg.h"

enum { TENSOR_WORDS_MAX = 4096, TENSOR_NPUS_MAX = 16, TENSOR_CELL = 46 };

/* Words a line of a column: 8 at most, so that a block row of the aligned layout is a few lines. */
static int64_t words_a_line(const struct npumem_place *place)
{
	int64_t words = place->bytes_per_npu / place->word_bytes;
	return words < 1 ? 1 : words < 8 ? words : 8;
}

/* The first element of each word of data. */
static void word_labels(FILE *out, const struct npumem_geometry *geometry, const struct npumem_place *p,
			const struct svg_columns *columns, int64_t line, double cell)
{
	char text[96];
	int64_t npu, offset;
	for (int64_t n = 0; n < p->words_n; n++)
		for (int64_t c = 0; c < p->shape.c; c++)
			for (int64_t h = 0; h < p->shape.h; h++) {
				int64_t width = c == p->shape.c - 1 ? p->last_w : p->shape.w;
				for (int64_t w = 0; w < width; w++) {
					npumem_place_locate(geometry, p, n * p->lanes, c, h, w, &npu, &offset);
					int64_t word = offset / p->word_bytes;
					snprintf(text, sizeof(text),
						 "%" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRId64, n, c, h, w);
					svg_text(out,
						 svg_column_x(columns, npu) + ((double)(word % line) + 0.5) * cell,
						 SVG_TOP + (double)(word / line) * SVG_LINE + 12, "class=\"c\"",
						 text);
				}
			}
}

static void draw_mark(FILE *out, double x, double y, double width, double height)
{
	fprintf(out,
		"<rect x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\" fill=\"none\" stroke=\"#d3212c\" "
		"stroke-width=\"2\"/>\n",
		x, y, width, height);
}

static void draw_words(FILE *out, const struct npumem_geometry *geometry, const struct npumem_place *p,
		       const struct svg_mark *mark)
{
	int64_t line = words_a_line(p), words = p->bytes_per_npu / p->word_bytes;
	const double cell = TENSOR_CELL;
	struct svg_columns columns = {.n = geometry->n_npus, .width = cell * (double)line, .gap = 16};
	svg_npus(out, &columns);
	for (int64_t npu = 0; npu < geometry->n_npus; npu++)
		for (int64_t word = 0; word < words; word++) {
			unsigned bits =
				picture_kinds(geometry, p, npu, word * p->word_bytes, (word + 1) * p->word_bytes);
			const struct svg_kind *kind = svg_strongest(bits);
			double x = svg_column_x(&columns, npu) + (double)(word % line) * cell;
			double y = SVG_TOP + (double)(word / line) * SVG_LINE;
			if (kind)
				svg_rect(out, x, y, cell, SVG_LINE, kind);
			/* Elements and dummies in one word: the dummies' share of it. */
			if ((bits & NPUMEM_BYTE_DATA) && (bits & NPUMEM_BYTE_DUMMY))
				svg_rect(out, x, y + SVG_LINE - 4, cell, 4, &svg_kinds[SVG_DUMMY]);
		}
	for (int64_t at = 0; at < words; at += line)
		svg_offset(out, SVG_TOP + (double)(at / line) * SVG_LINE + 13, at * p->word_bytes);
	word_labels(out, geometry, p, &columns, line, cell);
	if (mark) {
		int64_t word = mark->offset / p->word_bytes;
		draw_mark(out, svg_column_x(&columns, mark->npu) + (double)(word % line) * cell,
			  SVG_TOP + (double)(word / line) * SVG_LINE, cell, SVG_LINE);
	}
	svg_end(out, SVG_TOP + (double)((words + line - 1) / line) * SVG_LINE + 16, false);
}

static int draw_runs(FILE *out, const struct npumem_geometry *geometry, const struct npumem_place *p,
		     const struct svg_mark *mark, struct npumem_error *error)
{
	struct svg_columns columns = svg_columns_of(geometry->n_npus, 2);
	struct svg_box box;
	int status = svg_box_new(geometry, p, &columns, SVG_TOP, SVG_STEPS, &box, error);
	if (status)
		return status;
	svg_npus(out, &columns);
	for (unsigned k = 0; k < SVG_KINDS; k++)
		svg_box_draw(out, &box, &svg_kinds[k], &svg_kinds[k]);
	free(box.bits);
	if (mark) {
		/* One byte is too small to be seen. */
		double y = SVG_TOP + (double)SVG_STEPS * (double)mark->offset / (double)p->bytes_per_npu;
		draw_mark(out, svg_column_x(&columns, mark->npu) - 2, y - 2, columns.width + 4,
			  (double)SVG_STEPS * (double)p->word_bytes / (double)p->bytes_per_npu + 4);
	}
	for (int i = 0; i <= 8; i++)
		svg_offset(out, SVG_TOP + (double)SVG_STEPS * i / 8 + (i ? 0 : 10), p->bytes_per_npu * i / 8);
	svg_end(out, SVG_TOP + SVG_STEPS + 20, false);
	return 0;
}

int svg_tensor_draw(FILE *out, const struct npumem_geometry *geometry, const struct npumem_tensor *tensor,
		    uint32_t uid, const struct svg_mark *mark, struct npumem_error *error)
{
	char name[PRESENT_TEXT_BYTES], dtype[PRESENT_TEXT_BYTES], shape[PRESENT_TEXT_BYTES];
	char title[3 * PRESENT_TEXT_BYTES + 64], subtitle[320];
	const struct npumem_place *p = &tensor->place;
	bool small = geometry->n_npus <= TENSOR_NPUS_MAX &&
		     p->bytes_per_npu / p->word_bytes * geometry->n_npus <= TENSOR_WORDS_MAX &&
		     npumem_place_elements(p) <= TENSOR_WORDS_MAX * p->lanes;
	snprintf(title, sizeof(title), "%s: %s %s, %s, %s", present_name(tensor, uid, name),
		 present_dtype(p, dtype), present_shape(p, shape), npumem_layout_name(p->layout),
		 npumem_mode_name(p->mode));
	snprintf(subtitle, sizeof(subtitle),
		 "strides n %" PRId64 ", c %" PRId64 ", h %" PRId64 ", w %" PRId64 "; %" PRId64
		 " bytes per NPU%s%s%s",
		 p->stride.n, p->stride.c, p->stride.h, p->stride.w, p->bytes_per_npu,
		 !small		? "; offsets from the tensor's start"
		 : p->lanes > 1 ? "; a block is one packed word, labelled packed n,c,h,w"
				: "; a block is one element, labelled n,c,h,w",
		 mark ? "; framed: " : "", mark ? mark->what : "");
	if (!small) {
		struct svg_columns columns = svg_columns_of(geometry->n_npus, 2);
		svg_begin(out, svg_column_x(&columns, columns.n) + 40, SVG_TOP + SVG_STEPS + 60, title, subtitle);
		return draw_runs(out, geometry, p, mark, error);
	}
	int64_t line = words_a_line(p), lines = (p->bytes_per_npu / p->word_bytes + line - 1) / line;
	svg_begin(out, SVG_LEFT + (TENSOR_CELL * (double)line + 16) * (double)geometry->n_npus + 24,
		  SVG_TOP + (double)lines * SVG_LINE + 50, title, subtitle);
	draw_words(out, geometry, p, mark);
	return 0;
}
