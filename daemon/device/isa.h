/* Which instructions kernels may use. What is computed is the same to the bit with every one of them. */
#ifndef DEVICE_ISA_H
#define DEVICE_ISA_H

#include <stdbool.h>

enum isa {
	ISA_ANY = 0, /* of a device's options: the best that there is */
#define ISA(name, NAME, number) ISA_##NAME = number,
#include "daemon/device/isa.def"
#undef ISA
	ISA_N
};

/* The best that this processor and this build have. */
enum isa isa_best(void);
/* The process may use AMX's tiles: 8 KiB of state for each thread, which Linux keeps only for who asked for it.
 * Before any thread; without it there is no AMX. */
void isa_permit_tiles(void);
/* NULL for what is none. */
const char *isa_name(int isa);
/* ISA_ANY for an unknown name. */
enum isa isa_parse(const char *name);

#endif
