/* Convolutions for their tests: calls by shape, and plain loops over every index to compare with. */
#ifndef TESTS_DEVICE_KERNELS_CONVOLUTIONS_H
#define TESTS_DEVICE_KERNELS_CONVOLUTIONS_H

#include "tests/unit/daemon/device/kernels/calls.h"

enum { IN, WEIGHTS, BIAS, OUT };

/* o channels of out in all; dilation 0 stands for 1, groups 0 for 1. */
struct shape {
	int64_t n, i, h, w, o, kh, kw;
	int64_t stride_h, stride_w, top, bottom, left, right, dilation_h, dilation_w, groups;
};

static inline bool is_transposed(const struct calls *c)
{
	return c->kernel->number == NPUMEM_KERNEL_TRANSPOSE_CONV2D;
}

static inline int64_t extent(const struct calls *c, int64_t in, int64_t pads, int64_t kernel, int64_t dilation,
			     int64_t stride)
{
	return is_transposed(c) ? (in - 1) * stride + kernel - pads
				: (in + pads - ((kernel - 1) * dilation + 1)) / stride + 1;
}

static inline void set_up(struct calls *c, int number, const struct shape *shape, const struct calls_types *types,
			  const int64_t frac_bits[4], bool has_bias)
{
	struct shape s = *shape;
	s.groups += s.groups == 0;
	s.dilation_h += s.dilation_h == 0;
	s.dilation_w += s.dilation_w == 0;
	calls_init(c, number);
	calls_add(c, "in", types->data, frac_bits[IN], s.n, s.i, s.h, s.w);
	calls_add(c, "weights", types->weights, frac_bits[WEIGHTS], s.i / s.groups, s.o, s.kh, s.kw);
	if (has_bias)
		calls_add(c, "bias", types->weights, frac_bits[BIAS], 1, s.o, 1, 1);
	calls_add(c, "out", types->data, frac_bits[OUT], s.n, s.o,
		  extent(c, s.h, s.top + s.bottom, s.kh, s.dilation_h, s.stride_h),
		  extent(c, s.w, s.left + s.right, s.kw, s.dilation_w, s.stride_w));
	calls_param(c, NPUMEM_PARAM_STRIDE, 2, s.stride_h, s.stride_w, 0, 0);
	calls_param(c, NPUMEM_PARAM_PADDING, 4, s.top, s.bottom, s.left, s.right);
	if (!is_transposed(c))
		calls_param(c, NPUMEM_PARAM_DILATION, 2, s.dilation_h, s.dilation_w, 0, 0);
	if (number == NPUMEM_KERNEL_GROUP_CONV2D)
		calls_param(c, NPUMEM_PARAM_GROUPS, 1, s.groups, 0, 0, 0);
}

/* A role's elements, widened; free() is the caller's. */
static inline int64_t *widened(const struct calls *c, unsigned role)
{
	const struct kernel_operand *operand = &c->operands[role][0];
	int64_t n = (int64_t)(calls_bytes(operand) / npumem_dtype_bytes(operand->dtype));
	int64_t *values = malloc((size_t)n * sizeof(*values));
	ck_assert_ptr_nonnull(values);
	for (int64_t i = 0; i < n; i++)
		values[i] = calls_get(c, role, i);
	return values;
}

/* Where input i meets tap `tap` along one axis: that output, or -1. */
static inline int64_t output_of(bool transposed, int64_t i, int64_t tap, int64_t stride, int64_t before,
				int64_t dilation, int64_t extent)
{
	int64_t at = transposed ? i * stride + tap - before : i + before - tap * dilation;
	if (!transposed && at % stride != 0)
		return -1;
	at = transposed ? at : at / stride;
	return at >= 0 && at < extent ? at : -1;
}

/* The sums of one output channel of one batch, by input, tap and where their product goes. Returns how many
 * products there were. */
static inline int64_t channel_sums(const struct calls *c, const int64_t *ins, const int64_t *taps, int64_t n,
				   int64_t o, int64_t *sums)
{
	const struct npumem_dims *in = &c->operands[IN][0].shape, *weights = &c->operands[WEIGHTS][0].shape;
	const struct npumem_dims *out = &c->operands[OUT][0].shape;
	const int64_t *stride = c->call.params.given[NPUMEM_PARAM_STRIDE].values;
	const int64_t *padding = c->call.params.given[NPUMEM_PARAM_PADDING].values;
	const int64_t *dilation = c->call.params.given[NPUMEM_PARAM_DILATION].values;
	int64_t products = 0, first = o / (out->c / (in->c / weights->n)) * weights->n;
	memset(sums, 0, (size_t)(out->h * out->w) * sizeof(*sums));
	for (int64_t i = 0; i < weights->n; i++)
		for (int64_t y = 0; y < in->h; y++)
			for (int64_t ky = 0; ky < weights->h; ky++) {
				int64_t to_y = output_of(is_transposed(c), y, ky, stride[0], padding[0],
							 dilation[0], out->h);
				const int64_t *row = ins + ((n * in->c + first + i) * in->h + y) * in->w;
				const int64_t *tap = taps + ((i * out->c + o) * weights->h + ky) * weights->w;
				for (int64_t x = 0; to_y >= 0 && x < in->w; x++)
					for (int64_t kx = 0; kx < weights->w; kx++) {
						int64_t to_x = output_of(is_transposed(c), x, kx, stride[1],
									 padding[2], dilation[1], out->w);
						if (to_x < 0)
							continue;
						sums[to_y * out->w + to_x] += row[x] * tap[kx];
						products++;
					}
			}
	return products;
}

/* Runs the call and compares results and counts. */
static inline void check_against_loops(struct calls *c, int64_t relu)
{
	calls_param(c, NPUMEM_PARAM_RELU, relu > 0, relu, 0, 0, 0);
	calls_run(c);
	const struct npumem_dims *out = &c->operands[OUT][0].shape;
	bool has_bias = c->roles[BIAS].n > 0;
	int64_t acc_frac_bits = c->operands[IN][0].frac_bits + c->operands[WEIGHTS][0].frac_bits;
	int64_t saturated = 0, wrapped = 0, macs = 0, points = out->h * out->w;
	int64_t *ins = widened(c, IN), *taps = widened(c, WEIGHTS), *got = widened(c, OUT);
	int64_t *sums = malloc((size_t)points * sizeof(*sums));
	ck_assert_ptr_nonnull(sums);
	for (int64_t n = 0; n < out->n; n++)
		for (int64_t o = 0; o < out->c; o++) {
			macs += channel_sums(c, ins, taps, n, o, sums);
			int64_t bias = has_bias ? calls_get(c, BIAS, o) : 0;
			int64_t bias_frac_bits = has_bias ? c->operands[BIAS][0].frac_bits : acc_frac_bits;
			for (int64_t p = 0; p < points; p++) {
				int64_t want = calls_weighted(c, sums[p], bias, acc_frac_bits, bias_frac_bits, OUT,
							      relu, &saturated, &wrapped);
				int64_t have = got[(n * out->c + o) * points + p];
				if (have != want)
					ck_abort_msg("out[%lld,%lld,%lld,%lld] is %lld, not %lld", (long long)n,
						     (long long)o, (long long)(p / out->w),
						     (long long)(p % out->w), (long long)have, (long long)want);
			}
		}
	free(ins);
	free(taps);
	free(got);
	free(sums);
	ck_assert_int_eq(c->call.counts.saturated, saturated);
	ck_assert_int_eq(c->call.counts.wrapped, wrapped);
	ck_assert_int_eq(c->call.counts.macs, macs);
	ck_assert_int_eq(c->call.counts.divided_by_zero, 0);
}

#endif
