/* One tensor as SVG: runs of bytes, or where its words are few a box for each word on each NPU, labelled with the
 * elements in it. */
#include "client/ctl/core/pictures/svg.h"

#include <inttypes.h>
#include <string.h>

#include "client/ctl/core/memory.h"
#include "client/ctl/core/output/output.h"
#include "client/ctl/core/pictures/picture.h"

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

void svg_tensor_begin(struct svg *svg, FILE *out, const struct npumem_geometry *geometry,
		      const struct npumem_tensor *tensor, uint32_t uid, const char *note)
{
	char name[PRESENT_TEXT_BYTES], dtype[PRESENT_TEXT_BYTES], shape[PRESENT_TEXT_BYTES];
	char title[3 * PRESENT_TEXT_BYTES + 64];
	const struct npumem_place *p = &tensor->place;
	bool plan = !*tensor->state && !*tensor->name;
	snprintf(title, sizeof(title), "%s%s%s %s, %s, %s", plan ? "" : present_name(tensor, uid, name),
		 plan ? "" : ": ", present_dtype(p, dtype), present_shape(p, shape), npumem_layout_name(p->layout),
		 npumem_mode_name(p->mode));
	svg_begin(svg, out, title);
	subtitle_place(svg, geometry, tensor);
	svg_subtitle(svg, 2, note);
	svg_marks(svg, 16 + 8.6 * (double)strlen(title) + 8, 11, tensor);
}

/* ---- word by word ---- */

enum { WORDS_MAX = 4096, WORDS_NPUS_MAX = 16, WORDS_CELL = 46, WORDS_LANE = 13, WORDS_BETWEEN = 4 };

/* The tensor, and the size of its drawing. */
struct words {
	const struct npumem_geometry *geometry;
	const struct npumem_tensor *tensor;
	const struct npumem_place *place;
	int64_t n, line;   /* words on an NPU, and of a line */
	int64_t *elements; /* [NPU][word]: the index of its first element in packed words, or -1 */
	double height;	   /* of a word */
	int colour;
	struct svg_columns columns;
};

static bool words_few(const struct npumem_geometry *geometry, const struct npumem_place *place)
{
	return geometry->n_npus <= WORDS_NPUS_MAX &&
	       place->bytes_per_npu / place->word_bytes * geometry->n_npus <= WORDS_MAX;
}

static void words_find(struct words *words)
{
	const struct npumem_place *p = words->place;
	int64_t npu, offset, index = 0;
	for (int64_t i = 0; i < words->n * words->geometry->n_npus; i++)
		words->elements[i] = -1;
	for (int64_t n = 0; n < p->words_n; n++)
		for (int64_t c = 0; c < p->shape.c; c++)
			for (int64_t h = 0; h < p->shape.h; h++)
				for (int64_t w = 0; w < p->shape.w; w++, index++) {
					if (c == p->shape.c - 1 && w >= p->last_w)
						continue;
					npumem_place_locate(words->geometry, p, n * p->lanes, c, h, w, &npu,
							    &offset);
					words->elements[npu * words->n + offset / p->word_bytes] = index;
				}
}

/* Of packed words, rows are apart, so that it is seen which elements one word has. */
static double word_height(const struct words *words)
{
	return words->place->lanes > 1 ? words->height - WORDS_BETWEEN : words->height;
}

/* One element of a word, or the dummy in its place. */
static void word_lane(struct svg *svg, const struct words *words, int64_t npu, int64_t word, int64_t lane,
		      double x, double y)
{
	const struct npumem_place *p = words->place;
	int64_t index = words->elements[npu * words->n + word], plane = p->shape.h * p->shape.w;
	int64_t w = index % p->shape.w, h = index / p->shape.w % p->shape.h, c = index / plane % p->shape.c;
	int64_t n = index / plane / p->shape.c * p->lanes + lane;
	int64_t at = word * p->word_bytes + lane * (p->word_bytes / p->lanes);
	int64_t offset = (p->offset == NPUMEM_ANY ? 0 : p->offset) + at;
	double height = word_height(words) / (double)p->lanes;
	unsigned kind = n < p->shape.n ? NPUMEM_BYTE_DATA : NPUMEM_BYTE_DUMMY;
	char text[96], matrix[96] = "";
	if (p->layout == NPUMEM_MATRIX) {
		snprintf(text, sizeof(text), "%" PRId64 ",%" PRId64, n, c * p->w + w);
		snprintf(matrix, sizeof(matrix), "row %" PRId64 ", column %" PRId64 ": ", n, c * p->w + w);
	} else {
		snprintf(text, sizeof(text), "%" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRId64, n, c, h, w);
	}
	svg_rect(svg, x, y, WORDS_CELL, height, kind, kind == NPUMEM_BYTE_DATA ? words->colour : SVG_PLAIN,
		 "%s%s (%" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRId64 "); NPU %" PRId64 ", offset %" PRId64
		 ", address %" PRId64,
		 matrix, svg_kind_name(kind), n, c, h, w, npu, offset, npu * words->geometry->npu_bytes + offset);
	if (kind == NPUMEM_BYTE_DATA)
		svg_text(svg, x + WORDS_CELL / 2.0, y + height - (height - 7) / 2, "c", text);
}

static void word_draw(struct svg *svg, const struct words *words, int64_t npu, int64_t word)
{
	const struct npumem_place *p = words->place;
	int64_t from = word * p->word_bytes, offset = (p->offset == NPUMEM_ANY ? 0 : p->offset) + from;
	double x = svg_columns_x(&words->columns, npu) + (double)(word % words->line) * WORDS_CELL;
	double y = SVG_TOP + (double)(word / words->line) * words->height;
	if (words->elements[npu * words->n + word] >= 0) {
		for (int64_t lane = 0; lane < p->lanes; lane++)
			word_lane(svg, words, npu, word, lane, x,
				  y + (double)lane * word_height(words) / (double)p->lanes);
		return;
	}
	unsigned kind = svg_strongest(picture_kinds(words->geometry, p, npu, from, from + p->word_bytes));
	if (kind == NPUMEM_BYTE_PADDING && !picture_holds(words->geometry, p, npu))
		kind = SVG_NOTHING;
	svg_rect(svg, x, y, WORDS_CELL, word_height(words), kind, SVG_PLAIN,
		 "%s; NPU %" PRId64 ", offset %" PRId64 ", address %" PRId64, svg_kind_name(kind), npu, offset,
		 npu * words->geometry->npu_bytes + offset);
}

static void words_draw(struct svg *svg, const struct npumem_geometry *geometry, const struct npumem_tensor *tensor,
		       const struct svg_mark *mark)
{
	const struct npumem_place *p = &tensor->place;
	struct words words = {.geometry = geometry,
			      .tensor = tensor,
			      .place = p,
			      .n = p->bytes_per_npu / p->word_bytes,
			      .height = p->lanes > 1 ? (double)(WORDS_LANE * p->lanes + WORDS_BETWEEN) : SVG_LINE,
			      .colour = *tensor->name ? svg_colour(tensor->name) : SVG_PLAIN};
	int64_t most = geometry->n_npus <= 4 ? 8 : geometry->n_npus <= 8 ? 4 : 2;
	words.line = words.n < most ? words.n : most;
	svg_columns_of(&words.columns, geometry, NULL, 0);
	words.columns.width = (double)(WORDS_CELL * words.line);
	words.columns.gap = SVG_LINE;
	words.elements = memory_new((size_t)(words.n * geometry->n_npus), sizeof(*words.elements));
	words_find(&words);
	svg_columns_numbers(svg, &words.columns);
	for (int64_t npu = 0; npu < geometry->n_npus; npu++)
		for (int64_t word = 0; word < words.n; word++)
			word_draw(svg, &words, npu, word);
	for (int64_t at = 0; at < words.n; at += words.line)
		svg_offset(svg, SVG_TOP + (double)(at / words.line) * words.height + 13,
			   (p->offset == NPUMEM_ANY ? 0 : p->offset) + at * p->word_bytes);
	if (mark) {
		int64_t word = mark->offset / p->word_bytes;
		svg_frame(svg, svg_columns_x(&words.columns, mark->npu) + (double)(word % words.line) * WORDS_CELL,
			  SVG_TOP + (double)(word / words.line) * words.height, WORDS_CELL, word_height(&words));
	}
}

/* ---- by runs ---- */

static void draw_runs(struct svg *svg, const struct npumem_geometry *geometry, const struct npumem_tensor *tensor,
		      const struct svg_mark *mark)
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
	svg_box_new(&box);
	svg_columns_numbers(svg, &columns);
	for (unsigned k = 0; k < sizeof(order) / sizeof(order[0]); k++)
		svg_box_draw(svg, &box, order[k], order[k]);
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
}

void svg_tensor_draw(FILE *out, const struct npumem_geometry *geometry, const struct npumem_tensor *tensor,
		     uint32_t uid, const struct svg_mark *mark)
{
	const struct npumem_place *p = &tensor->place;
	bool small = words_few(geometry, p);
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
	svg_tensor_begin(&svg, out, geometry, tensor, uid, note);
	(small ? words_draw : draw_runs)(&svg, geometry, tensor, mark);
	svg_end(&svg);
}

/* ---- Which NPU holds which feature, and in which block row. ---- */

enum { FEATURES_MAX = 4096, FEATURES_CELL = 64, FEATURES_CELL_LEAST = 40 };

/* How many n are drawn: all, or as many as there is room for. */
static int64_t features_n(const struct npumem_geometry *geometry, const struct npumem_place *place)
{
	int64_t each = geometry->n_npus * place->channels_per_npu, n = FEATURES_MAX / each;
	n = n < 1 ? 1 : n;
	return n < place->shape.n ? n : place->shape.n;
}

/* The block row of channel c - X .. c of all NPUs, for one n. */
static void features_row(struct svg *svg, const struct npumem_geometry *geometry,
			 const struct npumem_tensor *tensor, const struct svg_columns *columns, int64_t n,
			 int64_t row, double y)
{
	const struct npumem_place *p = &tensor->place;
	int64_t npu_at, offset;
	char text[64];
	snprintf(text, sizeof(text), "n %" PRId64 ", row %" PRId64, n, row);
	svg_text(svg, SVG_LEFT - 8, y + 13, "r", text);
	for (int64_t npu = 0; npu < geometry->n_npus; npu++) {
		int64_t c = row * geometry->n_npus + npu - p->start_npu;
		double x = svg_columns_x(columns, npu);
		if (c < 0 || c >= p->shape.c) {
			svg_rect(svg, x, y, columns->width, SVG_LINE, NPUMEM_BYTE_EMPTY, SVG_PLAIN,
				 "empty; NPU %" PRId64 ", block row %" PRId64, npu, row);
			continue;
		}
		npumem_place_locate(geometry, p, n, c, 0, 0, &npu_at, &offset);
		offset += p->offset == NPUMEM_ANY ? 0 : p->offset;
		snprintf(text, sizeof(text), "%" PRId64 ",%" PRId64, n, c);
		svg_rect(svg, x, y, columns->width, SVG_LINE, NPUMEM_BYTE_DATA,
			 *tensor->name ? svg_colour(tensor->name) : SVG_PLAIN,
			 "feature (%" PRId64 ",%" PRId64 "); NPU %" PRId64 ", block row %" PRId64
			 ", offset %" PRId64,
			 n, c, npu_at, row, offset);
		svg_text(svg, x + columns->width / 2, y + 13, "c", text);
	}
}

void svg_tensor_features(FILE *out, const struct npumem_geometry *geometry, const struct npumem_tensor *tensor,
			 uint32_t uid)
{
	const struct npumem_place *p = &tensor->place;
	int64_t n_drawn = features_n(geometry, p), rows = p->channels_per_npu;
	int64_t rows_drawn = FEATURES_MAX / geometry->n_npus;
	struct svg_columns columns = {0};
	struct svg svg;
	char note[128];
	rows_drawn = rows_drawn < rows ? rows_drawn : rows;
	snprintf(note, sizeof(note), "a box is one feature (n,c): all of its h and w");
	if (n_drawn < p->shape.n || rows_drawn < rows)
		snprintf(note, sizeof(note),
			 "a box is one feature (n,c); the first %" PRId64 " of %" PRId64 " n and %" PRId64
			 " of %" PRId64 " block rows",
			 n_drawn, p->shape.n, rows_drawn, rows);
	svg_tensor_begin(&svg, out, geometry, tensor, uid, note);
	for (columns.n = 0; columns.n < geometry->n_npus; columns.n++)
		columns.first[columns.n] = columns.n;
	columns.first[columns.n] = columns.n;
	columns.width = geometry->n_npus <= SVG_COLUMNS_APART ? FEATURES_CELL : FEATURES_CELL_LEAST;
	svg_columns_numbers(&svg, &columns);
	double y = SVG_TOP;
	for (int64_t n = 0; n < n_drawn; n++, y += 6)
		for (int64_t row = 0; row < rows_drawn; row++, y += SVG_LINE)
			features_row(&svg, geometry, tensor, &columns, n, row, y);
	svg_end(&svg);
}
