/* A daemon of the bench's own and a connection to it by the library. What fails ends the bench. */
#ifndef BENCH_REMOTE_H
#define BENCH_REMOTE_H

#include <npumem/client.h>

#include "tests/bench/support/call.h"
#include "tests/bench/support/peer.h"

struct remote {
	struct peer peer;
	struct npumem *npumem;
	struct npumem_error error;
};

struct remote_options {
	const char *name; /* of its socket */
	const char *isa;  /* NULL: the best */
	enum peer_pin pin;
	bool sleeps; /* neither side spins */
};

/* $NPUMEMD, or the build's. */
const char *remote_program(void);
/* Whether the daemon has an option. */
bool remote_knows(const char *option);

void remote_open(struct remote *remote, const struct remote_options *options);
void remote_close(struct remote *remote);
void remote_expect(const struct remote *remote, int status);

/* A kernel ready to be run again and again. */
struct remote_op {
	struct remote *remote;
	const char *kernel;
	struct npumem_operand operands[CALL_TENSORS_MAX];
	struct npumem_param params[CALL_PARAMS_MAX];
	const struct npumem_tensor *tensors[CALL_TENSORS_MAX];
	unsigned n_operands, n_params, n_own;
};

/* Allocates and writes the call's tensors. `first`: used as the first of them, or NULL. `call` stays. */
void remote_place(struct remote *remote, const struct call *call, const struct npumem_tensor *first,
		  struct remote_op *op);
const struct npumem_tensor *remote_out(const struct remote_op *op);
/* Runs it and waits: a contender's. */
void remote_run(void *remote_op);
/* The same as a part of a submit. */
struct npumem_operation remote_operation(const struct remote_op *op);
void remote_drop(struct remote_op *op);

#endif
