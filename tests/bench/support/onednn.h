/* oneDNN (libdnnl-dev) doing what a call does, on one thread, with int8 data and weights, a bias of int32 and one
 * scale: what a user would run instead. */
#ifndef BENCH_ONEDNN_H
#define BENCH_ONEDNN_H

#include <stdbool.h>

#include "tests/bench/support/call.h"

struct onednn;

/* False where the library is not there. `isa` as of struct bench, of all that is made later; before the first. */
bool onednn_open(const char *isa);
/* NULL where it has no such primitive. Only for fx8. */
struct onednn *onednn_new(const struct call *call);
void onednn_free(struct onednn *onednn);
/* The name of the implementation that it chose. */
const char *onednn_choice(const struct onednn *onednn);

/* Contenders: the primitive alone, on data in the format that it prefers; and with the data reordered from N,C,H,W
 * before it and the result reordered to N,C,H,W behind it, always, as the goals were measured. Weights are
 * reordered once, before. */
void onednn_core(void *onednn);
void onednn_full(void *onednn);

#endif
