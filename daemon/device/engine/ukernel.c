#include "daemon/device/engine/ukernel.h"

const struct ukernel *ukernel_choose(enum ukernel_type type, enum isa isa)
{
	return implementations[isa].ukernels[type];
}

const struct ukernel *ukernel_choose_single(enum ukernel_type type, enum isa isa)
{
	while (ukernel_choose(type, isa)->depth > 1)
		isa = isa_included(isa);
	return ukernel_choose(type, isa);
}
