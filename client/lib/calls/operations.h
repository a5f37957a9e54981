/* One operation that is answered with a Done; the message of one kernel run, for npumem_run and npumem_submit. */
#ifndef CLIENT_LIB_OPERATIONS_H
#define CLIENT_LIB_OPERATIONS_H

#include <npumem/async.h>

#include "proto/npumem.pb-c.h"

/* As npumem_X_async. */
int operations_start(struct npumem *npumem, Npumem__V1__Request *message, NPUMEM_ASYNC);

/* What the messages of a run consist of; the arrays are the caller's, large enough. */
struct run_parts {
	Npumem__V1__Operand *operands, **operand_list;
	Npumem__V1__Ref *refs;
	Npumem__V1__Param *params, **param_list;
};

/* 0 or INVALID: no such kernel, or too many operands, parameters or values. */
int run_check(const char *kernel, unsigned n_operands, const struct npumem_param *params, unsigned n_params,
	      struct npumem_error *error);
/* Fills `message` and `parts` from arguments that passed run_check; points into the arguments. */
void run_message(const char *kernel, const struct npumem_operand *operands, unsigned n_operands,
		 const struct npumem_param *params, unsigned n_params, const struct run_parts *parts,
		 Npumem__V1__RunRequest *message);

#endif
