/* Which NPU holds which feature, and in which block row. */
#include <inttypes.h>

#include "client/ctl/core/pictures/svg.h"

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
