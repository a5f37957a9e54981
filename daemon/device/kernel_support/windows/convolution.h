/* What every convolution is made of: phases, each run by the engine or by patches.h (convolution_run.h).
 *
 * A phase is a set of outputs that lie regularly and whose windows slide as window.h says: all outputs of an
 * ordinary convolution; of a transposed one those that meet the same taps. Padded taps do not exist: they are
 * neither multiplied by zero nor counted. */
#ifndef DEVICE_CONVOLUTION_H
#define DEVICE_CONVOLUTION_H

#include "daemon/device/kernel_support/windows/weighted.h"
#include "daemon/device/kernel_support/windows/window.h"

enum { CONVOLUTION_IN, CONVOLUTION_WEIGHTS, CONVOLUTION_BIAS, CONVOLUTION_OUT };
enum { CONVOLUTION_PACK_STEPS = 12 }; /* 3 to 6 ns a weight: conv_weights.c */
extern const struct weighted_roles convolution_roles;

/* What the phases of a call share. Data is there during run() only. */
struct convolution {
	const struct kernel_call *call;
	struct kernel_counts *counts; /* the call's, of a run */
	int64_t n, groups;
	int64_t n_inputs, n_outputs; /* channels of one group */
	const void *weights;
	const void *pack; /* of the phase that is run, where the engine runs it */
	struct weighted weighted;
};

struct phase_axis {
	/* Its outputs and taps are those of the phase. */
	struct window_axis window;
	/* Tap t of the window is tap first_tap + t * tap_step of the weights' `kernel`. */
	int64_t kernel, first_tap, tap_step;
	/* Output j of the window is output first_out + j * out_step of all `out`. */
	int64_t out, first_out, out_step;
};

struct phase {
	struct phase_axis h, w;
};

/* Whether its outputs follow each other in a feature, from the first one on. */
static inline bool phase_is_dense(const struct phase *phase)
{
	return phase->h.out_step == 1 && phase->w.out_step == 1 && phase->w.window.out == phase->w.out;
}

/* Types, formats, the channels of all roles, relu= and the rounding: 0 or INVALID. The extents H and W of in,
 * weights and out are the kernel's business. */
int convolution_check(const struct kernel_call *call, int64_t groups, struct npumem_error *error);
/* For a call that passed; run() sets `counts`. */
void convolution_init(struct convolution *convolution, const struct kernel_call *call, int64_t groups);
/* Takes the data and the pack that the call has by now. */
void convolution_load(struct convolution *convolution);

/* ---- for patches.c and the engine ---- */

/* Scratch memory is shared out in pieces of a multiple of this. */
enum { CONVOLUTION_ALIGN = 64 };
static inline int64_t convolution_aligned(int64_t bytes)
{
	return (bytes + CONVOLUTION_ALIGN - 1) / CONVOLUTION_ALIGN * CONVOLUTION_ALIGN;
}

/* Products of one sum. */
int64_t convolution_taps(const struct convolution *convolution, const struct phase *phase);
/* The place of the weight of output channel o (of all) for tap (0, 0) of input channel i of its group; tap (y, x)
 * lies y * h.tap_step * w.kernel + x * w.tap_step further. */
static inline int64_t convolution_weight(const struct convolution *convolution, const struct phase *phase,
					 int64_t o, int64_t i)
{
	int64_t feature = i * convolution->groups * convolution->n_outputs + o;
	return (feature * phase->h.kernel + phase->h.first_tap) * phase->w.kernel + phase->w.first_tap;
}
/* Element (y, x) of input channel i of a group, after which its row goes on. */
const void *convolution_row(const struct convolution *convolution, const struct phase *phase, int64_t batch,
			    int64_t group, int64_t i, int64_t y, int64_t x);
/* Turns the sums (used up) of outputs [first, first + n) of the phase, counted along its rows, of output channel o
 * into results. `staging` holds n elements of 16 bits. False where the rest is no longer wanted. */
bool convolution_finish(const struct convolution *convolution, const struct phase *phase, int64_t batch, int64_t o,
			int64_t first, int64_t n, void *sums, void *staging);

#endif
