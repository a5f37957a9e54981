/* NPUs on which places look the same, as ranges of NPUs: a place differs only at its first channel's NPU, behind
 * its last one's, and there where that channel is narrower. */
#ifndef DEVICE_NPU_GROUPS_H
#define DEVICE_NPU_GROUPS_H

#include "include/formulas/boxes/kind_mask.h"

enum { NPU_GROUPS_MAX = 2 * KIND_MASK_CUTS + 1 };

/* Group i is the NPUs [first[i], first[i + 1]), lowest first; first[n] is n_npus. */
struct npu_groups {
	unsigned n;
	int64_t first[NPU_GROUPS_MAX + 1];
};

/* One group of all NPUs. */
void npu_groups_init(struct npu_groups *groups, const struct npumem_geometry *geometry);
/* Cuts groups so that a place looks the same, as far as `kinds` go, on all NPUs of each; for two places at most.
 */
void npu_groups_cut(struct npu_groups *groups, const struct npumem_geometry *geometry,
		    const struct npumem_place *place, unsigned kinds);

#endif
