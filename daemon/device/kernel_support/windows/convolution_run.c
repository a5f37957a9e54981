/* Which of the two ways a phase is run. */
#include "daemon/device/kernel_support/windows/convolution_run.h"

#include "daemon/device/engine/conv.h"
#include "daemon/device/kernel_support/windows/patches.h"

void convolution_plan(struct convolution_phase *to, struct convolution *convolution, const struct phase *phase)
{
	to->convolution = convolution;
	to->phase = *phase;
	to->by_engine = conv_plan_init(&to->plan, convolution, &to->phase);
}

size_t convolution_scratch_bytes(struct convolution_phase *phase)
{
	return phase->by_engine ? conv_scratch_bytes(&phase->plan)
				: patches_scratch_bytes(phase->convolution, &phase->phase);
}

int64_t convolution_steps(const struct convolution_phase *phase)
{
	return phase->by_engine ? conv_steps(&phase->plan) : patches_steps(phase->convolution, &phase->phase);
}

size_t convolution_pack_bytes(struct convolution_phase *phase)
{
	return phase->by_engine ? conv_pack_bytes(&phase->plan) : 0;
}

bool convolution_pack(struct convolution_phase *phase, void *pack)
{
	return !phase->by_engine || conv_pack_weights(&phase->plan, pack);
}

bool convolution_run(struct convolution_phase *phase)
{
	struct convolution *c = phase->convolution;
	c->counts->macs += c->n * c->groups * c->n_outputs * c->n_inputs *
				window_pairs(&phase->phase.h.window) * window_pairs(&phase->phase.w.window);
	return phase->by_engine ? conv_run(&phase->plan) : patches_run(c, &phase->phase);
}
