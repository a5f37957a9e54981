/* Where XNNPACK is not there: nothing can be made. */
#include "tests/bench/support/xnnpack.h"

#include <stddef.h>

bool xnnpack_open(void)
{
	return false;
}

struct xnnpack *xnnpack_new(const struct call *call)
{
	(void)call;
	return NULL;
}

void xnnpack_free(struct xnnpack *xnnpack)
{
	(void)xnnpack;
}

void xnnpack_run(void *xnnpack)
{
	(void)xnnpack;
}
