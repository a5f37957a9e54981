/* Pictures as SVG. Bounded whatever the device: a column of the picture has at most SVG_STEPS steps, neighbouring
 * NPUs that look the same are one rectangle, and words are drawn one by one only in small tensors. */
#include "client/ctl/core/svg.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "client/ctl/core/picture.h"
#include "client/ctl/core/present.h"

enum {
	SVG_LEFT = 96,	/* room for the offsets */
	SVG_TOP = 84,	/* for title and NPU numbers */
	SVG_PLOT = 960, /* width of all columns, where there are many */
	SVG_COLUMN_MAX = 150,
	SVG_STEPS = 480,
	SVG_WORDS_MAX = 4096,
	SVG_LINE = 18,	       /* height of a word, and of a line of text */
	SVG_WIDTH_LEAST = 620, /* for the titles and the legend */
	SVG_LABELS = 300,      /* room for names at the right */
};

/* Kinds, weakest first, in the order of painting. */
static const struct kind {
	unsigned bit;
	const char *name, *fill, *stroke;
} kinds[] = {
	{NPUMEM_BYTE_EMPTY, "empty block", "#ffffff", "#b9bec4"},
	{NPUMEM_BYTE_PADDING, "padding", "#e3e6ea", "#b9bec4"},
	{NPUMEM_BYTE_DUMMY, "dummy", "#f6c66a", "#a8812f"},
	{NPUMEM_BYTE_DATA, "data", "#6aa5dc", "#2f5f8c"},
};
enum { N_KINDS = sizeof(kinds) / sizeof(kinds[0]) };

static const struct kind *strongest(unsigned bits)
{
	for (unsigned i = N_KINDS; i-- > 0;)
		if (bits & kinds[i].bit)
			return &kinds[i];
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

static void svg_text(FILE *out, double x, double y, const char *style, const char *text)
{
	fprintf(out, "<text x=\"%.1f\" y=\"%.1f\" %s>", x, y, style);
	svg_escape(out, text);
	fputs("</text>\n", out);
}

static void svg_rect(FILE *out, double x, double y, double width, double height, const struct kind *kind)
{
	fprintf(out, "<rect x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\" class=\"k%u\"/>\n", x, y, width,
		height, kind->bit);
}

static void svg_begin(FILE *out, double width, double height, const char *title, const char *subtitle)
{
	width = width < SVG_WIDTH_LEAST ? SVG_WIDTH_LEAST : width;
	fprintf(out,
		"<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" viewBox=\"0 0 %.0f "
		"%.0f\" "
		"font-family=\"sans-serif\" font-size=\"11\">\n<style>\n",
		width, height, width, height);
	for (unsigned i = 0; i < N_KINDS; i++)
		fprintf(out, ".k%u{fill:%s;stroke:%s;stroke-width:%s%s}\n", kinds[i].bit, kinds[i].fill,
			kinds[i].stroke, "0.6", i ? "" : ";stroke-dasharray:2 2");
	fputs(".t{font-size:15px;font-weight:bold}.s{fill:#555}.r{text-anchor:end;fill:#555}.m{text-anchor:middle}"
	      ".c{text-anchor:middle;font-size:9px}.l{stroke:#555;stroke-width:0.6;fill:none}\n</style>\n",
	      out);
	fprintf(out, "<rect width=\"%.0f\" height=\"%.0f\" fill=\"#fff\"/>\n", width, height);
	svg_text(out, 16, 24, "class=\"t\"", title);
	svg_text(out, 16, 42, "class=\"s\"", subtitle);
}

/* Boxes of all kinds with their names, and the end of the file. */
static void svg_end(FILE *out, double y)
{
	double x = SVG_LEFT;
	for (unsigned i = N_KINDS; i-- > 0; x += 110) {
		svg_rect(out, x, y, 16, 12, &kinds[i]);
		svg_text(out, x + 22, y + 10, "class=\"s\"", kinds[i].name);
	}
	fputs("</svg>\n", out);
}

/* Where the columns are. */
struct columns {
	int64_t n;
	double width, gap; /* of one column, and between two */
};

static struct columns columns_of(int64_t n_npus, double least)
{
	struct columns columns = {.n = n_npus};
	double pitch = (double)SVG_PLOT / (double)n_npus;
	if (pitch > SVG_COLUMN_MAX)
		pitch = SVG_COLUMN_MAX;
	if (pitch < least)
		pitch = least;
	columns.gap = pitch >= 40 ? 12 : pitch >= 8 ? 1.5 : 0;
	columns.width = pitch - columns.gap;
	return columns;
}

static double column_x(const struct columns *columns, int64_t npu)
{
	return SVG_LEFT + (double)npu * (columns->width + columns->gap);
}

static void svg_npus(FILE *out, const struct columns *columns)
{
	char text[32];
	double pitch = columns->width + columns->gap;
	int64_t step = pitch >= 40 ? 1 : pitch >= 18 ? 4 : 8;
	for (int64_t npu = 0; npu < columns->n; npu += step) {
		snprintf(text, sizeof(text), step == 1 ? "NPU %" PRId64 : "%" PRId64, npu);
		svg_text(out, column_x(columns, npu) + columns->width / 2, SVG_TOP - 10, "class=\"m\"", text);
	}
	if (step > 1)
		svg_text(out, SVG_LEFT - 14, SVG_TOP - 10, "class=\"r\"", "NPU");
}

/* ---- runs of bytes ---- */

/* A footprint drawn into a box of the picture: bytes [0, bytes_per_npu) at y .. y + height. */
struct box {
	const struct npumem_geometry *geometry;
	const struct npumem_place *place;
	const struct columns *columns;
	double y, height;
	int steps;
	uint8_t *bits; /* [NPU][step] */
};

static void box_fill(struct box *box)
{
	int64_t bytes = box->place->bytes_per_npu;
	for (int64_t npu = 0; npu < box->geometry->n_npus; npu++)
		for (int step = 0; step < box->steps; step++) {
			int64_t from = bytes * step / box->steps, to = bytes * (step + 1) / box->steps;
			unsigned bits =
				picture_kinds(box->geometry, box->place, npu, from, to > from ? to : from + 1);
			const struct kind *kind = strongest(bits);
			box->bits[npu * box->steps + step] = kind ? (uint8_t)kind->bit : 0;
		}
}

/* Draws the runs of one kind; where there is no gap between NPUs, neighbours that are alike in all their steps
 * share their rectangles. */
static void box_draw(FILE *out, const struct box *box, const struct kind *kind)
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
			double x = column_x(box->columns, npu);
			svg_rect(out, x, box->y + box->height * from / box->steps,
				 column_x(box->columns, next - 1) + box->columns->width - x,
				 box->height * (to - from) / box->steps, kind);
		}
	}
}

static int box_new(const struct npumem_geometry *geometry, const struct npumem_place *place,
		   const struct columns *columns, double y, double height, struct box *box,
		   struct npumem_error *error)
{
	*box = (struct box){.geometry = geometry,
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

/* ---- a device ---- */

/* Not to scale, but more for more: a tensor of one small block can still be named. */
static double height_of(int64_t bytes)
{
	double height = SVG_LINE;
	for (int64_t size = 128; size < bytes; size *= 2)
		height += 5;
	return height;
}

static void svg_offset(FILE *out, double y, int64_t offset)
{
	char text[32];
	snprintf(text, sizeof(text), "%" PRId64, offset);
	svg_text(out, SVG_LEFT - 8, y, "class=\"r\"", text);
}

static void svg_free(FILE *out, const struct columns *columns, double y, int64_t offset, int64_t bytes)
{
	char text[64];
	double right = column_x(columns, columns->n - 1) + columns->width;
	snprintf(text, sizeof(text), "%" PRId64 " bytes per NPU free", bytes);
	svg_offset(out, y + 12, offset);
	svg_text(out, (SVG_LEFT + right) / 2, y + 13, "class=\"m s\"", text);
}

/* Tensors that overlap share a cluster: their place in the picture is by offset, their size to one scale. */
struct cluster {
	unsigned first, n;
	int64_t from, to;
};

static struct cluster cluster_at(const struct npumem_tensor *const *sorted, unsigned n, unsigned first)
{
	const struct npumem_place *place = &sorted[first]->place;
	struct cluster cluster = {first, 1, place->offset, place->offset + place->bytes_per_npu};
	while (first + cluster.n < n && sorted[first + cluster.n]->place.offset < cluster.to) {
		place = &sorted[first + cluster.n++]->place;
		if (place->offset + place->bytes_per_npu > cluster.to)
			cluster.to = place->offset + place->bytes_per_npu;
	}
	return cluster;
}

static void cluster_labels(FILE *out, const struct columns *columns, const struct npumem_tensor *const *sorted,
			   const struct cluster *cluster, double y, double height, uint32_t uid)
{
	char name[PRESENT_TEXT_BYTES], dtype[PRESENT_TEXT_BYTES], shape[PRESENT_TEXT_BYTES];
	char text[3 * PRESENT_TEXT_BYTES + 32];
	double right = column_x(columns, columns->n - 1) + columns->width, below = y;
	for (unsigned i = cluster->first; i < cluster->first + cluster->n; i++) {
		const struct npumem_place *p = &sorted[i]->place;
		double at =
			y + height * (double)(p->offset - cluster->from) / (double)(cluster->to - cluster->from);
		double line = at > below ? at : below;
		snprintf(text, sizeof(text), "%s: %s %s", present_name(sorted[i], uid, name),
			 present_dtype(p, dtype), present_shape(p, shape));
		fprintf(out, "<path class=\"l\" d=\"M%.1f %.1fL%.1f %.1f\"/>\n", right + 3, at + 2, right + 14,
			line + 9);
		svg_text(out, right + 18, line + 13, "", text);
		svg_offset(out, line + 12, p->offset);
		below = line + SVG_LINE;
	}
}

static int cluster_draw(FILE *out, const struct npumem_geometry *geometry, const struct columns *columns,
			const struct npumem_tensor *const *sorted, const struct cluster *cluster, double y,
			double height, struct npumem_error *error)
{
	/* Stronger kinds over weaker ones, so that a guest shows in the empty block that it borrows. */
	for (unsigned k = 0; k < N_KINDS; k++)
		for (unsigned i = cluster->first; i < cluster->first + cluster->n; i++) {
			const struct npumem_place *p = &sorted[i]->place;
			double scale = height / (double)(cluster->to - cluster->from);
			struct box box;
			int status = box_new(geometry, p, columns, y + scale * (double)(p->offset - cluster->from),
					     scale * (double)p->bytes_per_npu, &box, error);
			if (status)
				return status;
			box_draw(out, &box, &kinds[k]);
			free(box.bits);
		}
	return 0;
}

static double cluster_height(const struct npumem_tensor *const *sorted, const struct cluster *cluster)
{
	double height = height_of(cluster->to - cluster->from), labels = SVG_LINE * (double)cluster->n;
	(void)sorted;
	return height > labels ? height : labels;
}

int svg_device(FILE *out, const struct npumem_geometry *geometry, const struct npumem_tensor *tensors, unsigned n,
	       uint32_t uid, struct npumem_error *error)
{
	struct columns columns = columns_of(geometry->n_npus, 2);
	unsigned n_sorted;
	const struct npumem_tensor **sorted = picture_sort(tensors, n, &n_sorted);
	if (!sorted)
		return npumem_error_set(error, NPUMEM_RESOURCE_EXHAUSTED, "no memory for %u tensors", n);
	double height = SVG_TOP + 60;
	int64_t end = 0;
	for (unsigned i = 0; i < n_sorted;) {
		struct cluster cluster = cluster_at(sorted, n_sorted, i);
		height += cluster_height(sorted, &cluster) + 6 + (cluster.from > end ? SVG_LINE + 6 : 0);
		end = cluster.to;
		i += cluster.n;
	}
	char title[96], subtitle[96];
	snprintf(title, sizeof(title), "%" PRId64 " NPUs of %" PRId64 " bytes", geometry->n_npus,
		 geometry->npu_bytes);
	snprintf(subtitle, sizeof(subtitle), "%u tensors; offsets are bytes in each NPU, heights are not to scale",
		 n_sorted);
	svg_begin(out, column_x(&columns, columns.n) + SVG_LABELS, height + SVG_LINE + 6, title, subtitle);
	svg_npus(out, &columns);
	double y = SVG_TOP;
	int status = 0;
	end = 0;
	for (unsigned i = 0; i < n_sorted && !status;) {
		struct cluster cluster = cluster_at(sorted, n_sorted, i);
		double tall = cluster_height(sorted, &cluster);
		if (cluster.from > end) {
			svg_free(out, &columns, y, end, cluster.from - end);
			y += SVG_LINE + 6;
		}
		status = cluster_draw(out, geometry, &columns, sorted, &cluster, y, tall, error);
		cluster_labels(out, &columns, sorted, &cluster, y, tall, uid);
		y += tall + 6;
		end = cluster.to;
		i += cluster.n;
	}
	if (end < geometry->npu_bytes)
		svg_free(out, &columns, y, end, geometry->npu_bytes - end);
	svg_end(out, y + SVG_LINE + 20);
	free(sorted);
	return status;
}

/* ---- one tensor ---- */

/* Words a line of a column: 8 at most, so that a block row of the aligned layout is a few lines. */
static int64_t words_a_line(const struct npumem_place *place)
{
	int64_t words = place->bytes_per_npu / place->word_bytes;
	return words < 8 ? words : 8;
}

/* The first element of each word of data. */
static void svg_word_labels(FILE *out, const struct npumem_geometry *geometry, const struct npumem_place *p,
			    const struct columns *columns, int64_t line, double cell)
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
						 column_x(columns, npu) + ((double)(word % line) + 0.5) * cell,
						 SVG_TOP + (double)(word / line) * SVG_LINE + 12, "class=\"c\"",
						 text);
				}
			}
}

static void svg_words(FILE *out, const struct npumem_geometry *geometry, const struct npumem_place *p)
{
	int64_t line = words_a_line(p), words = p->bytes_per_npu / p->word_bytes;
	const double cell = 46;
	struct columns columns = {.n = geometry->n_npus, .width = cell * (double)line, .gap = 16};
	svg_npus(out, &columns);
	for (int64_t npu = 0; npu < geometry->n_npus; npu++)
		for (int64_t word = 0; word < words; word++) {
			unsigned bits =
				picture_kinds(geometry, p, npu, word * p->word_bytes, (word + 1) * p->word_bytes);
			const struct kind *kind = strongest(bits);
			double x = column_x(&columns, npu) + (double)(word % line) * cell;
			double y = SVG_TOP + (double)(word / line) * SVG_LINE;
			if (kind)
				svg_rect(out, x, y, cell, SVG_LINE, kind);
			/* Elements and dummies in one word: the dummies' share of it. */
			if ((bits & NPUMEM_BYTE_DATA) && (bits & NPUMEM_BYTE_DUMMY))
				svg_rect(out, x, y + SVG_LINE - 4, cell, 4, &kinds[2]);
		}
	for (int64_t at = 0; at < words; at += line)
		svg_offset(out, SVG_TOP + (double)(at / line) * SVG_LINE + 13, at * p->word_bytes);
	svg_word_labels(out, geometry, p, &columns, line, cell);
	svg_end(out, SVG_TOP + (double)((words + line - 1) / line) * SVG_LINE + 16);
}

static int svg_runs(FILE *out, const struct npumem_geometry *geometry, const struct npumem_place *p,
		    struct npumem_error *error)
{
	struct columns columns = columns_of(geometry->n_npus, 2);
	struct box box;
	int status = box_new(geometry, p, &columns, SVG_TOP, SVG_STEPS, &box, error);
	if (status)
		return status;
	svg_npus(out, &columns);
	for (unsigned k = 0; k < N_KINDS; k++)
		box_draw(out, &box, &kinds[k]);
	free(box.bits);
	for (int i = 0; i <= 8; i++)
		svg_offset(out, SVG_TOP + (double)SVG_STEPS * i / 8 + (i ? 0 : 10), p->bytes_per_npu * i / 8);
	svg_end(out, SVG_TOP + SVG_STEPS + 20);
	return 0;
}

int svg_tensor(FILE *out, const struct npumem_geometry *geometry, const struct npumem_tensor *tensor, uint32_t uid,
	       struct npumem_error *error)
{
	char name[PRESENT_TEXT_BYTES], dtype[PRESENT_TEXT_BYTES], shape[PRESENT_TEXT_BYTES];
	char title[3 * PRESENT_TEXT_BYTES + 64], subtitle[320];
	const struct npumem_place *p = &tensor->place;
	bool small =
		p->bytes_per_npu / p->word_bytes * geometry->n_npus <= SVG_WORDS_MAX && geometry->n_npus <= 16;
	snprintf(title, sizeof(title), "%s: %s %s, %s, %s", present_name(tensor, uid, name),
		 present_dtype(p, dtype), present_shape(p, shape), npumem_layout_name(p->layout),
		 npumem_mode_name(p->mode));
	snprintf(subtitle, sizeof(subtitle),
		 "strides n %" PRId64 ", c %" PRId64 ", h %" PRId64 ", w %" PRId64 "; %" PRId64 " bytes per NPU%s",
		 p->stride.n, p->stride.c, p->stride.h, p->stride.w, p->bytes_per_npu,
		 !small		? "; offsets from the tensor's start"
		 : p->lanes > 1 ? "; a block is one packed word, labelled packed n,c,h,w"
				: "; a block is one element, labelled n,c,h,w");
	if (!small) {
		struct columns columns = columns_of(geometry->n_npus, 2);
		svg_begin(out, column_x(&columns, columns.n) + 40, SVG_TOP + SVG_STEPS + 60, title, subtitle);
		return svg_runs(out, geometry, p, error);
	}
	int64_t line = words_a_line(p), lines = (p->bytes_per_npu / p->word_bytes + line - 1) / line;
	svg_begin(out, SVG_LEFT + (46 * (double)line + 16) * (double)geometry->n_npus + 24,
		  SVG_TOP + (double)lines * SVG_LINE + 50, title, subtitle);
	svg_words(out, geometry, p);
	return 0;
}
