/* The rows of ukernels.def. */
#include "daemon/device/engine/ukernel.h"

#include <limits.h>

#define UKERNEL(name, ISA, types) extern const struct ukernel name;
#include "daemon/device/engine/ukernels.def"
#undef UKERNEL

static const struct {
	const struct ukernel *ukernel;
	enum isa isa;
	int types;
} rows[] = {
#define UKERNEL(name, ISA, types) {&name, ISA_##ISA, types},
#include "daemon/device/engine/ukernels.def"
#undef UKERNEL
};

enum { N_ROWS = sizeof(rows) / sizeof(rows[0]) };

const struct ukernel *ukernel_row(unsigned i, enum isa *isa, int *types)
{
	if (i >= N_ROWS)
		return NULL;
	*isa = rows[i].isa;
	*types = rows[i].types;
	return rows[i].ukernel;
}

static const struct ukernel *choose(int type, enum isa isa, unsigned depth_most)
{
	const struct ukernel *best = NULL;
	for (unsigned i = 0; i < N_ROWS; i++)
		if ((rows[i].isa <= isa || rows[i].isa == ISA_SCALAR) && (rows[i].types & type) &&
		    rows[i].ukernel->depth <= depth_most)
			best = rows[i].ukernel;
	return best;
}

const struct ukernel *ukernel_choose(int type, enum isa isa)
{
	return choose(type, isa, UINT_MAX);
}

const struct ukernel *ukernel_choose_single(int type, enum isa isa)
{
	return choose(type, isa, 1);
}
