/* The linker lets the library ask this first (--wrap=isa_best): a processor that has nothing beyond its
 * architecture, whatever it runs on, so that what is compiled for those is tested, too. */
#include "daemon/device/isa.h"

enum isa __wrap_isa_best(void);

enum isa __wrap_isa_best(void)
{
	return ISA_SCALAR;
}
