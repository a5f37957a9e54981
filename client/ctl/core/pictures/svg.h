/* A picture as SVG: what it is made of, and the one look that all of them have. The body is gathered in memory, so
 * that its size, its colours and its legend follow from what was drawn. */
#ifndef CTL_CORE_SVG_H
#define CTL_CORE_SVG_H

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

#endif
