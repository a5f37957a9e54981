/* Kind masks: which bytes of a tensor's footprint on one NPU are of given kinds, as bits of a window of offsets.
 * The one description of what is data, dummy, padding and empty; pictures, verdicts and counts all ask it. */
#ifndef FORMULAS_KIND_MASK_H
#define FORMULAS_KIND_MASK_H

#include <npumem/layout.h>

#include "include/formulas/boxes/strided_box.h"

enum {
	KIND_MASK_ALL = NPUMEM_BYTE_DATA | NPUMEM_BYTE_DUMMY | NPUMEM_BYTE_PADDING | NPUMEM_BYTE_EMPTY,
	KIND_MASK_EACH = 0,   /* for kind_mask_split only */
	KIND_MASK_WORDS = 64, /* of a window, at most */
};

/* What boxes make up a place on one NPU. Of the kinds, words are data, but for the dummies among them; the rest is
 * empty where the last of them has it, else padding. */
enum kind_mask_part { KIND_MASK_EMPTY, KIND_MASK_WORD, KIND_MASK_DUMMY, KIND_MASK_PARTS };

struct kind_mask {
	int64_t from, to; /* the footprint's offsets */
	unsigned kinds;	  /* that are asked for */
	unsigned n[KIND_MASK_PARTS];
	struct strided_box boxes[KIND_MASK_PARTS][2];
};

/* The bytes of `kinds` (flags of enum npumem_byte) of a place, or of a view's, whose first byte has the offset
 * `base`; for strides > 0 of any kind. */
void kind_mask_init(struct kind_mask *mask, const struct npumem_geometry *geometry,
		    const struct npumem_place *place, int64_t base, int64_t npu, unsigned kinds);

/* Sets bit i of `bits` where byte from + i is of the kinds, for i < 64 * n_words, n_words <= KIND_MASK_WORDS.
 * Bytes outside the footprint are of no kind. About 0.05 to 0.6 us for 4 KiB; some 40 us where strides do not
 * nest. */
void kind_mask_bits(const struct kind_mask *mask, int64_t from, unsigned n_words, uint64_t *bits);

/* Of KIND_MASK_EACH only: the four kinds at once, n_words words of each. */
struct kind_mask_split {
	uint64_t data[KIND_MASK_WORDS], dummy[KIND_MASK_WORDS], padding[KIND_MASK_WORDS], empty[KIND_MASK_WORDS];
};
void kind_mask_split(const struct kind_mask *mask, int64_t from, unsigned n_words, struct kind_mask_split *split);

/* Whether byte `at` of the footprint is of the kinds, and up to which offset all bytes are as this one: that far,
 * or less. At least one byte further. */
int64_t kind_mask_until(const struct kind_mask *mask, int64_t at, bool *in);

/* Up to where the place repeats itself every *period bytes from `at` on, with periods of its own of up to `most`;
 * *period becomes the least common multiple of what it was and these. */
int64_t kind_mask_period(const struct kind_mask *mask, int64_t at, int64_t most, int64_t *period);

/* NPUs between two cuts look the same. The NPUs, above 0 and below n_npus, with which a new group begins; in no
 * promised order, at most KIND_MASK_CUTS; the number. */
enum { KIND_MASK_CUTS = 3 };
unsigned kind_mask_cuts(const struct npumem_geometry *geometry, const struct npumem_place *place, unsigned kinds,
			int64_t cuts[KIND_MASK_CUTS]);

#endif
