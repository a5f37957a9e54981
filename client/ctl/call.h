/* A kernel call from the words KERNEL role=NAME... param=value..., for `run` and what runs kernels as it does. */
#ifndef CTL_CALL_H
#define CTL_CALL_H

#include "client/ctl/core/words/words.h"
#include "client/ctl/ctl.h"

struct call {
	const struct npumem_kernel_row *row;
	char roles[NPUMEM_OPERANDS_MAX][NPUMEM_FIELD_KEY_BYTES];
	const struct npumem_tensor *tensors[NPUMEM_OPERANDS_MAX];
	struct npumem_param params[NPUMEM_PARAMS_MAX];
	unsigned n_tensors, n_params;
};

/* Parses all the words, connects and finds the tensors. CTL_OK, CTL_FAILED or CTL_USAGE. */
int call_open(struct ctl *ctl, const struct args *args, struct call *call);
/* CTL_OK or CTL_FAILED. */
int call_run(struct ctl *ctl, const struct call *call, const struct npumem_done **done);

#endif
