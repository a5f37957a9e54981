#include "daemon/device/geometry/npu_groups.h"

#include <assert.h>

void npu_groups_init(struct npu_groups *groups, const struct npumem_geometry *geometry)
{
	*groups = (struct npu_groups){.n = 1, .first = {0, geometry->n_npus}};
}

static void cut_at(struct npu_groups *groups, int64_t npu)
{
	unsigned at = groups->n;
	while (groups->first[at] > npu)
		at--;
	if (groups->first[at] == npu)
		return;
	assert(groups->n < NPU_GROUPS_MAX);
	for (unsigned i = groups->n++; i > at; i--)
		groups->first[i + 1] = groups->first[i];
	groups->first[at + 1] = npu;
}

void npu_groups_cut(struct npu_groups *groups, const struct npumem_geometry *geometry,
		    const struct npumem_place *place, unsigned kinds)
{
	int64_t cuts[KIND_MASK_CUTS];
	for (unsigned i = kind_mask_cuts(geometry, place, kinds, cuts); i-- > 0;)
		cut_at(groups, cuts[i]);
}
