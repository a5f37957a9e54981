/* What two places have in common: every stretch of bytes that is of some kinds for the one and of some kinds for
 * the other, exactly, whatever their layouts and strides.
 *
 * A walk goes through both places' masks (formulas/boxes/kind_mask.h), group of NPUs by group and offset by
 * offset, over what is all in or all out in one step. Ranges of offsets that do not meet cost nothing; an ordinary
 * first stretch 0.2 to 0.6 us. A step is bounded, so a walk that takes many can be made in pieces. */
#ifndef DEVICE_INTERSECT_H
#define DEVICE_INTERSECT_H

#include "daemon/device/geometry/npu_groups.h"

/* Kinds: flags of enum npumem_byte. */
enum {
	KINDS_DATA = NPUMEM_BYTE_DATA | NPUMEM_BYTE_DUMMY,
	KINDS_FOOTPRINT = KIND_MASK_ALL,
};

/* Bytes [offset, offset + bytes) of each of the NPUs [npu, npu + n_npus). */
struct intersect_range {
	int64_t npu, n_npus, offset, bytes;
};

/* Private. */
struct intersect {
	const struct npumem_geometry *geometry;
	const struct npumem_place *places[2];
	unsigned kinds[2];
	struct npu_groups groups;
	unsigned group;
	int64_t from, to, at;	   /* the offsets that both have, and how far it is */
	struct kind_mask masks[2]; /* of this group */
	int64_t bits_from;	   /* the window: its offset, */
	unsigned n_words, word;	   /* size, and what is not told yet of its */
	uint64_t bits[KIND_MASK_WORDS];
	struct intersect_range open; /* a stretch that may go on; 0 bytes: none */
	int64_t none_from;	     /* nothing is common from here up to `at`; -1: something may be */
};

/* Begins a walk over bytes of kinds a_kinds for `a` and b_kinds for `b`. The places, of tensors or views, stay as
 * they are until the last step. Takes no memory. */
void intersect_begin(struct intersect *walk, const struct npumem_geometry *geometry, const struct npumem_place *a,
		     unsigned a_kinds, const struct npumem_place *b, unsigned b_kinds);

enum intersect_answer { INTERSECT_END, INTERSECT_RANGE, INTERSECT_PAUSE };

/* The next stretch, by group of NPUs and offset, none of which touches another of its NPUs: RANGE, or END, or
 * PAUSE when *steps, of which it takes one for 0.05 to 1 us (up to 40 where strides do not nest), are used up. */
enum intersect_answer intersect_step(struct intersect *walk, int64_t *steps, struct intersect_range *range);
/* The next stretch, whatever it takes; false at the end. */
bool intersect_next(struct intersect *walk, struct intersect_range *range);

/* The first stretch of all; false where there is none. */
bool intersect_first(const struct npumem_geometry *geometry, const struct npumem_place *a, unsigned a_kinds,
		     const struct npumem_place *b, unsigned b_kinds, struct intersect_range *range);

/* True where every element of the one lies where that of the other does. */
bool intersect_same(const struct npumem_place *a, const struct npumem_place *b);

#endif
