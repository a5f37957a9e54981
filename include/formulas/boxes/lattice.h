/* Boxes of points under arbitrary strides: which offsets they reach, and whether twice.
 * A point p of the box, 0 <= p[i] < extent[i], has the offset sum p[i] * stride[i]. */
#ifndef FORMULAS_LATTICE_H
#define FORMULAS_LATTICE_H

#include <stdbool.h>
#include <stdint.h>

enum { LATTICE_DIMS = 4 };

/* extent and stride > 0; the largest offset is below 2^30. */
struct lattice {
	int64_t extent[LATTICE_DIMS];
	int64_t stride[LATTICE_DIMS];
};

/* Whether two points of the box have one offset; then `difference` is what one is from the other, d[i] in
 * (-extent[i], extent[i]). */
bool lattice_collides(const struct lattice *box, int64_t difference[LATTICE_DIMS]);

/* How many offsets the box and the same box moved by `shift` > 0 have in common. No two points of the box collide.
 */
int64_t lattice_shared(const struct lattice *box, int64_t shift);

#endif
