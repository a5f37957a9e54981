/* The kernels that add up products or data, a row each: how many one output of theirs has.
 * Extents and parameters are below 2^31 once checked, so that no sum of two products of them leaves 64 bits;
 * longer products end at INT64_MAX and are refused as too many. */
#include "include/formulas/numeric/numeric_sums.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "include/formulas/numeric/numeric_taps.h"
#include "include/formulas/sizes.h"

enum { GATES_LSTM = 4, GATES_GRU = 3 };
enum { RULES_MLI2_0 = 1 }; /* the first of the parameter's choices */

/* The window along one axis, with the parameters that the kernel takes; `d` is 0 for h, 1 for w. */
static int read_axis(const struct numeric_query *query, unsigned d, int64_t in, int64_t kernel,
		     struct numeric_taps *axis)
{
	static const char *const names[][4] = {{"stride h", "dilation h", "padding top", "padding bottom"},
					       {"stride w", "dilation w", "padding left", "padding right"}};
	*axis = (struct numeric_taps){
		.in = in,
		.kernel = kernel,
		.stride = numeric_query_param(query, "stride", d, 1),
		.dilation = numeric_query_param(query, "dilation", d, 1),
		.before = numeric_query_param(query, "padding", 2 * d, 0),
		.after = numeric_query_param(query, "padding", 2 * d + 1, 0),
	};
	int status = numeric_query_within(query, d ? "kernel w" : "kernel h", kernel, 1, NUMERIC_QUERY_EXTENT_MAX);
	if (!status)
		status = numeric_query_within(query, names[d][0], axis->stride, 1, NUMERIC_QUERY_EXTENT_MAX);
	if (!status)
		status = numeric_query_within(query, names[d][1], axis->dilation, 1, NUMERIC_QUERY_EXTENT_MAX);
	if (status)
		return status;
	int64_t span = numeric_taps_span(axis),
		most = span - 1 < NUMERIC_QUERY_EXTENT_MAX ? span - 1 : NUMERIC_QUERY_EXTENT_MAX;
	status = numeric_query_within(query, names[d][2], axis->before, 0, most);
	return status ? status : numeric_query_within(query, names[d][3], axis->after, 0, most);
}

/* The most taps of a window that slides over `in`. */
static int slide(const struct numeric_query *query, const struct npumem_dims *in, int64_t kernel_h,
		 int64_t kernel_w, int64_t *taps)
{
	const int64_t extents[] = {in->h, in->w}, kernels[] = {kernel_h, kernel_w};
	*taps = 1;
	for (unsigned d = 0; d < 2; d++) {
		struct numeric_taps axis;
		int status = read_axis(query, d, extents[d], kernels[d], &axis);
		if (status)
			return status;
		int64_t padded = axis.in + axis.before + axis.after, span = numeric_taps_span(&axis);
		if (span > padded)
			return npumem_error_set(query->error, NPUMEM_INVALID,
						"%s: the window's %s is %" PRId64 ", more than the %" PRId64
						" of in with its padding",
						query->question->kernel, d ? "w" : "h", span, padded);
		*taps *= numeric_taps_slide(&axis);
	}
	return 0;
}

static int scatter(const struct numeric_query *query, const struct npumem_dims *in,
		   const struct npumem_dims *weights, int64_t *taps)
{
	const int64_t extents[] = {in->h, in->w}, kernels[] = {weights->h, weights->w};
	*taps = 1;
	for (unsigned d = 0; d < 2; d++) {
		struct numeric_taps axis;
		int64_t more = numeric_query_param(query, "output_padding", d, 0);
		int status = read_axis(query, d, extents[d], kernels[d], &axis);
		if (!status)
			status = numeric_query_within(query, d ? "output_padding w" : "output_padding h", more, 0,
						      NUMERIC_QUERY_EXTENT_MAX);
		if (status)
			return status;
		/* Behind the last product there is the bias alone. */
		axis.after = axis.after > more ? axis.after - more : 0;
		if (numeric_taps_scattered(&axis) < 1)
			return npumem_error_set(
				query->error, NPUMEM_INVALID, "%s: the padding leaves %" PRId64 " of out's %s",
				query->question->kernel, numeric_taps_scattered(&axis), d ? "w" : "h");
		*taps *= numeric_taps_scatter(&axis);
	}
	/* Outputs between inputs that lie apart get the bias alone. */
	return 0;
}

/* ---- kernels ---- */

static int need_weighted(const struct numeric_query *query, const struct npumem_numeric_operand **in,
			 const struct npumem_numeric_operand **weights)
{
	int status = numeric_query_need(query, "in", in);
	return status ? status : numeric_query_need(query, "weights", weights);
}

static int sums_conv2d(const struct numeric_query *query)
{
	const struct npumem_numeric_operand *in, *weights;
	int64_t taps;
	int status = need_weighted(query, &in, &weights);
	if (!status)
		status = numeric_query_equal(query, "n of weights", weights->shape.n, "c of in", in->shape.c);
	if (!status)
		status = slide(query, &in->shape, weights->shape.h, weights->shape.w, &taps);
	return status ? status
		      : numeric_query_add(query, in, weights, numeric_query_find(query, "bias"),
					  sizes_mul(taps, weights->shape.n));
}

static int sums_depthwise(const struct numeric_query *query)
{
	const struct npumem_numeric_operand *in, *weights;
	int64_t taps;
	int status = need_weighted(query, &in, &weights);
	if (!status)
		status = numeric_query_equal(query, "n of weights", weights->shape.n, "that of depthwise ones", 1);
	if (!status && weights->shape.c % in->shape.c)
		return npumem_error_set(query->error, NPUMEM_INVALID,
					"%s: c of weights, %" PRId64 ", is not a multiple of c of in, %" PRId64,
					query->question->kernel, weights->shape.c, in->shape.c);
	if (!status)
		status = slide(query, &in->shape, weights->shape.h, weights->shape.w, &taps);
	return status ? status : numeric_query_add(query, in, weights, numeric_query_find(query, "bias"), taps);
}

static int grouped(const struct numeric_query *query, bool transposed)
{
	const struct npumem_numeric_operand *in, *weights;
	int64_t taps;
	int status = need_weighted(query, &in, &weights);
	if (status)
		return status;
	int64_t channels = weights->shape.n;
	int64_t groups = !transposed && channels < in->shape.c ? in->shape.c / channels : 1;
	groups = numeric_query_param(query, "groups", 0, groups);
	status = numeric_query_within(query, "groups", groups, 1, NUMERIC_QUERY_EXTENT_MAX);
	if (!status)
		status = numeric_query_equal(query, "n of weights times groups", channels * groups, "c of in",
					     in->shape.c);
	if (!status && weights->shape.c % groups)
		return npumem_error_set(query->error, NPUMEM_INVALID,
					"%s: c of weights, %" PRId64 ", is not a multiple of the %" PRId64
					" groups",
					query->question->kernel, weights->shape.c, groups);
	if (!status)
		status = transposed ? scatter(query, &in->shape, &weights->shape, &taps)
				    : slide(query, &in->shape, weights->shape.h, weights->shape.w, &taps);
	return status ? status
		      : numeric_query_add(query, in, weights, numeric_query_find(query, "bias"),
					  sizes_mul(taps, channels));
}

static int sums_group(const struct numeric_query *query)
{
	return grouped(query, false);
}

static int sums_transpose(const struct numeric_query *query)
{
	return grouped(query, true);
}

/* data [N,C,H,W], flattened to K, and weights [K,M,1,1]. */
static int add_dense(const struct numeric_query *query, const struct npumem_numeric_operand *data,
		     const struct npumem_numeric_operand *weights, const struct npumem_numeric_operand *bias)
{
	char what[32], of[32];
	snprintf(what, sizeof(what), "n of %.16s", weights->role);
	snprintf(of, sizeof(of), "c * h * w of %.12s", data->role);
	int status = numeric_query_equal(query, what, weights->shape.n, of, numeric_query_flattened(data));
	return status ? status : numeric_query_add(query, data, weights, bias, weights->shape.n);
}

static int sums_fully_connected(const struct numeric_query *query)
{
	const struct npumem_numeric_operand *in, *weights;
	int status = need_weighted(query, &in, &weights);
	return status ? status : add_dense(query, in, weights, numeric_query_find(query, "bias"));
}

static int sums_matmul(const struct numeric_query *query)
{
	const struct npumem_numeric_operand *left, *right;
	int status = numeric_query_need(query, "left", &left);
	if (!status)
		status = numeric_query_need(query, "right", &right);
	return status ? status : add_dense(query, left, right, numeric_query_find(query, "bias"));
}

static int sums_rnn_dense(const struct numeric_query *query)
{
	for (unsigned i = 0;; i++) {
		const struct npumem_numeric_operand *in, *weights;
		char role[2][NPUMEM_FIELD_KEY_BYTES];
		snprintf(role[0], sizeof(role[0]), "in%u", i);
		snprintf(role[1], sizeof(role[1]), "weights%u", i);
		if (i > 0 && !numeric_query_find(query, role[0]) && !numeric_query_find(query, role[1]))
			return 0;
		int status = numeric_query_need(query, role[0], &in);
		if (!status)
			status = numeric_query_need(query, role[1], &weights);
		/* The bias starts the first sum. */
		if (!status)
			status = add_dense(query, in, weights, i ? NULL : numeric_query_find(query, "bias"));
		if (status)
			return status;
	}
}

/* weights [gates, M, 1, K] and data [T, K, 1, 1]. */
static int add_gate(const struct numeric_query *query, const char *data_role, const char *weights_role,
		    int64_t gates, bool biased)
{
	const struct npumem_numeric_operand *data, *weights;
	char what[40], of[40];
	snprintf(what, sizeof(what), "w of %s", weights_role);
	snprintf(of, sizeof(of), "c * h * w of %s", data_role);
	int status = numeric_query_need(query, data_role, &data);
	if (!status)
		status = numeric_query_need(query, weights_role, &weights);
	if (!status)
		status = numeric_query_equal(query, what, weights->shape.w, of, numeric_query_flattened(data));
	what[0] = 'n';
	if (!status)
		status = numeric_query_equal(query, what, weights->shape.n, "the cell's number of gates", gates);
	return status ? status
		      : numeric_query_add(query, data, weights, biased ? numeric_query_find(query, "bias") : NULL,
					  weights->shape.w);
}

static int sums_cell(const struct numeric_query *query, int64_t gates)
{
	int status = add_gate(query, "in", "weights_in", gates, true);
	return status ? status : add_gate(query, "prev_out", "weights_out", gates, false);
}

static int sums_lstm(const struct numeric_query *query)
{
	/* Those of mli1_1 change the format half-way through one accumulator. */
	if (numeric_query_param(query, "rules", 0, RULES_MLI2_0) != RULES_MLI2_0)
		return npumem_error_set(query->error, NPUMEM_INVALID, "%s: only rules=mli2_0 is planned",
					query->question->kernel);
	return sums_cell(query, GATES_LSTM);
}

static int sums_gru(const struct numeric_query *query)
{
	return sums_cell(query, GATES_GRU);
}

static int sums_avepool(const struct numeric_query *query)
{
	const struct npumem_numeric_operand *in;
	int64_t taps;
	int status = numeric_query_need(query, "in", &in);
	if (!status)
		status = slide(query, &in->shape, numeric_query_param(query, "kernel", 0, 0),
			       numeric_query_param(query, "kernel", 1, 0), &taps);
	return status ? status : numeric_query_add(query, in, NULL, NULL, taps);
}

/* Without axes, along all of them. */
static int sums_reduce(const struct numeric_query *query)
{
	static const char *const names[] = {"n of out", "c of out", "h of out", "w of out"};
	const struct npumem_numeric_operand *in, *out = numeric_query_find(query, "out");
	int status = numeric_query_need(query, "in", &in);
	if (status)
		return status;
	const int64_t extents[] = {in->shape.n, in->shape.c, in->shape.h, in->shape.w};
	int64_t kept[] = {1, 1, 1, 1}, n = 1;
	/* The parameter's choices are the dimensions, counted from 1. */
	bool along[4], all = !numeric_query_param(query, "axes", 0, 0);
	for (unsigned d = 0; d < 4; d++) {
		along[d] = all;
		for (unsigned i = 0; i < 4; i++)
			along[d] |= numeric_query_param(query, "axes", i, 0) == d + 1;
		if (along[d])
			n = sizes_mul(n, extents[d]);
		else
			kept[d] = extents[d];
	}
	const int64_t given[] = {out ? out->shape.n : 0, out ? out->shape.c : 0, out ? out->shape.h : 0,
				 out ? out->shape.w : 0};
	for (unsigned d = 0; d < 4 && given[0] && !status; d++)
		status = numeric_query_equal(query, names[d], given[d], "that of in along axes", kept[d]);
	return status ? status : numeric_query_add(query, in, NULL, NULL, n);
}

/* ---- rows ---- */

static const struct kernel {
	const char *name;
	const char *roles; /* those that a question may have; `*` a numbered family */
	const char *params;
	bool rounds_into_out, averages;
	int (*sums)(const struct numeric_query *query);
} kernels[] = {
	{"conv2d", "in weights bias out", "stride padding dilation relu", true, false, sums_conv2d},
	{"depthwise_conv2d", "in weights bias out", "stride padding dilation relu", true, false, sums_depthwise},
	{"group_conv2d", "in weights bias out", "groups stride padding dilation relu", true, false, sums_group},
	{"transpose_conv2d", "in weights bias out", "groups stride padding output_padding relu", true, false,
	 sums_transpose},
	{"fully_connected", "in weights bias out", "relu", true, false, sums_fully_connected},
	{"matmul", "left right bias out", "relu", true, false, sums_matmul},
	{"avepool", "in out", "kernel stride padding dilation count_padding exact", true, true, sums_avepool},
	{"reduce_sum", "in out", "axes", true, false, sums_reduce},
	{"rnn_dense", "in* weights* bias out", "", true, false, sums_rnn_dense},
	{"lstm_cell", "in prev_out weights_in weights_out bias cell_in cell_out out",
	 "direction results act lut rules", false, false, sums_lstm},
	{"gru_cell", "in prev_out weights_in weights_out bias out", "direction results act lut", false, false,
	 sums_gru},
};

enum { N_KERNELS = sizeof(kernels) / sizeof(kernels[0]) };

static int unknown_kernel(const char *name, struct npumem_error *error)
{
	char known[320] = "";
	for (unsigned i = 0; i < N_KERNELS; i++)
		snprintf(known + strlen(known), sizeof(known) - strlen(known), "%s%s", i ? ", " : "",
			 kernels[i].name);
	return npumem_error_set(error, NPUMEM_INVALID, "\"%.60s\" is not a kernel that adds up: those are %s",
				name ? name : "", known);
}

int numeric_sums_find(const struct npumem_advise *question, struct numeric_sums *sums, struct npumem_error *error)
{
	const struct numeric_query query = {question, sums, error};
	const struct kernel *kernel = NULL;
	for (unsigned i = 0; i < N_KERNELS && !kernel && question->kernel; i++)
		if (!strcmp(kernels[i].name, question->kernel))
			kernel = &kernels[i];
	if (!kernel)
		return unknown_kernel(question->kernel, error);
	int status = numeric_query_check(&query, kernel->roles, kernel->params);
	if (status)
		return status;
	*sums = (struct numeric_sums){
		.out = numeric_query_find(&query, "out"),
		.rounds_into_out = kernel->rounds_into_out,
		.averages = kernel->averages,
		.rounding = (int)numeric_query_param(&query, "rounding", 0, NPUMEM_CONVERGENT),
	};
	return kernel->sums(&query);
}
