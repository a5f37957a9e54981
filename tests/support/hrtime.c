/* The linker lets the server ask the first for the time (--wrap=uv_hrtime), which asks libuv unless it is stopped.
 */
#include "tests/support/hrtime.h"

#include <stdatomic.h>

uint64_t __wrap_uv_hrtime(void);
uint64_t __real_uv_hrtime(void);

static _Atomic uint64_t stopped_at_ns; /* 0: it runs */

uint64_t __wrap_uv_hrtime(void)
{
	uint64_t at = atomic_load(&stopped_at_ns);

	return at ? at : __real_uv_hrtime();
}

void hrtime_stop(void)
{
	atomic_store(&stopped_at_ns, __real_uv_hrtime());
}

void hrtime_skip(uint64_t ns)
{
	atomic_fetch_add(&stopped_at_ns, ns);
}

void hrtime_run(void)
{
	atomic_store(&stopped_at_ns, 0);
}
