/* XNNPACK (libxnnpack-dev) doing what a call does, on one thread, with int8 in N,H,W,C: its data need no other
 * order, planar ones do, which is not counted here. */
#ifndef BENCH_XNNPACK_H
#define BENCH_XNNPACK_H

#include <stdbool.h>

#include "tests/bench/support/call.h"

struct xnnpack;

/* False where the library is not there. */
bool xnnpack_open(void);
/* NULL where it has no such operator. Only for fx8. */
struct xnnpack *xnnpack_new(const struct call *call);
void xnnpack_free(struct xnnpack *xnnpack);
/* A contender. */
void xnnpack_run(void *xnnpack);

#endif
