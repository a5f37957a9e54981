/* Where two places share bytes. */
#ifndef DEVICE_MEET_H
#define DEVICE_MEET_H

#include <npumem/layout.h>

enum {
	MEET_DATA = NPUMEM_BYTE_DATA | NPUMEM_BYTE_DUMMY,
	MEET_FOOTPRINT = MEET_DATA | NPUMEM_BYTE_PADDING | NPUMEM_BYTE_EMPTY,
};

/* NPUs on which a place looks the same are of one class: they differ in having the first and the last block row,
 * and the one with the last channel stands alone where that is narrower than the others. */
enum { MEET_CLASSES = 5 };

unsigned meet_class(const struct npumem_geometry *geometry, const struct npumem_place *place, int64_t npu);
/* Whether a place has any element on an NPU. */
bool meet_has_data(const struct npumem_geometry *geometry, const struct npumem_place *place, int64_t npu);

struct meet_range {
	int64_t npu, offset, bytes;
};

/* Visits every stretch of bytes that is of one of `a_kinds` for `a` and of one of `b_kinds` for `b` (flags of
 * enum npumem_byte), NPU by NPU; return false to stop. False where the visitor stopped. O(1) for places
 * whose offsets do not meet. */
bool meet_each(const struct npumem_geometry *geometry, const struct npumem_place *a, unsigned a_kinds,
	       const struct npumem_place *b, unsigned b_kinds,
	       bool (*visit)(void *ctx, const struct meet_range *range), void *ctx);

/* The first such stretch; false where there is none. Data and footprints are compared by arithmetic, in about a
 * microsecond; other kinds, and strides that have nothing to do with each other, by looking at every byte. Of
 * strides that do not nest (each longer than what the shorter ones reach) it may be another than the first, or
 * part of it. */
bool meet_first(const struct npumem_geometry *geometry, const struct npumem_place *a, unsigned a_kinds,
		const struct npumem_place *b, unsigned b_kinds, struct meet_range *range);

/* Whether they share a byte, for kinds MEET_DATA and MEET_FOOTPRINT, in bounded time: true also where that cannot
 * be told in *steps, of which it takes one for at most 0.4 us. The same for the same places and steps. */
bool meet_maybe(const struct npumem_geometry *geometry, const struct npumem_place *a, unsigned a_kinds,
		const struct npumem_place *b, unsigned b_kinds, int64_t *steps);

/* Whether an empty block of `lender` has data of `borrower`, in bounded time as above, and exact where it can be
 * told in *steps. Of tensors (no views) that share no byte of data: where words of a strided lender have another's
 * data, that NPU has none of them. */
bool meet_lends(const struct npumem_geometry *geometry, const struct npumem_place *lender,
		const struct npumem_place *borrower, int64_t *steps);

/* True where every element of the one lies where that of the other does. */
bool meet_same(const struct npumem_place *a, const struct npumem_place *b);

#endif
