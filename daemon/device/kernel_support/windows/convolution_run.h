/* A phase of a convolution, planned once, and run by the engine or by patches.h. */
#ifndef DEVICE_CONVOLUTION_RUN_H
#define DEVICE_CONVOLUTION_RUN_H

#include "daemon/device/engine/conv_plan.h"

struct convolution_phase {
	struct convolution *convolution;
	struct phase phase;
	bool by_engine; /* else by patches.h */
	struct conv_plan plan;
};

/* Stays where it is, as its plan points into it. Where it has taps and is not by_engine after that, the engine
 * cannot run it. */
void convolution_plan(struct convolution_phase *to, struct convolution *convolution, const struct phase *phase);

/* What pack() makes of its weights; false where the rest is no longer wanted. */
size_t convolution_pack_bytes(struct convolution_phase *phase);
bool convolution_pack(struct convolution_phase *phase, void *pack);
/* What run() needs. */
size_t convolution_scratch_bytes(struct convolution_phase *phase);
/* About how many element steps run() takes. */
int64_t convolution_steps(const struct convolution_phase *phase);
/* Writes its outputs and adds to the call's counts. False where the rest is no longer wanted. */
bool convolution_run(struct convolution_phase *phase);

#endif
