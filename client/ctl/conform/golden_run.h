/* A kernel run on named tensors, kept as a golden vector. */
#ifndef CTL_GOLDEN_RUN_H
#define CTL_GOLDEN_RUN_H

#include "client/ctl/core/words/args.h"
#include "client/ctl/ctl.h"

/* Runs the words KERNEL role=NAME... param=value... and adds a case to <directory>/<KERNEL>.json, which stays as
 * it is where anything fails. CTL_OK, CTL_FAILED or CTL_USAGE. */
int golden_run_record(struct ctl *ctl, const char *directory, const struct args *args);

#endif
