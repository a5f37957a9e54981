/* Which instructions kernels may use. What is computed is the same to the bit with every one of them. */
#ifndef DEVICE_ISA_H
#define DEVICE_ISA_H

#include <stdbool.h>

enum isa {
	ISA_ANY = 0, /* of a device's options: the best that there is */
#define ISA(name, NAME, number, includes) ISA_##NAME = number,
#include "daemon/device/isa.def"
#undef ISA
	ISA_N
};

/* The best that this processor and this build have. */
enum isa isa_best(void);
/* The one that `isa` includes; ISA_ANY: none. */
enum isa isa_included(enum isa isa);
/* Whether this processor and this build have it: it is the best, or included in that. */
static inline bool isa_runs(enum isa isa)
{
	enum isa best = isa_best();
	while (best != isa && best != ISA_ANY)
		best = isa_included(best);
	return best == isa;
}
/* The first one after `isa` that runs; ISA_N after the last. */
static inline int isa_next(int isa)
{
	do
		isa++;
	while (isa < ISA_N && !isa_runs((enum isa)isa));
	return isa;
}
/* The process may use AMX's tiles: 8 KiB of state for each thread, which Linux keeps only for a process that asked
 * for it. To be called before there is a second thread; otherwise there is no AMX. */
void isa_permit_tiles(void);
/* NULL for what is none. */
const char *isa_name(int isa);
/* ISA_ANY for an unknown name. */
enum isa isa_parse(const char *name);

#endif
