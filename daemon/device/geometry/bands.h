/* What npumem_place_paint says of each byte, in stretches of one kind: a few for each block row, where painting
 * costs as much as there are bytes. */
#ifndef DEVICE_BANDS_H
#define DEVICE_BANDS_H

#include <npumem/layout.h>

/* Bytes [from, to), counted from the tensor's start, are of this kind (one of enum npumem_byte). */
typedef void bands_visit(void *ctx, int64_t from, int64_t to, unsigned kind);

/* Visits [from, to) of a tensor (no view) on one NPU, 0 <= from < to <= bytes_per_npu, in order and without gaps.
 * A stretch may be told in two parts. With `dummies` they are told apart; else they count as data. */
void bands_each(const struct npumem_geometry *geometry, const struct npumem_place *place, int64_t npu,
		int64_t from, int64_t to, bool dummies, bands_visit *visit, void *ctx);

/* Whether [from, to) may be other than padding on some NPU; false is sure. */
bool bands_may_hold(const struct npumem_place *place, int64_t from, int64_t to);

#endif
