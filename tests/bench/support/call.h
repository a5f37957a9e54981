/* A kernel call in words, for a device in this process, for a daemon and for another library alike:
 *
 *   conv2d in=fx8/7[1,64,56,56] weights=fx8/7[64,64,3,3] out=fx8/3[1,64,56,56] stride=1,1 padding=1,1,1,1
 *
 * The kernel; role=type/frac_bits[N,C,H,W] for each tensor, frac_bits -1 where the type has none, the output last;
 * and parameters. Behind a tensor may stand ~M (values within -M..M; else all that the container holds), and a
 * layout or a storage mode after a colon. */
#ifndef BENCH_CALL_H
#define BENCH_CALL_H

#include <npumem/kernels.h>
#include <npumem/layout.h>

enum { CALL_TENSORS_MAX = 16, CALL_PARAMS_MAX = 8 };

struct call_tensor {
	char role[NPUMEM_FIELD_KEY_BYTES];
	struct npumem_spec spec;
	int64_t most; /* 0: the container's range */
	size_t bytes; /* dense */
};

struct call {
	char kernel[32];
	struct call_tensor tensors[CALL_TENSORS_MAX];
	struct npumem_param params[CALL_PARAMS_MAX];
	unsigned n_tensors, n_params;
};

/* What is wrong ends the bench. */
void call_parse(struct call *call, const char *text);
/* NULL where it has none. */
const struct call_tensor *call_find(const struct call *call, const char *role);
/* Value i of a parameter, or `fallback`. */
int64_t call_param(const struct call *call, int number, unsigned i, int64_t fallback);
/* Whether the kernel writes tensor i. */
bool call_is_out(const struct call *call, unsigned i);
/* Multiply-accumulates of a kernel with weights, padded taps included; 0 for others. */
double call_macs(const struct call *call);
/* Of all tensors, once each. */
double call_bytes(const struct call *call);
/* Tensor i's dense data, the same in every run; to be freed. */
void *call_data(const struct call *call, unsigned i);

#endif
