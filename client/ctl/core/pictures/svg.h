/* A picture as SVG: what it is made of, and the one look that all of them have. The body is gathered in memory, so
 * that its size, its colours and its legend follow from what was drawn. */
#ifndef CTL_CORE_PICTURES_SVG_H
#define CTL_CORE_PICTURES_SVG_H

#include <stdio.h>

#include <npumem/client.h>

enum {
	SVG_LEFT = 96, /* room for the offsets */
	SVG_TOP = 104, /* for the titles and the NPUs' numbers */
	SVG_LINE = 18, /* height of a word, and of a line of text */
	SVG_BYTES_TEXT = 32,
	SVG_PLAIN = -1, /* no tensor's colour */
};

/* What can be drawn: the kinds of enum npumem_byte, and these. */
enum svg_kind {
	SVG_NOTHING = 16, /* an NPU that holds none of a tensor */
	SVG_LENT = 32,	  /* data in another tensor's empty block */
	SVG_FREE = 64,
	SVG_SEALED = 128, /* the marks of a tensor */
	SVG_DAMAGED = 256,
	SVG_UNWRITTEN = 512,
	SVG_USED = 1024, /* a tensor that lives on after its last use */
	SVG_BLOCK = 2048,
	SVG_ADDRESS = 4096,
	SVG_MIXED = 8192, /* with a weaker kind: a run that has data and that */
};

struct svg {
	FILE *out, *body;
	char *text;
	size_t bytes;
	double width, height;
	unsigned kinds;	  /* that occur */
	unsigned colours; /* that occur, as bits */
};

/* svg_end follows. */
void svg_begin(struct svg *svg, FILE *out, const char *title);
/* The next of the lines below the title. */
void svg_subtitle(struct svg *svg, unsigned line, const char *text);
/* Writes the file, with a legend of what occurs. */
void svg_end(struct svg *svg);

/* `style`: a class. t: title, s: secondary, r: ends at x, m: around x, c: small, around x; empty: begins at x. */
void svg_text(struct svg *svg, double x, double y, const char *style, const char *text);
/* A box of a kind; its tooltip printf style. */
void svg_rect(struct svg *svg, double x, double y, double width, double height, unsigned kind, int colour,
	      const char *format, ...) __attribute__((format(printf, 8, 9)));
/* A frame around what matters most. */
void svg_frame(struct svg *svg, double x, double y, double width, double height);
void svg_line(struct svg *svg, double x, double y, double to_x, double to_y);
/* An offset left of the columns. */
void svg_offset(struct svg *svg, double y, int64_t offset);
/* The marks of a tensor at x, on a line of text that begins at y. Returns the x after them. */
double svg_marks(struct svg *svg, double x, double y, const struct npumem_tensor *tensor);

/* A tensor's colour: by its name, so that it is the same in every picture. */
int svg_colour(const char *name);
/* The strongest of or'ed kinds of bytes; 0 for none. */
unsigned svg_strongest(unsigned bits);
/* "12.5 KiB". Returns `text`, SVG_BYTES_TEXT long. */
const char *svg_bytes(int64_t bytes, char *text);
/* What a kind is called. */
const char *svg_kind_name(unsigned kind);

/* svg_columns.c. NPUs as columns of a picture, those that look alike as one, and footprints drawn in them. */

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

/* svg_tensor.c. One tensor as SVG, in the manner of the figures of the vendor's layout chapter. */

/* A byte of a tensor that is framed: its NPU, and the offset from the start of the tensor. */
struct svg_mark {
	int64_t npu, offset;
	const char *what; /* for the subtitle */
};

/* A small one word by word, with the elements that each word holds; a large one by runs of bytes. A tensor without
 * a state is a plan. `mark` NULL: none. */
void svg_tensor_draw(FILE *out, const struct npumem_geometry *geometry, const struct npumem_tensor *tensor,
		     uint32_t uid, const struct svg_mark *mark);

/* A cell for each feature (n, c), as the chapter's "Scatter Features to Different NPUs" has it: the first n, as
 * many as a picture can show. */
void svg_tensor_features(FILE *out, const struct npumem_geometry *geometry, const struct npumem_tensor *tensor,
			 uint32_t uid);

/* The title and the lines below it: what and how large it is, where it lies; `note` says how to read the picture.
 */
void svg_tensor_begin(struct svg *svg, FILE *out, const struct npumem_geometry *geometry,
		      const struct npumem_tensor *tensor, uint32_t uid, const char *note);

/* svg_device.c. The device with its tensors as SVG: columns are NPUs, offsets go down, colours are tensors,
 * hatches are kinds.
 */

/* How the device is to be drawn. */
struct svg_device {
	bool to_scale; /* else small tensors are drawn larger than they are, so that they can be seen */
	bool hidden;   /* the device has tensors that the list lacks */
	uint32_t uid;  /* whose tensors are named without it */
};

void svg_device_draw(FILE *out, const struct npumem_geometry *geometry, const struct npumem_tensor *const *tensors,
		     unsigned n, const struct svg_device *how);

/* svg_address.c. Addresses as SVG: on which NPU and where on it each one lies. */

enum { SVG_ADDRESSES_MAX = 64 };

/* Each address lies on the device. */
void svg_address_draw(FILE *out, const struct npumem_geometry *geometry, const int64_t *addresses, unsigned n);

#endif
