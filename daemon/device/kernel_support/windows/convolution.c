/* The check that convolutions share, and what the two ways to run a phase have in common. */
#include "daemon/device/kernel_support/windows/convolution.h"

#include <string.h>

#include "daemon/device/kernel_support/operands.h"

const struct weighted_roles convolution_roles = {CONVOLUTION_IN, CONVOLUTION_WEIGHTS, CONVOLUTION_BIAS,
						 CONVOLUTION_OUT, true};

int convolution_check(const struct kernel_call *call, int64_t groups, struct npumem_error *error)
{
	const struct npumem_dims *in = &operands_get(call, CONVOLUTION_IN)->shape;
	const struct npumem_dims *weights = &operands_get(call, CONVOLUTION_WEIGHTS)->shape;
	int status = weighted_check(call, &convolution_roles, weights->n * weights->h * weights->w, error);
	if (status)
		return status;
	if (in->c % groups != 0 || weights->c % groups != 0)
		return npumem_error_set(error, NPUMEM_INVALID,
					"%s: %lld input and %lld output channels do not divide into %lld groups",
					call->row->name, (long long)in->c, (long long)weights->c,
					(long long)groups);
	struct npumem_dims want = {in->c / groups, weights->c, weights->h, weights->w};
	status = operands_check_shape(call, CONVOLUTION_WEIGHTS, &want,
				      groups == 1 ? "the channels of in are" : "the input channels of a group are",
				      error);
	want.n = 1;
	want.h = want.w = 1;
	if (!status && operands_get(call, CONVOLUTION_BIAS))
		status = operands_check_shape(call, CONVOLUTION_BIAS, &want, "weights need", error);
	return status;
}

void convolution_init(struct convolution *convolution, const struct kernel_call *call, int64_t groups)
{
	const struct kernel_operand *in = operands_get(call, CONVOLUTION_IN);
	const struct kernel_operand *weights = operands_get(call, CONVOLUTION_WEIGHTS);
	*convolution = (struct convolution){.call = call,
					    .n = in->shape.n,
					    .groups = groups,
					    .n_inputs = in->shape.c / groups,
					    .n_outputs = weights->shape.c / groups};
	weighted_init(&convolution->weighted, call, &convolution_roles,
		      weights->shape.n * weights->shape.h * weights->shape.w);
}

void convolution_load(struct convolution *convolution)
{
	const struct kernel_call *call = convolution->call;
	convolution->weights = operands_get(call, CONVOLUTION_WEIGHTS)->data;
	convolution->pack = call->pack;
	weighted_load(&convolution->weighted, call, &convolution_roles);
}

int64_t convolution_taps(const struct convolution *convolution, const struct phase *phase)
{
	return convolution->n_inputs * phase->h.window.kernel * phase->w.window.kernel;
}

const void *convolution_row(const struct convolution *convolution, const struct phase *phase, int64_t batch,
			    int64_t group, int64_t i, int64_t y, int64_t x)
{
	const struct kernel_operand *in = operands_get(convolution->call, CONVOLUTION_IN);
	const uint8_t *feature = kernel_feature(in, batch, group * convolution->n_inputs + i);
	return feature + (y * phase->w.window.in + x) * convolution->weighted.data_bytes;
}

/* to[j * step] = from[j] */
static void spread(const uint8_t *from, uint8_t *to, int64_t step, int64_t n, unsigned bytes)
{
	if (bytes == 1)
		for (int64_t j = 0; j < n; j++)
			to[j * step] = from[j];
	else
		for (int64_t j = 0; j < n; j++)
			memcpy(to + j * step * 2, from + j * 2, 2);
}

/* From dense results to the places of a phase that has not all outputs. */
static void scatter(const struct phase *phase, int64_t first, int64_t n, unsigned bytes, const uint8_t *from,
		    uint8_t *feature)
{
	int64_t width = phase->w.window.out, y = first / width, x = first % width;
	while (n > 0) {
		int64_t row = width - x < n ? width - x : n;
		int64_t at = (phase->h.first_out + y * phase->h.out_step) * phase->w.out + phase->w.first_out +
			     x * phase->w.out_step;
		spread(from, feature + at * bytes, phase->w.out_step, row, bytes);
		from += row * bytes;
		n -= row;
		y++;
		x = 0;
	}
}

bool convolution_finish(const struct convolution *convolution, const struct phase *phase, int64_t batch, int64_t o,
			int64_t first, int64_t n, void *sums, void *staging)
{
	const struct weighted *weighted = &convolution->weighted;
	uint8_t *feature = kernel_feature(operands_get(convolution->call, CONVOLUTION_OUT), batch, o);
	bool all = phase_is_dense(phase);
	unsigned bytes = weighted->accumulator.result.bytes;
	uint8_t *to = all ? feature + first * bytes : staging;
	weighted_finish_channel(weighted, sums, n, o, to, convolution->counts);
	if (!all)
		scatter(phase, first, n, bytes, staging, feature);
	return kernel_step(convolution->call, n);
}
