/* Pictures in text, for a terminal: the device with its tensors, and one tensor's blocks. */
#ifndef CTL_CORE_PICTURE_H
#define CTL_CORE_PICTURE_H

#include <stdio.h>

#include <npumem/client.h>

/* What it is drawn on. */
struct picture_look {
	unsigned width; /* columns; 0: no terminal, and 80 */
	bool colours;
};

/* Writes text with no line wider than `width` columns, 0 for any: longer ones are broken, at spaces where they can
 * be. A line with colours is one of cells, which fit. */
void picture_fit(FILE *out, const char *text, unsigned width);

/* What lies between the tensors of a list: free bytes, or, where the list lacks other uids' tensors, perhaps not.
 */
const char *picture_gap(bool hidden);

/* The tensors (views and those without a place left out) by offset, with their block rows on the NPUs. `hidden`:
 * the device has more of them. */
void picture_device(FILE *out, const struct npumem_geometry *geometry, const struct npumem_tensor *const *tensors,
		    unsigned n, uint32_t uid, bool hidden, const struct picture_look *look);

/* The block rows of a place: which NPU has data, padding or an empty block at which offset. */
void picture_place(FILE *out, const struct npumem_geometry *geometry, const struct npumem_place *place,
		   const struct picture_look *look);

/* The tensors that have storage and a place, by offset: *n_sorted of them. */
const struct npumem_tensor **picture_sort(const struct npumem_tensor *const *tensors, unsigned n,
					  unsigned *n_sorted);

/* The kinds (enum npumem_byte, or'ed) that bytes [from, to) of a footprint have on one NPU. Of a long range only
 * both ends are looked at. */
unsigned picture_kinds(const struct npumem_geometry *geometry, const struct npumem_place *place, int64_t npu,
		       int64_t from, int64_t to);

/* Whether an NPU holds any element of a place. */
bool picture_holds(const struct npumem_geometry *geometry, const struct npumem_place *place, int64_t npu);

/* Which NPU holds which feature: a cell "n,c" for each, "." for an empty block; a terminal of `width` columns, 0:
 * any width. A line says which NPUs, or which n, are left out for want of room. */
void picture_features(FILE *out, const struct npumem_geometry *geometry, const struct npumem_place *place,
		      unsigned width);

#endif
