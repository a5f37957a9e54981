/* A kernel run on named tensors, kept as a golden vector. */
#ifndef CTL_RECORDER_H
#define CTL_RECORDER_H

#include "client/ctl/core/args.h"
#include "client/ctl/ctl.h"

/* Runs the words KERNEL role=NAME... param=value... and adds a case to <directory>/<KERNEL>.json, which stays as
 * it is where anything fails. CTL_OK, CTL_FAILED or CTL_USAGE. */
int recorder_run(struct ctl *ctl, const char *directory, const struct args *args);

#endif
