/* The rows of bench_kernels, by what they are about. */
#ifndef BENCH_KERNELS_CASES_H
#define BENCH_KERNELS_CASES_H

#include "tests/bench/support/bench.h"
#include "tests/bench/support/inside.h"
#include "tests/bench/support/onednn.h"
#include "tests/bench/support/probe.h"
#include "tests/bench/support/remote.h"
#include "tests/bench/support/xnnpack.h"

/* What instructions are at hand, and so which goals hold. */
enum cases_isa { CASES_AVX2, CASES_VNNI, CASES_AMX, CASES_ISAS };

/* Devices that rows run on. */
struct cases {
	const struct bench *bench;
	enum cases_isa isa;
	struct inside inside, scalar; /* the second with plain loops only */
	struct remote remote;
	bool has_onednn, has_xnnpack;
};

/* Kernels with weights: beside oneDNN, beside the machine's peak, beside their own figure for a. */
void cases_weights(struct cases *cases);
/* All others: beside memcpy and their scalar loops. */
void cases_others(struct cases *cases);
/* Kernels on two threads, with daemons of their own. */
void cases_threads(const struct bench *bench);

/* Ends the bench where both devices have not the same bytes in an output. */
void cases_same(struct cases *cases, const struct call *call, const struct inside_op *inside,
		const struct remote_op *remote);

#endif
