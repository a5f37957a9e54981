/* Which of the two ways a phase is run. */
#include "daemon/device/kernel_support/windows/convolution_run.h"

#include "daemon/device/engine/conv.h"
#include "daemon/device/kernel_support/windows/patches.h"

static bool is_for_engine(const struct convolution *convolution, const struct phase *phase)
{
	return convolution->by_engine && phase->h.window.kernel * phase->w.window.kernel > 0;
}

size_t convolution_scratch_bytes(const struct convolution *convolution, const struct phase *phase)
{
	return is_for_engine(convolution, phase) ? conv_scratch_bytes(convolution, phase)
						 : patches_scratch_bytes(convolution, phase);
}

int64_t convolution_steps(const struct convolution *convolution, const struct phase *phase)
{
	return is_for_engine(convolution, phase) ? conv_steps(convolution, phase)
						 : patches_steps(convolution, phase);
}

size_t convolution_pack_bytes(const struct convolution *convolution, const struct phase *phase)
{
	return is_for_engine(convolution, phase) ? conv_pack_bytes(convolution, phase) : 0;
}

bool convolution_pack(const struct convolution *convolution, const struct phase *phase, void *pack)
{
	return !is_for_engine(convolution, phase) || conv_pack_weights(convolution, phase, pack);
}

bool convolution_run(const struct convolution *convolution, const struct phase *phase)
{
	convolution->counts->macs += convolution->n * convolution->groups * convolution->n_outputs *
				     convolution->n_inputs * window_pairs(&phase->h.window) *
				     window_pairs(&phase->w.window);
	return is_for_engine(convolution, phase) ? conv_run(convolution, phase) : patches_run(convolution, phase);
}
