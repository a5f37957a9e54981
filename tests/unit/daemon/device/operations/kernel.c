/* Every row of kernels.def tells how far it is and leaves when it is cancelled, at whichever of its looks: one
 * small call each, with pieces smaller still. A new kernel needs a call here. */
#include "tests/unit/daemon/device/kernels/words.h"

enum { PIECE = 16, LOOKS_LEAST = 4, WORDS_BYTES = 256 };

/* A call of each: the kernels, and what their call is made of. */
static const char *const calls[][2] = {
	{"conv2d", "in=fx8.3[2,3,9,9] weights=fx8.3[3,9,3,3] out=fx8.3[2,9,7,7]"},
	{"depthwise_conv2d", "in=fx8.3[1,4,8,8] weights=fx8.3[1,4,3,3] out=fx8.3[1,4,6,6]"},
	{"group_conv2d", "in=fx8.3[1,4,16,16] weights=fx8.3[2,4,3,3] out=fx8.3[1,4,14,14] groups=2"},
	{"transpose_conv2d", "in=fx8.3[1,2,6,6] weights=fx8.3[2,3,3,3] out=fx8.3[1,3,13,13] stride=2,2"},
	{"fully_connected", "in=fx8.3[2,600,1,1] weights=fx8.3[600,5,1,1] out=fx8.3[2,5,1,1]"},
	{"matmul", "left=fx8.3[3,600,1,1] right=fx8.3[600,5,1,1] out=fx8.3[3,5,1,1]"},
	{"rnn_dense", "in=fx8.3[2,40,1,1] weights=fx8.3[40,6,1,1] in=fx8.3[2,40,1,1] weights=fx8.3[40,6,1,1] "
		      "out=fx8.3[2,6,1,1]"},
	{"basic_rnn_cell",
	 "in=fx8.3[3,40,1,1] prev_out=fx8.3[1,20,1,1] weights=fx8.3[1,20,1,60] out=fx8.3[3,20,1,1]"},
	/* Only the last state is an output: the steps before it are told all the same. */
	{"lstm_cell", "in=fx16.8[3,20,1,1] prev_out=fx16.8[1,6,1,1] weights_in=fx16.8[4,6,1,20] "
		      "weights_out=fx16.8[4,6,1,6] cell_in=fx16.8[1,6,1,1] out=fx16.8[1,6,1,1] "
		      "cell_out=fx16.8[1,6,1,1] results=last"},
	{"gru_cell", "in=fx16.8[3,20,1,1] prev_out=fx16.8[1,6,1,1] weights_in=fx16.8[3,6,1,20] "
		     "weights_out=fx16.8[3,6,1,6] out=fx16.8[1,6,1,1] results=last"},
	{"maxpool,avepool", "in=fx8.3[1,2,12,12] out=fx8.3[1,2,10,10] kernel=3,3"},
	{"relu", "in=fx8.3[1,4,20,20] out=fx8.3[1,4,20,20]"},
	{"convert_tensor", "in=fx8.3[1,4,20,20] out=fp32[1,4,20,20]"},
	{"softmax", "in=fx8.3[1,4,20,20] out=fx8.7[1,4,20,20]"},
	{"l2_normalize", "in=fx16.3[1,4,20,20] out=fx16.15[1,4,20,20]"},
	{"leaky_relu", "in=fx8.3[1,4,20,20] out=fx8.3[1,4,20,20] slope=fx8.3[1,1,1,1]"},
	{"prelu", "in=fx8.3[1,4,20,20] out=fx8.3[1,4,20,20] slope=fx8.3[1,4,1,1] axis=c"},
	{"lut", "in=fx8.3[1,4,20,20] out=fx8.3[1,4,20,20] table=fx8.3[1,1,16,16]"},
	{"sigmoid,tanh", "in=fx8.3[1,4,64,80] out=fx8.7[1,4,64,80]"},
	{"eltwise_add,eltwise_max,eltwise_sub,eltwise_mul,eltwise_min,eltwise_div",
	 "in1=fx8.3[1,4,20,20] in2=fx8.3[1,4,20,20] out=fx8.3[1,4,20,20]"},
	{"mac", "in1=fx8.3[1,4,20,20] in2=fx8.3[1,4,20,20] out=fx8.3[1,4,20,20] acc=fx8.3[1,4,20,20]"},
	{"packed_add,packed_sub,packed_mul", "in1=int8[1,4,20,20] in2=int8[1,4,20,20] out=int16[1,4,20,20]"},
	{"packed_mac", "in1=int8[1,4,20,20] in2=int8[1,4,20,20] acc=int16[1,4,20,20] out=int16[1,4,20,20]"},
	{"packed_min,packed_max", "in1=int8[1,4,20,20] in2=int8[1,4,20,20] out=int8[1,4,20,20]"},
	{"packed_arithmetic_shift,packed_logical_shift",
	 "in1=int16[1,4,20,20] in2=int16[1,4,20,20] out=int16[1,4,20,20]"},
	{"packed_add_c,packed_sub_c,packed_c_sub,packed_mul_c",
	 "in1=int8[1,4,20,20] value=3 out=int16[1,4,20,20]"},
	{"packed_mac_c", "in1=int8[1,4,20,20] value=3 acc=int16[1,4,20,20] out=int16[1,4,20,20]"},
	{"packed_min_c,packed_max_c", "in1=int8[1,4,20,20] value=3 out=int8[1,4,20,20]"},
	{"packed_arithmetic_shift_c,packed_logical_shift_c", "in1=int16[1,4,20,20] value=3 out=int16[1,4,20,20]"},
	/* To one output, which is told while it is made. */
	{"reduce_sum,reduce_max", "in=fx8.3[1,4,20,20] out=fx8.3[1,1,1,1]"},
	{"argmax", "in=fx8.3[1,4,20,20] out=int32[1,40,1,1] topk=40"},
	{"permute", "in=fx8.3[1,4,20,20] out=fx8.3[1,20,4,20] perm=2,0,1"},
	{"concat", "in=fx8.3[1,4,20,20] in=fx8.3[1,4,20,20] out=fx8.3[1,8,20,20] axis=c"},
	{"pad2d", "in=fx8.3[1,4,20,20] out=fx8.3[1,4,22,22] padding=1,1,1,1"},
};

static void begin_call(struct calls *c, const char *kernel)
{
	char words[WORDS_BYTES];
	for (unsigned i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
		if (words_list(calls[i][0], kernel)) {
			snprintf(words, sizeof(words), "%s", calls[i][1]);
			words_call(c, kernel, words);
			return;
		}
	ck_abort_msg("%s has no call", kernel);
}

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

static void check_case(const char *name)
{
	struct calls c;
	begin_call(&c, name);
	ck_assert_msg(c.kernel->steps, "%s does not say what it takes", name);
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
	for (unsigned i = 0; i < npumem_n_kernel_rows; i++)
		check_case(npumem_kernel_rows[i].name);
}

/* What is part of something is cancelled with it. */
TEST(with_the_whole)
{
	struct calls c;
	struct kernel_progress whole = {.cancelled = true}, part = {.piece = PIECE, .whole = &whole};
	begin_call(&c, "relu");
	c.call.progress = &part;
	calls_run(&c);
	ck_assert_int_lt(part.done, 4 * 20 * 20 * KERNEL_PARTS);
	calls_free(&c);
}
