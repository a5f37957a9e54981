/* NPUs as columns of a picture, those that look alike as one, and footprints drawn in them. */
#ifndef CTL_CORE_SVG_COLUMNS_H
#define CTL_CORE_SVG_COLUMNS_H

#include "client/ctl/core/pictures/svg.h"

enum {
	SVG_COLUMNS_APART = 16, /* up to so many NPUs have a column each */
	SVG_STEPS = 480,	/* that a column of runs has at most */
};

struct svg_columns {
	int64_t n;
	int64_t first[NPUMEM_NPUS_MAX + 1]; /* column i is NPUs first[i] to first[i + 1] - 1 */
	double width, gap;		    /* of one column, and between two */
};

/* A column for each NPU, or, where they are many, for each run of neighbours on which all these tensors look the
 * same. */
void svg_columns_of(struct svg_columns *columns, const struct npumem_geometry *geometry,
		    const struct npumem_tensor *const *tensors, unsigned n);
double svg_columns_x(const struct svg_columns *columns, int64_t i);
/* Where the last column ends. */
double svg_columns_right(const struct svg_columns *columns);
/* "NPU 3", "NPU 4 to 63". Returns `text`, SVG_BYTES_TEXT long. */
const char *svg_columns_name(const struct svg_columns *columns, int64_t i, char *text);
/* The numbers above the columns. */
void svg_columns_numbers(struct svg *svg, const struct svg_columns *columns);

/* A footprint drawn into a box of the picture: bytes [0, bytes_per_npu) at y .. y + height. */
struct svg_box {
	const struct npumem_geometry *geometry;
	const struct npumem_tensor *tensor;
	const struct svg_columns *columns;
	double y, height;
	int steps, colour;
	const char *name;
	uint16_t *bits; /* [column][step]: one kind */
};

/* Looks at the place; `bits` may be given back to memory.h. */
void svg_box_new(struct svg_box *box);
/* Draws the runs of one kind, as it or as another. */
void svg_box_draw(struct svg *svg, const struct svg_box *box, unsigned kind, unsigned as);

#endif
