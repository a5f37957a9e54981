/* Shapes by kernel: each function chooses what is free and works out the rest. Extents are chosen largest effect
 * first, so that what is left of the budget bounds the next one. */
#include "tests/fuzz/valid_shapes.h"

#include <stdio.h>
#include <string.h>

enum { N, C, H, W, DIMS };

static int64_t elements(const struct npumem_dims *shape)
{
	return shape->n * shape->c * shape->h * shape->w;
}

/* Any shape, whose dimensions are chosen in any order: the first may take all of it. */
static struct npumem_dims any_shape(struct valid_run *run, int64_t most)
{
	int64_t extent[DIMS] = {0}, left = most;

	for (unsigned i = 0, first = (unsigned)valid_below(run, DIMS); i < DIMS; i++) {
		int64_t *at = &extent[(first + i) % DIMS];

		*at = valid_extent(run, left);
		left /= *at;
	}
	return dims(extent[N], extent[C], extent[H], extent[W]);
}

void valid_bias_and_out(struct valid_run *run, int64_t frac_bits, struct npumem_dims bias, int dtype,
			struct npumem_dims out)
{
	if (valid_below(run, 4))
		valid_tensor(run, "bias", run->weights,
			     valid_frac_bits(run, smaller(frac_bits, NPUMEM_FRAC_BITS_MAX)), bias);
	valid_tensor(run, "out", dtype, valid_frac_bits(run, NPUMEM_FRAC_BITS_MAX), out);
}

/* ---- matrices ---- */

static void dense(struct valid_run *run)
{
	bool is_matmul = run->row->number == NPUMEM_KERNEL_MATMUL;
	int64_t in_frac = valid_frac_bits(run, NPUMEM_FRAC_BITS_MAX);
	int64_t weights_frac = valid_frac_bits(run, NPUMEM_FRAC_BITS_MAX), terms, columns;
	struct npumem_dims in = any_shape(run, VALID_ELEMENTS_MAX);

	if (is_matmul)
		in = dims(in.n, in.c * in.h * in.w, 1, 1);
	terms = in.c * in.h * in.w;
	columns =
		valid_extent(run, smaller(VALID_PRODUCTS_MAX / elements(&in) + 1,
					  smaller(1 + 4 * VALID_ELEMENTS_MAX / terms, VALID_ELEMENTS_MAX / in.n)));
	valid_tensor(run, is_matmul ? "left" : "in", run->data, in_frac, in);
	valid_tensor(run, is_matmul ? "right" : "weights", run->weights, weights_frac, dims(terms, columns, 1, 1));
	valid_bias_and_out(run, in_frac + weights_frac, dims(1, columns, 1, 1), run->data,
			   dims(in.n, columns, 1, 1));
}

static void rnn_dense(struct valid_run *run)
{
	int64_t inputs = valid_extent(run, VALID_FAMILY_MAX), n = valid_extent(run, 300),
		m = valid_extent(run, VALID_ELEMENTS_MAX / n);
	int64_t first_frac = 0, terms[VALID_FAMILY_MAX], fracs[VALID_FAMILY_MAX];

	for (int64_t i = 0; i < inputs; i++) {
		char role[NPUMEM_FIELD_KEY_BYTES];

		terms[i] = valid_extent(run, smaller(VALID_PRODUCTS_MAX / (n * m * inputs) + 1,
						     VALID_ELEMENTS_MAX / (m > n ? m : n)));
		fracs[i] = valid_frac_bits(run, NPUMEM_FRAC_BITS_MAX);
		snprintf(role, sizeof(role), "in%d", (int)i);
		valid_tensor(run, role, run->data, fracs[i], dims(n, terms[i], 1, 1));
	}
	for (int64_t i = 0; i < inputs; i++) {
		char role[NPUMEM_FIELD_KEY_BYTES];
		int64_t frac = valid_frac_bits(run, NPUMEM_FRAC_BITS_MAX);

		first_frac = i ? first_frac : fracs[i] + frac;
		snprintf(role, sizeof(role), "weights%d", (int)i);
		valid_tensor(run, role, run->weights, frac, dims(terms[i], m, 1, 1));
	}
	valid_bias_and_out(run, first_frac, dims(1, m, 1, 1), run->data, dims(n, m, 1, 1));
}

/* Cells: roles in the order of their rows. */
static void cell(struct valid_run *run)
{
	enum { RULES_1_1 = 2, LAST = 2, ONE_TO_ONE = 3, NO_ACT = 1 };
	int number = run->row->number;
	bool is_lstm = number == NPUMEM_KERNEL_LSTM_CELL, is_basic = number == NPUMEM_KERNEL_BASIC_RNN_CELL;
	int64_t rules = is_lstm && run->data == NPUMEM_FX8 ? RULES_1_1
			: is_lstm			   ? valid_choice(run, NPUMEM_PARAM_RULES)
							   : 0;
	bool joint = is_basic || rules == RULES_1_1, is_last, stacked;
	int64_t act = is_lstm || is_basic ? valid_choice(run, NPUMEM_PARAM_ACT) : 0;
	int64_t mode = joint ? valid_choice(run, NPUMEM_PARAM_MODE) : 0, gates, steps, inputs, m;
	int64_t in_frac = valid_frac_bits(run, NPUMEM_FRAC_BITS_MAX),
		weights_frac = valid_frac_bits(run, NPUMEM_FRAC_BITS_MAX);
	int64_t unit = run->data == NPUMEM_FX8 ? 7 : 15, out_frac = valid_frac_bits(run, NPUMEM_FRAC_BITS_MAX),
		cell_frac;

	if (is_lstm && run->data == NPUMEM_FX8)
		valid_param(run, NPUMEM_PARAM_RULES, 1, (int64_t[]){RULES_1_1});
	if (!joint)
		valid_choice(run, NPUMEM_PARAM_DIRECTION);
	is_last = joint ? mode == 2 || mode == ONE_TO_ONE : valid_choice(run, NPUMEM_PARAM_RESULTS) == LAST;
	stacked = is_basic && mode == ONE_TO_ONE;
	gates = stacked ? valid_extent(run, 9) : is_basic ? 1 : is_lstm ? 4 : 3;
	steps = joint && mode == ONE_TO_ONE ? 1 : valid_extent(run, VALID_SEQUENCE_MAX);
	m = valid_extent(run, 1 + 120 / gates * (4 - (steps > 4) - (steps > 1)));
	inputs = valid_extent(run, smaller(VALID_PRODUCTS_MAX / (gates * steps * m) + 1,
					   2 * VALID_ELEMENTS_MAX / (gates * m) + 1));
	if (is_basic && act != NO_ACT)
		out_frac = unit;
	valid_tensor(run, "in", run->data, in_frac, dims(steps, inputs, 1, 1));
	valid_tensor(run, "prev_out", run->data, valid_frac_bits(run, NPUMEM_FRAC_BITS_MAX), dims(1, m, 1, 1));
	if (joint) {
		valid_tensor(run, "weights", run->weights, weights_frac, dims(gates, m, 1, inputs + m));
	} else {
		valid_tensor(run, "weights_in", run->weights, weights_frac, dims(gates, m, 1, inputs));
		valid_tensor(run, "weights_out", run->weights, valid_frac_bits(run, NPUMEM_FRAC_BITS_MAX),
			     dims(gates, m, 1, m));
	}
	if (valid_below(run, 4))
		valid_tensor(run, "bias", run->weights,
			     valid_frac_bits(run, smaller(in_frac + weights_frac, NPUMEM_FRAC_BITS_MAX)),
			     dims(gates, m, 1, 1));
	cell_frac = valid_frac_bits(run, NPUMEM_FRAC_BITS_MAX);
	if (is_lstm)
		valid_tensor(run, "cell_in", run->data, cell_frac, dims(1, m, 1, 1));
	valid_tensor(run, "out", run->data, out_frac, dims(stacked ? gates : is_last ? 1 : steps, m, 1, 1));
	if (is_lstm)
		valid_tensor(run, "cell_out", run->data, cell_frac, dims(1, m, 1, 1));
}

/* ---- element by element ---- */

static bool has_one_format(int number)
{
	return number == NPUMEM_KERNEL_ELTWISE_MAX || number == NPUMEM_KERNEL_ELTWISE_MIN;
}

/* Goes with all of `shape`: a scalar, a number a channel, a plane and the like. */
static struct npumem_dims spread(struct valid_run *run, struct npumem_dims shape)
{
	int64_t kept = valid_below(run, 8);

	if (!(kept & 4))
		shape.h = shape.w = 1;
	return dims(kept & 1 ? shape.n : 1, kept & 2 ? shape.c : 1, shape.h, shape.w);
}

static void eltwise(struct valid_run *run)
{
	struct npumem_dims shape = any_shape(run, VALID_ELEMENTS_MAX), one = spread(run, shape);
	int64_t scalar = valid_below(run, 5), frac = valid_frac_bits(run, NPUMEM_FRAC_BITS_MAX);

	valid_tensor(run, "in1", run->data, frac, scalar == 1 ? one : shape);
	if (!has_one_format(run->row->number) && valid_below(run, 2))
		frac = valid_frac_bits(run, NPUMEM_FRAC_BITS_MAX);
	valid_tensor(run, "in2", run->data, frac, scalar == 2 ? one : shape);
	if (valid_below(run, 2))
		frac = valid_frac_bits(run, NPUMEM_FRAC_BITS_MAX);
	valid_tensor(run, "out", run->data, frac, shape);
	if (run->row->number == NPUMEM_KERNEL_MAC)
		valid_tensor(run, "acc", run->data, frac, shape);
}

/* One to one, in the format of results in [-1, 1) unless it `keeps` its own, or takes any. */
static void map(struct valid_run *run, bool keeps)
{
	struct npumem_dims shape = any_shape(run, VALID_ELEMENTS_MAX);
	int64_t frac = valid_frac_bits(run, NPUMEM_FRAC_BITS_MAX);

	valid_tensor(run, "in", run->data, frac, shape);
	if (keeps)
		frac = valid_below(run, 2) ? frac : valid_frac_bits(run, NPUMEM_FRAC_BITS_MAX);
	else
		frac = run->data == NPUMEM_FX8 ? 7 : 15;
	valid_tensor(run, "out", run->data, frac, shape);
}

static void lut(struct valid_run *run)
{
	int64_t frac = valid_frac_bits(run, NPUMEM_FRAC_BITS_MAX), entries = 256;
	struct npumem_dims shape = any_shape(run, VALID_ELEMENTS_MAX);

	if (run->data == NPUMEM_FX16)
		entries = ((int64_t)1 << (1 + valid_below(run, 12))) + 1;
	valid_tensor(run, "in", run->data, valid_frac_bits(run, NPUMEM_FRAC_BITS_MAX), shape);
	valid_tensor(run, "table", run->data, frac, dims(1, 1, 1, entries));
	valid_tensor(run, "out", run->data, frac, shape);
}

/* Of a batch the axis must be given. */
static void groups_of_table(struct valid_run *run)
{
	enum { NONE = 1, AXIS_C = 3 };
	int64_t axis;

	map(run, false);
	axis = valid_below(run, 5);
	axis = axis < 2 ? axis : axis - 2 + AXIS_C;
	if (!axis && run->tensors[0].shape.n > 1)
		axis = NONE;
	if (axis)
		valid_param(run, NPUMEM_PARAM_AXIS, 1, &axis);
}

static void convert(struct valid_run *run)
{
	static const int types[] = {NPUMEM_INT8,   NPUMEM_UINT8, NPUMEM_INT16, NPUMEM_UINT16, NPUMEM_INT32,
				    NPUMEM_UINT32, NPUMEM_FP32,	 NPUMEM_FX8,   NPUMEM_FX16};
	struct npumem_dims shape = any_shape(run, VALID_ELEMENTS_MAX);

	valid_tensor(run, "in", run->data, valid_frac_bits(run, NPUMEM_FRAC_BITS_MAX), shape);
	valid_tensor(run, "out", types[valid_below(run, sizeof(types) / sizeof(types[0]))],
		     valid_frac_bits(run, NPUMEM_FRAC_BITS_MAX), shape);
}

static void slope(struct valid_run *run)
{
	enum { DEFAULT, AXIS_C = 3, AXIS_H, AXIS_W };
	struct npumem_dims shape = any_shape(run, VALID_ELEMENTS_MAX), along = {1, 1, 1, 1};
	int64_t frac = valid_frac_bits(run, NPUMEM_FRAC_BITS_MAX), axis = DEFAULT;

	if (run->row->number == NPUMEM_KERNEL_PRELU) {
		axis = valid_below(run, 4) + AXIS_C - 1;
		axis = axis < AXIS_C ? DEFAULT : axis;
		if (axis)
			valid_param(run, NPUMEM_PARAM_AXIS, 1, &axis);
		along = axis == AXIS_H	 ? dims(1, 1, shape.h, 1)
			: axis == AXIS_W ? dims(1, 1, 1, shape.w)
					 : dims(1, shape.c, 1, 1);
	}
	valid_tensor(run, "in", run->data, frac, shape);
	valid_tensor(run, "slope", run->data, valid_frac_bits(run, NPUMEM_FRAC_BITS_MAX), along);
	valid_tensor(run, "out", run->data, frac, shape);
}

/* ---- integers ---- */

static int of_bytes(struct valid_run *run, unsigned bytes)
{
	bool is_signed = valid_below(run, 2);

	return bytes == 1 ? (is_signed ? NPUMEM_INT8 : NPUMEM_UINT8) : is_signed ? NPUMEM_INT16 : NPUMEM_UINT16;
}

/* The constant of value=, whose type is value_dtype=, or that of in1 (of a logical shift int16). */
static void constant(struct valid_run *run, int dtype, bool is_logical)
{
	static const int dtypes[] = {0, 0, NPUMEM_INT8, NPUMEM_UINT8, NPUMEM_INT16, NPUMEM_UINT16};
	int natural = is_logical ? NPUMEM_INT16 : run->tensors[0].dtype;
	int64_t low, high, value, choice = 1;

	while (dtypes[choice] != dtype)
		choice++;
	if (dtype != natural)
		valid_param(run, NPUMEM_PARAM_VALUE_DTYPE, 1, &choice);
	npumem_dtype_range(dtype, &low, &high);
	value = valid_below(run, 8) ? low + valid_below(run, high - low + 1) : high;
	valid_param(run, NPUMEM_PARAM_VALUE, 1, &value);
}

static void packed(struct valid_run *run)
{
	const char *name = run->row->name + strlen("packed_");
	bool is_shift = strstr(name, "shift"), is_order = !strncmp(name, "min", 3) || !strncmp(name, "max", 3);
	bool is_mac = !strncmp(name, "mac", 3), is_mul = !strncmp(name, "mul", 3),
	     has_in2 = strstr(run->row->roles, "in2");
	unsigned bytes = is_mac || is_mul ? 1 : is_shift ? 2 : npumem_dtype_bytes(run->data);
	int in1 = !strncmp(name, "arithmetic", 10) ? NPUMEM_INT16 : of_bytes(run, bytes);
	int in2 = is_order ? in1 : of_bytes(run, bytes);
	int out = is_mac     ? of_bytes(run, 2)
		  : is_shift ? in1
			     : of_bytes(run, is_order ? bytes : 1 + (unsigned)valid_below(run, 2));
	struct npumem_dims shape = any_shape(run, VALID_ELEMENTS_MAX);
	int64_t shift;

	valid_tensor(run, "in1", in1, 0, shape);
	if (has_in2)
		valid_tensor(run, "in2", in2, 0, shape);
	else
		constant(run, in2, is_shift);
	if (is_mac)
		valid_tensor(run, "acc", of_bytes(run, 2), 0, shape);
	valid_tensor(run, "out", out, 0, shape);
	for (int i = 0; i < 2; i++) {
		shift = valid_below(run, 32);
		if (strstr(run->row->parameters, i ? "lshift" : "rshift"))
			valid_param(run, i ? NPUMEM_PARAM_LSHIFT : NPUMEM_PARAM_RSHIFT, 1, &shift);
	}
}

/* ---- orders ---- */

static int64_t *dim(struct npumem_dims *shape, int64_t i)
{
	return i == N ? &shape->n : i == C ? &shape->c : i == H ? &shape->h : &shape->w;
}

static void reduce(struct valid_run *run)
{
	struct npumem_dims shape = any_shape(run, VALID_ELEMENTS_MAX), out = shape;
	int64_t along = valid_below(run, 16), first = valid_below(run, DIMS), axes[DIMS];
	unsigned n = 0;

	for (unsigned i = 0; i < DIMS; i++) {
		int64_t axis = (first + i) % DIMS;

		if (along && !(along >> axis & 1))
			continue;
		*dim(&out, axis) = 1;
		axes[n++] = axis + 1;
	}
	if (along)
		valid_param(run, NPUMEM_PARAM_AXES, n, axes);
	valid_tensor(run, "in", run->data, valid_frac_bits(run, NPUMEM_FRAC_BITS_MAX), shape);
	valid_tensor(run, "out", run->data, valid_frac_bits(run, NPUMEM_FRAC_BITS_MAX), out);
}

static void argmax(struct valid_run *run)
{
	struct npumem_dims shape = any_shape(run, VALID_ELEMENTS_MAX), out;
	int64_t axis = valid_choice(run, NPUMEM_PARAM_AXIS), all = elements(&shape), size, topk;

	size = axis > 1 ? *dim(&shape, axis - 2) : 1;
	topk = valid_extent(run, all / size);
	valid_param(run, NPUMEM_PARAM_TOPK, 1, &topk);
	out = axis > 1 ? dims(1, size, 1, topk) : dims(1, topk, 1, 1);
	valid_tensor(run, "in", run->data, valid_frac_bits(run, NPUMEM_FRAC_BITS_MAX), shape);
	valid_tensor(run, "out", NPUMEM_INT32, 0, out);
}

static void permute(struct valid_run *run)
{
	struct npumem_dims shape = any_shape(run, VALID_ELEMENTS_MAX), out = shape;
	int64_t n = DIMS - valid_below(run, 2), perm[DIMS] = {0, 1, 2, 3},
		frac = valid_frac_bits(run, NPUMEM_FRAC_BITS_MAX);

	for (int64_t i = n - 1; i > 0; i--) {
		int64_t k = valid_below(run, i + 1), kept = perm[i];

		perm[i] = perm[k];
		perm[k] = kept;
	}
	for (int64_t i = 0; i < n; i++)
		*dim(&out, DIMS - n + i) = *dim(&shape, DIMS - n + perm[i]);
	valid_param(run, NPUMEM_PARAM_PERM, (unsigned)n, perm);
	valid_tensor(run, "in", run->data, frac, shape);
	valid_tensor(run, "out", run->data, frac, out);
}

static void concat(struct valid_run *run)
{
	int64_t n = valid_extent(run, VALID_FAMILY_MAX), axis = valid_below(run, DIMS), sum = 0;
	int64_t frac = valid_frac_bits(run, NPUMEM_FRAC_BITS_MAX), choice = axis + 2;
	struct npumem_dims shape = any_shape(run, VALID_ELEMENTS_MAX / n);
	int64_t others = elements(&shape) / *dim(&shape, axis);

	for (int64_t i = 0; i < n; i++) {
		char role[NPUMEM_FIELD_KEY_BYTES];

		*dim(&shape, axis) = valid_extent(run, VALID_ELEMENTS_MAX / n / others);
		sum += *dim(&shape, axis);
		snprintf(role, sizeof(role), "in%d", (int)i);
		valid_tensor(run, role, run->data, frac, shape);
	}
	*dim(&shape, axis) = sum;
	valid_param(run, NPUMEM_PARAM_AXIS, 1, &choice);
	valid_tensor(run, "out", run->data, frac, shape);
}

static void pad(struct valid_run *run)
{
	struct npumem_dims shape = any_shape(run, VALID_ELEMENTS_MAX), out = shape;
	int64_t frac = valid_frac_bits(run, NPUMEM_FRAC_BITS_MAX), sides[4] = {0}, low = -(1 << 24),
		high = 1 << 24, value;

	for (int i = 0; i < 4; i++) {
		int64_t *extent = i < 2 ? &out.h : &out.w, others = elements(&out) / *extent;

		sides[i] = valid_extent(run, 1 + VALID_ELEMENTS_MAX / others / 2) - 1;
		*extent += sides[i];
	}
	npumem_dtype_range(run->data, &low, &high);
	value = valid_below(run, 4)   ? valid_below(run, 1 + smaller(high, 60000))
		: valid_below(run, 2) ? low
				      : high;
	valid_param(run, NPUMEM_PARAM_PADDING, 4, sides);
	if (valid_below(run, 2))
		valid_param(run, NPUMEM_PARAM_VALUE, 1, &value);
	valid_tensor(run, "in", run->data, frac, shape);
	valid_tensor(run, "out", run->data, frac, out);
}

void valid_shapes(struct valid_run *run)
{
	switch (run->row->number) {
	case NPUMEM_KERNEL_CONV2D:
	case NPUMEM_KERNEL_GROUP_CONV2D:
	case NPUMEM_KERNEL_DEPTHWISE_CONV2D:
	case NPUMEM_KERNEL_TRANSPOSE_CONV2D:
		valid_convolution(run);
		break;
	case NPUMEM_KERNEL_MAXPOOL:
	case NPUMEM_KERNEL_AVEPOOL:
		valid_pool(run);
		break;
	case NPUMEM_KERNEL_FULLY_CONNECTED:
	case NPUMEM_KERNEL_MATMUL:
		dense(run);
		break;
	case NPUMEM_KERNEL_RNN_DENSE:
		rnn_dense(run);
		break;
	case NPUMEM_KERNEL_LSTM_CELL:
	case NPUMEM_KERNEL_GRU_CELL:
	case NPUMEM_KERNEL_BASIC_RNN_CELL:
		cell(run);
		break;
	case NPUMEM_KERNEL_ELTWISE_ADD:
	case NPUMEM_KERNEL_ELTWISE_SUB:
	case NPUMEM_KERNEL_ELTWISE_MUL:
	case NPUMEM_KERNEL_ELTWISE_DIV:
	case NPUMEM_KERNEL_ELTWISE_MIN:
	case NPUMEM_KERNEL_ELTWISE_MAX:
	case NPUMEM_KERNEL_MAC:
		eltwise(run);
		break;
	case NPUMEM_KERNEL_RELU:
		map(run, true);
		break;
	case NPUMEM_KERNEL_SIGMOID:
	case NPUMEM_KERNEL_TANH:
		map(run, false);
		break;
	case NPUMEM_KERNEL_LUT:
		lut(run);
		break;
	case NPUMEM_KERNEL_SOFTMAX:
	case NPUMEM_KERNEL_L2_NORMALIZE:
		groups_of_table(run);
		break;
	case NPUMEM_KERNEL_CONVERT_TENSOR:
		convert(run);
		break;
	case NPUMEM_KERNEL_LEAKY_RELU:
	case NPUMEM_KERNEL_PRELU:
		slope(run);
		break;
	case NPUMEM_KERNEL_REDUCE_SUM:
	case NPUMEM_KERNEL_REDUCE_MAX:
		reduce(run);
		break;
	case NPUMEM_KERNEL_ARGMAX:
		argmax(run);
		break;
	case NPUMEM_KERNEL_PERMUTE:
		permute(run);
		break;
	case NPUMEM_KERNEL_CONCAT:
		concat(run);
		break;
	case NPUMEM_KERNEL_PAD2D:
		pad(run);
		break;
	default:
		if (strcmp(run->row->types, "packed") != 0)
			fuzz_fail("%s has no shapes here", run->row->name);
		packed(run);
	}
}
