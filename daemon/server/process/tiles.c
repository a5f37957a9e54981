#include "daemon/server/process/tiles.h"

#include <sys/syscall.h>
#include <unistd.h>

#include "daemon/device/isa.h"

void tiles_request(void)
{
#if defined(__x86_64__) && defined(SYS_arch_prctl)
	/* ARCH_REQ_XCOMP_PERM of XTILEDATA, which Debian 12's headers have no names for. */
	enum { REQUEST_PERMISSION = 0x1023, TILE_DATA = 18 };

	if (syscall(SYS_arch_prctl, REQUEST_PERMISSION, TILE_DATA) == 0)
		isa_permit_tiles();
#endif
}
