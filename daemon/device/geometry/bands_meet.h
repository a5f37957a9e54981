/* Whether two tensors share bytes of certain kinds, told by their stretches. */
#ifndef DEVICE_BANDS_MEET_H
#define DEVICE_BANDS_MEET_H

#include <npumem/layout.h>

/* Whether meet_first would find a stretch, for any kinds, of tensors (no views). Costs a few steps for each
 * stretch of the two where their offsets meet; where both are strided, as much as meet_first. */
bool bands_meet(const struct npumem_geometry *geometry, const struct npumem_place *a, unsigned a_kinds,
		const struct npumem_place *b, unsigned b_kinds);

#endif
