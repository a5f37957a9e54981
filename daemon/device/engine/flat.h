/* Features as flat lines, on which a window's tap is a constant distance.
 *
 * A plane has what taps of one residue of the stride meet of a channel: one plane for stride 1, four for stride 2.
 * Its rows follow each other at a pitch that leaves as many zeros between them as padding needs, those at a row's
 * end being those before the next one too. Output (y, x) is flat pixel y * pitch + x of every plane; what the
 * columns between two rows of outputs sum up is nobody's. */
#ifndef DEVICE_FLAT_H
#define DEVICE_FLAT_H

#include "daemon/device/engine/ukernel.h"
#include "daemon/device/kernel_support/windows/convolution.h"

struct flat_axis {
	int64_t extent;	    /* rows, or columns of a row, that windows meet */
	int64_t n_residues; /* of taps: 0, dilation, 2 * dilation, ... modulo the stride */
};

struct flat {
	const struct phase *phase;
	struct flat_axis h, w;
	int64_t pitch;
	int64_t n_pixels; /* from the first output to the last */
	int64_t reach;	  /* the farthest tap */
	int64_t length;	  /* elements of a plane, and of what vectors see behind it */
	bool as_it_lies;  /* the only plane is the feature */
};

/* False where windows and padding dwarf the input, or there is no tap at all. */
bool flat_init(struct flat *flat, const struct phase *phase);

static inline int64_t flat_n_planes(const struct flat *flat)
{
	return flat->h.n_residues * flat->w.n_residues;
}

/* The plane and the place of tap (y, x). */
int64_t flat_plane(const struct flat *flat, int64_t y, int64_t x);
int64_t flat_offset(const struct flat *flat, int64_t y, int64_t x);

/* Pixels `first` to `end` - 1 of a plane. */
struct flat_span {
	int64_t first, end;
};

/* Writes the elements of a feature into all planes, `length` elements apart, the rest of which is zeros already:
 * of each plane all rows that have pixels of the span. `look` is asked between stretches of rows, with the
 * elements written since; false where that was. */
bool flat_spread(const struct flat *flat, struct flat_span span, const struct ukernel *ukernel, unsigned bytes,
		 const void *feature, void *planes, bool (*look)(void *ctx, int64_t elements), void *ctx);

/* Flat pixels from `pixel` on, a multiple of UKERNEL_COLUMNS; returns which output the first real one is. */
int64_t flat_strip(const struct flat *flat, int64_t pixel, struct ukernel_strip *strip);

#endif
