/* What the pictures are made of: text, boxes of a kind, columns of NPUs, runs of bytes. */
#ifndef CTL_CORE_SVG_H
#define CTL_CORE_SVG_H

#include <stdio.h>

#include <npumem/client.h>

enum {
	SVG_LEFT = 96,	 /* room for the offsets */
	SVG_TOP = 84,	 /* for title and NPU numbers */
	SVG_STEPS = 480, /* that a column of runs has at most */
	SVG_LINE = 18,	 /* height of a word, and of a line of text */
};

/* Kinds of bytes, weakest first, in the order of painting. */
enum { SVG_KINDS = 4, SVG_DUMMY = 2 };
struct svg_kind {
	unsigned bit; /* enum npumem_byte */
	const char *name, *fill, *stroke;
};
extern const struct svg_kind svg_kinds[SVG_KINDS];
/* Data of a tensor that shares block rows with another one above it. */
extern const struct svg_kind svg_guest_data;
/* The strongest of or'ed kinds; NULL for none. */
const struct svg_kind *svg_strongest(unsigned bits);

/* Where the columns are. */
struct svg_columns {
	int64_t n;
	double width, gap; /* of one column, and between two */
};

/* `least` is the narrowest that a column may be. */
struct svg_columns svg_columns_of(int64_t n_npus, double least);
double svg_column_x(const struct svg_columns *columns, int64_t npu);

void svg_begin(FILE *out, double width, double height, const char *title, const char *subtitle);
/* The legend at `y`, with guests' data where there are any, and the end of the file. */
void svg_end(FILE *out, double y, bool guests);
void svg_text(FILE *out, double x, double y, const char *style, const char *text);
void svg_rect(FILE *out, double x, double y, double width, double height, const struct svg_kind *kind);
/* The numbers above the columns; an offset at the left. */
void svg_npus(FILE *out, const struct svg_columns *columns);
void svg_offset(FILE *out, double y, int64_t offset);

/* A footprint drawn into a box of the picture: bytes [0, bytes_per_npu) at y .. y + height. */
struct svg_box {
	const struct npumem_geometry *geometry;
	const struct npumem_place *place;
	const struct svg_columns *columns;
	double y, height;
	int steps;
	uint8_t *bits; /* [NPU][step] */
};

/* Looks at the place. 0 or RESOURCE_EXHAUSTED; `bits` is the caller's to free(). */
int svg_box_new(const struct npumem_geometry *geometry, const struct npumem_place *place,
		const struct svg_columns *columns, double y, double height, struct svg_box *box,
		struct npumem_error *error);
/* Draws the runs of one kind, `as` it or in another colour; where there is no gap between NPUs, neighbours that
 * are alike in all their steps share their rectangles. */
void svg_box_draw(FILE *out, const struct svg_box *box, const struct svg_kind *kind, const struct svg_kind *as);

#endif
