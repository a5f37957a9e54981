/* What the pictures are made of. Bounded whatever the device: a column has at most SVG_STEPS steps, and NPUs too
 * narrow for a gap between them are drawn together where they look the same. */
#include "client/ctl/core/pictures/svg.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "client/ctl/core/pictures/picture.h"

enum {
	SVG_PLOT = 960, /* width of all columns, where there are many */
	SVG_COLUMN_MAX = 150,
	SVG_WIDTH_LEAST = 620, /* for the titles and the legend */
};

const struct svg_kind svg_kinds[SVG_KINDS] = {
	{NPUMEM_BYTE_EMPTY, "empty block", "#ffffff", "#b9bec4"},
	{NPUMEM_BYTE_PADDING, "padding", "#e3e6ea", "#b9bec4"},
	[SVG_DUMMY] = {NPUMEM_BYTE_DUMMY, "dummy", "#f6c66a", "#a8812f"},
	{NPUMEM_BYTE_DATA, "data", "#6aa5dc", "#2f5f8c"},
};
const struct svg_kind svg_guest_data = {16, "data among another's blocks", "#3a6ea5", "#1d3c5c"};

const struct svg_kind *svg_strongest(unsigned bits)
{
	for (unsigned i = SVG_KINDS; i-- > 0;)
		if (bits & svg_kinds[i].bit)
			return &svg_kinds[i];
	return NULL;
}

static void svg_escape(FILE *out, const char *text)
{
	for (; *text; text++) {
		if (*text == '&')
			fputs("&amp;", out);
		else if (*text == '<')
			fputs("&lt;", out);
		else if (*text == '>')
			fputs("&gt;", out);
		else
			fputc(*text, out);
	}
}

void svg_text(FILE *out, double x, double y, const char *style, const char *text)
{
	fprintf(out, "<text x=\"%.1f\" y=\"%.1f\" %s>", x, y, style);
	svg_escape(out, text);
	fputs("</text>\n", out);
}

void svg_rect(FILE *out, double x, double y, double width, double height, const struct svg_kind *kind)
{
	fprintf(out, "<rect x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\" class=\"k%u\"/>\n", x, y, width,
		height, kind->bit);
}

void svg_begin(FILE *out, double width, double height, const char *title, const char *subtitle)
{
	width = width < SVG_WIDTH_LEAST ? SVG_WIDTH_LEAST : width;
	fprintf(out,
		"<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" viewBox=\"0 0 %.0f "
		"%.0f\" "
		"font-family=\"sans-serif\" font-size=\"11\">\n<style>\n",
		width, height, width, height);
	for (unsigned i = 0; i < SVG_KINDS; i++)
		fprintf(out, ".k%u{fill:%s;stroke:%s;stroke-width:%s%s}\n", svg_kinds[i].bit, svg_kinds[i].fill,
			svg_kinds[i].stroke, "0.6", i ? "" : ";stroke-dasharray:2 2");
	fprintf(out, ".k%u{fill:%s;stroke:%s;stroke-width:0.6}\n", svg_guest_data.bit, svg_guest_data.fill,
		svg_guest_data.stroke);
	fputs(".t{font-size:15px;font-weight:bold}.s{fill:#555}.r{text-anchor:end;fill:#555}.m{text-anchor:middle}"
	      ".c{text-anchor:middle;font-size:9px}.l{stroke:#555;stroke-width:0.6;fill:none}\n</style>\n",
	      out);
	fprintf(out, "<rect width=\"%.0f\" height=\"%.0f\" fill=\"#fff\"/>\n", width, height);
	svg_text(out, 16, 24, "class=\"t\"", title);
	svg_text(out, 16, 42, "class=\"s\"", subtitle);
}

void svg_end(FILE *out, double y, bool guests)
{
	double x = SVG_LEFT;
	for (unsigned i = SVG_KINDS; i-- > 0; x += 110) {
		svg_rect(out, x, y, 16, 12, &svg_kinds[i]);
		svg_text(out, x + 22, y + 10, "class=\"s\"", svg_kinds[i].name);
	}
	if (guests) {
		svg_rect(out, x, y, 16, 12, &svg_guest_data);
		svg_text(out, x + 22, y + 10, "class=\"s\"", svg_guest_data.name);
	}
	fputs("</svg>\n", out);
}

struct svg_columns svg_columns_of(int64_t n_npus, double least)
{
	struct svg_columns columns = {.n = n_npus};
	double pitch = (double)SVG_PLOT / (double)n_npus;
	if (pitch > SVG_COLUMN_MAX)
		pitch = SVG_COLUMN_MAX;
	if (pitch < least)
		pitch = least;
	columns.gap = pitch >= 40 ? 12 : pitch >= 8 ? 1.5 : 0;
	columns.width = pitch - columns.gap;
	return columns;
}

double svg_column_x(const struct svg_columns *columns, int64_t npu)
{
	return SVG_LEFT + (double)npu * (columns->width + columns->gap);
}

void svg_npus(FILE *out, const struct svg_columns *columns)
{
	char text[32];
	double pitch = columns->width + columns->gap;
	int64_t step = pitch >= 40 ? 1 : pitch >= 18 ? 4 : 8;
	for (int64_t npu = 0; npu < columns->n; npu += step) {
		snprintf(text, sizeof(text), step == 1 ? "NPU %" PRId64 : "%" PRId64, npu);
		svg_text(out, svg_column_x(columns, npu) + columns->width / 2, SVG_TOP - 10, "class=\"m\"", text);
	}
	if (step > 1)
		svg_text(out, SVG_LEFT - 14, SVG_TOP - 10, "class=\"r\"", "NPU");
}

static void box_fill(struct svg_box *box)
{
	int64_t bytes = box->place->bytes_per_npu;
	for (int64_t npu = 0; npu < box->geometry->n_npus; npu++)
		for (int step = 0; step < box->steps; step++) {
			int64_t from = bytes * step / box->steps, to = bytes * (step + 1) / box->steps;
			unsigned bits =
				picture_kinds(box->geometry, box->place, npu, from, to > from ? to : from + 1);
			const struct svg_kind *kind = svg_strongest(bits);
			box->bits[npu * box->steps + step] = kind ? (uint8_t)kind->bit : 0;
		}
}

void svg_box_draw(FILE *out, const struct svg_box *box, const struct svg_kind *kind, const struct svg_kind *as)
{
	for (int64_t npu = 0, next; npu < box->geometry->n_npus; npu = next) {
		const uint8_t *bits = box->bits + npu * box->steps;
		next = npu + 1;
		while (box->columns->gap <= 0 && next < box->geometry->n_npus &&
		       !memcmp(bits, box->bits + next * box->steps, (size_t)box->steps))
			next++;
		for (int from = 0, to; from < box->steps; from = to) {
			to = from + 1;
			while (to < box->steps && bits[to] == bits[from])
				to++;
			if (bits[from] != kind->bit)
				continue;
			double x = svg_column_x(box->columns, npu);
			svg_rect(out, x, box->y + box->height * from / box->steps,
				 svg_column_x(box->columns, next - 1) + box->columns->width - x,
				 box->height * (to - from) / box->steps, as);
		}
	}
}

int svg_box_new(const struct npumem_geometry *geometry, const struct npumem_place *place,
		const struct svg_columns *columns, double y, double height, struct svg_box *box,
		struct npumem_error *error)
{
	*box = (struct svg_box){.geometry = geometry,
				.place = place,
				.columns = columns,
				.y = y,
				.height = height,
				.steps = (int)height};
	if (box->steps > place->bytes_per_npu)
		box->steps = (int)place->bytes_per_npu;
	if (box->steps < 1)
		box->steps = 1;
	if (box->steps > SVG_STEPS)
		box->steps = SVG_STEPS;
	box->bits = malloc((size_t)geometry->n_npus * (size_t)box->steps);
	if (!box->bits)
		return npumem_error_set(error, NPUMEM_RESOURCE_EXHAUSTED, "no memory for the picture");
	box_fill(box);
	return 0;
}

void svg_offset(FILE *out, double y, int64_t offset)
{
	char text[32];
	snprintf(text, sizeof(text), "%" PRId64, offset);
	svg_text(out, SVG_LEFT - 8, y, "class=\"r\"", text);
}
