/* Every row of kernels.def tells how far it is and leaves when it is cancelled, at whichever of its looks: one
 * small call each, with pieces smaller still. A new kernel needs a case here to compile. */
#include "tests/support/test.h"
#include "tests/unit/daemon/device/kernels/calls.h"

enum { PIECE = 16, LOOKS_LEAST = 4 };

/* ---- a call of each ---- */

/* One of the role, of the shape [1,4,20,20]. */
static void sheet(struct calls *c, const char *role, int dtype, int64_t frac_bits)
{
	calls_add(c, role, dtype, frac_bits, 1, 4, 20, 20);
}

static void case_conv2d(struct calls *c)
{
	calls_add(c, "in", NPUMEM_FX8, 3, 2, 3, 9, 9);
	calls_add(c, "weights", NPUMEM_FX8, 3, 3, 9, 3, 3);
	calls_add(c, "out", NPUMEM_FX8, 3, 2, 9, 7, 7);
}

static void case_fully_connected(struct calls *c)
{
	calls_add(c, "in", NPUMEM_FX8, 3, 2, 600, 1, 1);
	calls_add(c, "weights", NPUMEM_FX8, 3, 600, 5, 1, 1);
	calls_add(c, "out", NPUMEM_FX8, 3, 2, 5, 1, 1);
}

static void pool(struct calls *c)
{
	calls_add(c, "in", NPUMEM_FX8, 3, 1, 2, 12, 12);
	calls_add(c, "out", NPUMEM_FX8, 3, 1, 2, 10, 10);
	calls_param(c, NPUMEM_PARAM_KERNEL, 2, 3, 3, 0, 0);
}

static void case_maxpool(struct calls *c)
{
	pool(c);
}

static void case_avepool(struct calls *c)
{
	pool(c);
}

static void one_to_one(struct calls *c, int to, int64_t frac_bits)
{
	sheet(c, "in", NPUMEM_FX8, 3);
	sheet(c, "out", to, frac_bits);
}

static void case_relu(struct calls *c)
{
	one_to_one(c, NPUMEM_FX8, 3);
}

static void case_convert_tensor(struct calls *c)
{
	one_to_one(c, NPUMEM_FP32, 0);
}

static void pair(struct calls *c)
{
	sheet(c, "in1", NPUMEM_FX8, 3);
	sheet(c, "in2", NPUMEM_FX8, 3);
	sheet(c, "out", NPUMEM_FX8, 3);
}

static void case_eltwise_add(struct calls *c)
{
	pair(c);
}

static void case_eltwise_max(struct calls *c)
{
	pair(c);
}

static void case_eltwise_sub(struct calls *c)
{
	pair(c);
}

static void case_eltwise_mul(struct calls *c)
{
	pair(c);
}

static void case_eltwise_min(struct calls *c)
{
	pair(c);
}

static void case_eltwise_div(struct calls *c)
{
	pair(c);
}

static void case_mac(struct calls *c)
{
	pair(c);
	sheet(c, "acc", NPUMEM_FX8, 3);
}

static void case_depthwise_conv2d(struct calls *c)
{
	calls_add(c, "in", NPUMEM_FX8, 3, 1, 4, 8, 8);
	calls_add(c, "weights", NPUMEM_FX8, 3, 1, 4, 3, 3);
	calls_add(c, "out", NPUMEM_FX8, 3, 1, 4, 6, 6);
}

static void case_group_conv2d(struct calls *c)
{
	calls_add(c, "in", NPUMEM_FX8, 3, 1, 4, 16, 16);
	calls_add(c, "weights", NPUMEM_FX8, 3, 2, 4, 3, 3);
	calls_add(c, "out", NPUMEM_FX8, 3, 1, 4, 14, 14);
	calls_param(c, NPUMEM_PARAM_GROUPS, 1, 2, 0, 0, 0);
}

static void case_transpose_conv2d(struct calls *c)
{
	calls_add(c, "in", NPUMEM_FX8, 3, 1, 2, 6, 6);
	calls_add(c, "weights", NPUMEM_FX8, 3, 2, 3, 3, 3);
	calls_add(c, "out", NPUMEM_FX8, 3, 1, 3, 13, 13);
	calls_param(c, NPUMEM_PARAM_STRIDE, 2, 2, 2, 0, 0);
}

static void case_leaky_relu(struct calls *c)
{
	one_to_one(c, NPUMEM_FX8, 3);
	calls_add(c, "slope", NPUMEM_FX8, 3, 1, 1, 1, 1);
}

static void case_prelu(struct calls *c)
{
	one_to_one(c, NPUMEM_FX8, 3);
	calls_add(c, "slope", NPUMEM_FX8, 3, 1, 4, 1, 1);
	calls_param(c, NPUMEM_PARAM_AXIS, 1, 3, 0, 0, 0);
}

static void case_lut(struct calls *c)
{
	one_to_one(c, NPUMEM_FX8, 3);
	calls_add(c, "table", NPUMEM_FX8, 3, 1, 1, 16, 16);
}

static void lookup(struct calls *c)
{
	calls_add(c, "in", NPUMEM_FX8, 3, 1, 4, 64, 80);
	calls_add(c, "out", NPUMEM_FX8, 7, 1, 4, 64, 80);
}

static void case_sigmoid(struct calls *c)
{
	lookup(c);
}

static void case_tanh(struct calls *c)
{
	lookup(c);
}

static void case_softmax(struct calls *c)
{
	one_to_one(c, NPUMEM_FX8, 7);
}

static void case_l2_normalize(struct calls *c)
{
	sheet(c, "in", NPUMEM_FX16, 3);
	sheet(c, "out", NPUMEM_FX16, 15);
}

static void case_rnn_dense(struct calls *c)
{
	for (int i = 0; i < 2; i++) {
		calls_add(c, "in", NPUMEM_FX8, 3, 2, 40, 1, 1);
		calls_add(c, "weights", NPUMEM_FX8, 3, 40, 6, 1, 1);
	}
	calls_add(c, "out", NPUMEM_FX8, 3, 2, 6, 1, 1);
}

static void gates(struct calls *c, int64_t n)
{
	calls_add(c, "in", NPUMEM_FX16, 8, 3, 20, 1, 1);
	calls_add(c, "prev_out", NPUMEM_FX16, 8, 1, 6, 1, 1);
	calls_add(c, "weights_in", NPUMEM_FX16, 8, n, 6, 1, 20);
	calls_add(c, "weights_out", NPUMEM_FX16, 8, n, 6, 1, 6);
	/* Only the last state is an output: the steps before it are told all the same. */
	calls_add(c, "out", NPUMEM_FX16, 8, 1, 6, 1, 1);
	calls_param(c, NPUMEM_PARAM_RESULTS, 1, 2, 0, 0, 0);
}

static void case_lstm_cell(struct calls *c)
{
	gates(c, 4);
	calls_add(c, "cell_in", NPUMEM_FX16, 8, 1, 6, 1, 1);
	calls_add(c, "cell_out", NPUMEM_FX16, 8, 1, 6, 1, 1);
}

static void case_gru_cell(struct calls *c)
{
	gates(c, 3);
}

static void case_basic_rnn_cell(struct calls *c)
{
	calls_add(c, "in", NPUMEM_FX8, 3, 3, 20, 1, 1);
	calls_add(c, "prev_out", NPUMEM_FX8, 3, 1, 6, 1, 1);
	calls_add(c, "weights", NPUMEM_FX8, 3, 1, 6, 1, 26);
	calls_add(c, "out", NPUMEM_FX8, 3, 3, 6, 1, 1);
}

static void case_matmul(struct calls *c)
{
	calls_add(c, "left", NPUMEM_FX8, 3, 3, 600, 1, 1);
	calls_add(c, "right", NPUMEM_FX8, 3, 600, 5, 1, 1);
	calls_add(c, "out", NPUMEM_FX8, 3, 3, 5, 1, 1);
}

static void packed(struct calls *c, int in, int out)
{
	sheet(c, "in1", in, 0);
	if (strstr(c->call.row->roles, "in2"))
		sheet(c, "in2", in, 0);
	else
		calls_param(c, NPUMEM_PARAM_VALUE, 1, 3, 0, 0, 0);
	if (strstr(c->call.row->roles, "acc"))
		sheet(c, "acc", NPUMEM_INT16, 0);
	sheet(c, "out", out, 0);
}

#define PACKED(name, in, out)                                                                                     \
	static void case_packed_##name(struct calls *c)                                                           \
	{                                                                                                         \
		packed(c, in, out);                                                                               \
	}
PACKED(add, NPUMEM_INT8, NPUMEM_INT16)
PACKED(sub, NPUMEM_INT8, NPUMEM_INT16)
PACKED(mul, NPUMEM_INT8, NPUMEM_INT16)
PACKED(mac, NPUMEM_INT8, NPUMEM_INT16)
PACKED(min, NPUMEM_INT8, NPUMEM_INT8)
PACKED(max, NPUMEM_INT8, NPUMEM_INT8)
PACKED(arithmetic_shift, NPUMEM_INT16, NPUMEM_INT16)
PACKED(logical_shift, NPUMEM_INT16, NPUMEM_INT16)
PACKED(add_c, NPUMEM_INT8, NPUMEM_INT16)
PACKED(sub_c, NPUMEM_INT8, NPUMEM_INT16)
PACKED(c_sub, NPUMEM_INT8, NPUMEM_INT16)
PACKED(mul_c, NPUMEM_INT8, NPUMEM_INT16)
PACKED(mac_c, NPUMEM_INT8, NPUMEM_INT16)
PACKED(min_c, NPUMEM_INT8, NPUMEM_INT8)
PACKED(max_c, NPUMEM_INT8, NPUMEM_INT8)
PACKED(arithmetic_shift_c, NPUMEM_INT16, NPUMEM_INT16)
PACKED(logical_shift_c, NPUMEM_INT16, NPUMEM_INT16)
#undef PACKED

/* To one output, which is told while it is made. */
static void reduce(struct calls *c)
{
	sheet(c, "in", NPUMEM_FX8, 3);
	calls_add(c, "out", NPUMEM_FX8, 3, 1, 1, 1, 1);
}

static void case_reduce_sum(struct calls *c)
{
	reduce(c);
}

static void case_reduce_max(struct calls *c)
{
	reduce(c);
}

static void case_argmax(struct calls *c)
{
	sheet(c, "in", NPUMEM_FX8, 3);
	calls_add(c, "out", NPUMEM_INT32, 0, 1, 40, 1, 1);
	calls_param(c, NPUMEM_PARAM_TOPK, 1, 40, 0, 0, 0);
}

static void case_permute(struct calls *c)
{
	sheet(c, "in", NPUMEM_FX8, 3);
	calls_add(c, "out", NPUMEM_FX8, 3, 1, 20, 4, 20);
	calls_param(c, NPUMEM_PARAM_PERM, 3, 2, 0, 1, 0);
}

static void case_concat(struct calls *c)
{
	sheet(c, "in", NPUMEM_FX8, 3);
	sheet(c, "in", NPUMEM_FX8, 3);
	calls_add(c, "out", NPUMEM_FX8, 3, 1, 8, 20, 20);
	calls_param(c, NPUMEM_PARAM_AXIS, 1, 3, 0, 0, 0);
}

static void case_pad2d(struct calls *c)
{
	sheet(c, "in", NPUMEM_FX8, 3);
	calls_add(c, "out", NPUMEM_FX8, 3, 1, 4, 22, 22);
	calls_param(c, NPUMEM_PARAM_PADDING, 4, 1, 1, 1, 1);
}

static const struct {
	const char *name;
	int number;
	void (*set_up)(struct calls *c);
} cases[] = {
#define KERNEL(name, NAME, number, roles, parameters, types, summary) {#name, NPUMEM_KERNEL_##NAME, case_##name},
#include <npumem/kernels.def>
#undef KERNEL
};

/* ---- what each is asked ---- */

struct watch {
	struct kernel_progress progress; /* first, so that the one is the other */
	int64_t seen, n_looks, n_told;	 /* n_told: times that more was done than before */
	int64_t cancel_at;		 /* a look; 0: none */
};

static void looked(struct kernel_progress *progress)
{
	struct watch *watch = (struct watch *)progress;
	ck_assert_int_ge(progress->done, watch->seen);
	ck_assert_int_le(progress->done, progress->total);
	watch->n_told += progress->done > watch->seen;
	watch->seen = progress->done;
	if (++watch->n_looks == watch->cancel_at)
		progress->cancelled = true;
}

static struct watch watch_run(struct calls *c, int64_t cancel_at)
{
	struct watch watch = {.progress = {.piece = PIECE, .looked = looked}, .cancel_at = cancel_at};
	int64_t elements = 0;
	for (unsigned i = 0; i < c->call.n_roles; i++)
		for (unsigned k = 0; c->is_output[i] && k < c->roles[i].n; k++)
			elements += (int64_t)(calls_bytes(&c->operands[i][k]) /
					      npumem_dtype_bytes(c->operands[i][k].dtype));
	kernel_begin(&watch.progress, elements);
	c->call.progress = &watch.progress;
	calls_run(c);
	c->call.progress = NULL;
	return watch;
}

static void check_case(unsigned i)
{
	struct calls c;
	const char *name = cases[i].name;
	calls_init(&c, cases[i].number);
	ck_assert_msg(c.kernel->steps, "%s does not say what it takes", name);
	cases[i].set_up(&c);
	struct watch whole = watch_run(&c, 0);
	ck_assert_msg(whole.progress.done == whole.progress.total, "%s told %lld of %lld", name,
		      (long long)whole.progress.done, (long long)whole.progress.total);
	ck_assert_msg(whole.n_told >= LOOKS_LEAST, "%s told %lld times", name, (long long)whole.n_told);
	for (int64_t at = 1; at < whole.n_looks; at += 1 + whole.n_looks / 16) {
		struct watch part = watch_run(&c, at);
		ck_assert_msg(part.n_looks == at, "%s went on for %lld looks after it was cancelled at its %lldth",
			      name, (long long)(part.n_looks - at), (long long)at);
	}
	watch_run(&c, 1);
	const struct kernel_operand *out = calls_operand(&c, "out");
	ck_assert_int_eq(((const uint8_t *)out->data)[calls_bytes(out) - 1], 0xa5);
	calls_free(&c);
}

TEST(tells_and_leaves)
{
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		check_case(i);
}

/* What is part of something is cancelled with it. */
TEST(with_the_whole)
{
	struct calls c;
	struct kernel_progress whole = {.cancelled = true}, part = {.piece = PIECE, .whole = &whole};
	calls_init(&c, NPUMEM_KERNEL_RELU);
	case_relu(&c);
	c.call.progress = &part;
	calls_run(&c);
	ck_assert_int_lt(part.done, 4 * 20 * 20 * KERNEL_PARTS);
	calls_free(&c);
}
