/* Kernels without large products, and those whose arithmetic is by table or step by step: a row each, on tensors
 * of the size that a network's first layers have. Bytes are those of all operands once, as memcpy's are those that
 * it reads and writes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/bench/kernels/cases.h"

#define MAP8 "[1,64,112,112]"
#define MAP16 "[1,64,56,112]"
#define PACKED8 "int8/-1[4,64,56,56]:4n"
#define PACKED16 "int16/-1[2,64,56,56]:2n"
#define PACKED32 "int16/-1[4,64,56,56]:2n"

static const struct {
	const char *name, *call;
	/* Products, divisions, tables and windows, whose goal is a multiple of the plain loop; else that of memory
	 * holds. */
	bool arithmetic;
} rows[] = {
	{"fx8 maxpool 3x3 stride 2",
	 "maxpool in=fx8/4[1,64,112,112] out=fx8/4[1,64,56,56] kernel=3,3 stride=2,2 padding=0,1,0,1", true},
	{"fx8 maxpool 2x2 stride 2", "maxpool in=fx8/4[1,64,112,112] out=fx8/4[1,64,56,56] kernel=2,2 stride=2,2",
	 true},
	{"fx16 maxpool 3x3 stride 1", "maxpool in=fx16/4" MAP16 " out=fx16/4" MAP16 " kernel=3,3 padding=1,1,1,1",
	 true},
	{"fx8 avepool 3x3 stride 2",
	 "avepool in=fx8/4[1,64,112,112] out=fx8/4[1,64,56,56] kernel=3,3 stride=2,2 padding=0,1,0,1", true},
	{"fx8 avepool 7x7 of 7x7", "avepool in=fx8/4[1,2048,7,7] out=fx8/4[1,2048,1,1] kernel=7,7", true},
	{"fx8 relu", "relu in=fx8/4" MAP8 " out=fx8/4" MAP8 " relu=gen", false},
	{"fx16 relu 6", "relu in=fx16/8" MAP16 " out=fx16/8" MAP16 " relu=6", false},
	{"fx8 leaky_relu", "leaky_relu in=fx8/4" MAP8 " slope=fx8/7[1,1,1,1] out=fx8/4" MAP8, true},
	{"fx16 prelu", "prelu in=fx16/8" MAP16 " slope=fx16/15[1,64,1,1] out=fx16/8" MAP16 " axis=c", true},
	{"fx8 eltwise_add", "eltwise_add in1=fx8/4" MAP8 " in2=fx8/5" MAP8 " out=fx8/4" MAP8, false},
	{"fx16 eltwise_add", "eltwise_add in1=fx16/8" MAP16 " in2=fx16/8" MAP16 " out=fx16/8" MAP16, false},
	{"fx8 eltwise_sub", "eltwise_sub in1=fx8/4" MAP8 " in2=fx8/4" MAP8 " out=fx8/4" MAP8, false},
	{"fx8 eltwise_mul", "eltwise_mul in1=fx8/4" MAP8 " in2=fx8/4" MAP8 " out=fx8/4" MAP8, true},
	{"fx16 eltwise_mul", "eltwise_mul in1=fx16/8" MAP16 " in2=fx16/8" MAP16 " out=fx16/8" MAP16, true},
	{"fx8 eltwise_min", "eltwise_min in1=fx8/4" MAP8 " in2=fx8/4" MAP8 " out=fx8/4" MAP8, false},
	{"fx16 eltwise_max", "eltwise_max in1=fx16/4" MAP16 " in2=fx16/4" MAP16 " out=fx16/4" MAP16, false},
	{"fx16 eltwise_div", "eltwise_div in1=fx16/8" MAP16 " in2=fx16/8" MAP16 " out=fx16/8" MAP16, true},
	{"fx8 mac", "mac in1=fx8/4" MAP8 " in2=fx8/4" MAP8 " acc=fx8/4" MAP8 " out=fx8/4" MAP8, true},
	{"fx16 mac", "mac in1=fx16/8" MAP16 " in2=fx16/8" MAP16 " acc=fx16/8" MAP16 " out=fx16/8" MAP16, true},
	{"fx8 sigmoid", "sigmoid in=fx8/4" MAP8 " out=fx8/7" MAP8, true},
	{"fx16 sigmoid", "sigmoid in=fx16/12" MAP16 " out=fx16/15" MAP16, true},
	{"fx8 tanh", "tanh in=fx8/4" MAP8 " out=fx8/7" MAP8, true},
	{"fx16 tanh", "tanh in=fx16/12" MAP16 " out=fx16/15" MAP16, true},
	{"fx8 lut", "lut in=fx8/4" MAP8 " table=fx8/4[1,64,1,4] out=fx8/4" MAP8, true},
	{"fx16 lut of 513", "lut in=fx16/12" MAP16 " table=fx16/12[1,1,1,513] out=fx16/12" MAP16, true},
	{"fx16 lut of 65536", "lut in=fx16/12" MAP16 " table=fx16/12[1,64,1,1024] out=fx16/12" MAP16, true},
	{"fx8 softmax of all", "softmax in=fx8/4" MAP8 " out=fx8/7" MAP8, true},
	{"fx16 softmax along c", "softmax in=fx16/8" MAP16 " out=fx16/15" MAP16 " axis=c", true},
	{"fx16 softmax along w", "softmax in=fx16/8" MAP16 " out=fx16/15" MAP16 " axis=w", true},
	{"fx16 l2_normalize along c", "l2_normalize in=fx16/8" MAP16 " out=fx16/15" MAP16 " axis=c", true},
	{"convert_tensor fx8 to fx16", "convert_tensor in=fx8/4" MAP8 " out=fx16/12" MAP8, false},
	{"convert_tensor fx16 to fx8", "convert_tensor in=fx16/12" MAP8 " out=fx8/4" MAP8, false},
	{"convert_tensor fp32 to fx8", "convert_tensor in=fp32/-1" MAP8 " out=fx8/4" MAP8, false},
	{"convert_tensor fx16 to fp32", "convert_tensor in=fx16/12" MAP8 " out=fp32/-1" MAP8, false},
	{"fx8 reduce_sum along h w", "reduce_sum in=fx8/4" MAP8 " out=fx8/0[1,64,1,1] axes=h,w", false},
	{"fx16 reduce_sum along c", "reduce_sum in=fx16/8" MAP16 " out=fx16/4[1,1,56,112] axes=c", false},
	{"fx8 reduce_max along h w", "reduce_max in=fx8/4" MAP8 " out=fx8/4[1,64,1,1] axes=h,w", false},
	{"fx16 reduce_max along c", "reduce_max in=fx16/8" MAP16 " out=fx16/8[1,1,56,112] axes=c", false},
	{"fx8 argmax of all, top 5", "argmax in=fx8/4" MAP8 " out=int32/-1[1,5,1,1] topk=5", false},
	{"fx16 argmax along c", "argmax in=fx16/8" MAP16 " out=int32/-1[1,64,1,1] axis=c topk=1", false},
	{"fx8 permute to n h w c", "permute in=fx8/4" MAP8 " out=fx8/4[1,112,112,64] perm=0,2,3,1", false},
	{"fx16 permute to n c w h", "permute in=fx16/4" MAP16 " out=fx16/4[1,64,112,56] perm=0,1,3,2", false},
	{"fx8 concat along c", "concat in0=fx8/4[1,32,112,112] in1=fx8/4[1,32,112,112] out=fx8/4" MAP8 " axis=c",
	 false},
	{"fx8 pad2d", "pad2d in=fx8/4[1,64,110,110] out=fx8/4" MAP8 " padding=1,1,1,1", false},
	{"fx8 matmul 256x256x256",
	 "matmul left=fx8/7[256,256,1,1] right=fx8/7[256,256,1,1] out=fx8/3[256,256,1,1]", true},
	{"fx16 rnn_dense 256->256",
	 "rnn_dense in0=fx16/12[1,256,1,1] weights0=fx16/12[256,256,1,1]:compact bias=fx16/12[1,256,1,1] "
	 "out=fx16/8[1,256,1,1]",
	 true},
	{"fx16 lstm_cell 64, 8 steps",
	 "lstm_cell in=fx16/12[8,64,1,1] prev_out=fx16/15[1,64,1,1] weights_in=fx16/12[4,64,1,64] "
	 "weights_out=fx16/12[4,64,1,64] bias=fx16/12[4,64,1,1] cell_in=fx16/12[1,64,1,1] out=fx16/15[8,64,1,1] "
	 "cell_out=fx16/12[1,64,1,1] act=tanh",
	 true},
	{"fx16 gru_cell 64, 8 steps",
	 "gru_cell in=fx16/12[8,64,1,1] prev_out=fx16/15[1,64,1,1] weights_in=fx16/12[3,64,1,64] "
	 "weights_out=fx16/12[3,64,1,64] bias=fx16/12[3,64,1,1] out=fx16/15[8,64,1,1]",
	 true},
	{"fx16 basic_rnn_cell 64, 8 steps",
	 "basic_rnn_cell in=fx16/12[8,64,1,1] prev_out=fx16/12[1,64,1,1] weights=fx16/12[1,64,1,128] "
	 "bias=fx16/12[1,64,1,1] out=fx16/12[8,64,1,1] act=none",
	 true},
	{"packed_add int8 4n", "packed_add in1=" PACKED8 " in2=" PACKED8 " out=" PACKED8, false},
	{"packed_sub int8 4n", "packed_sub in1=" PACKED8 " in2=" PACKED8 " out=" PACKED8, false},
	{"packed_mul int8 4n", "packed_mul in1=" PACKED8 " in2=" PACKED8 " out=" PACKED8 " rshift=4", true},
	{"packed_mac int8 4n",
	 "packed_mac in1=" PACKED8 " in2=" PACKED8 " acc=" PACKED32 " out=" PACKED32 " rshift=2", true},
	{"packed_min int16 2n", "packed_min in1=" PACKED16 " in2=" PACKED16 " out=" PACKED16, false},
	{"packed_max int16 2n", "packed_max in1=" PACKED16 " in2=" PACKED16 " out=" PACKED16, false},
	{"packed_arithmetic_shift int16 2n",
	 "packed_arithmetic_shift in1=" PACKED16 " in2=int16/-1[2,64,56,56]~8:2n out=" PACKED16, false},
	{"packed_logical_shift int16 2n",
	 "packed_logical_shift in1=" PACKED16 " in2=int16/-1[2,64,56,56]~8:2n out=" PACKED16, false},
	{"packed_add_c int8 4n", "packed_add_c in1=" PACKED8 " out=" PACKED8 " value=3", false},
	{"packed_sub_c int8 4n", "packed_sub_c in1=" PACKED8 " out=" PACKED8 " value=3", false},
	{"packed_c_sub int8 4n", "packed_c_sub in1=" PACKED8 " out=" PACKED8 " value=3", false},
	{"packed_mul_c int8 4n", "packed_mul_c in1=" PACKED8 " out=" PACKED8 " value=3", true},
	{"packed_mac_c int8 4n", "packed_mac_c in1=" PACKED8 " acc=" PACKED32 " out=" PACKED32 " value=3", true},
	{"packed_min_c int8 4n", "packed_min_c in1=" PACKED8 " out=" PACKED8 " value=3", false},
	{"packed_max_c int8 4n", "packed_max_c in1=" PACKED8 " out=" PACKED8 " value=3", false},
	{"packed_arithmetic_shift_c int16 2n",
	 "packed_arithmetic_shift_c in1=" PACKED16 " out=" PACKED16 " value=-3", false},
	{"packed_logical_shift_c int16 2n", "packed_logical_shift_c in1=" PACKED16 " out=" PACKED16 " value=-3",
	 false},
};

/* A case has one goal. Arithmetic may be at either: the one that it is nearer to. */
static void tell(struct cases *cases, const char *name, bool arithmetic, const struct bench_measured *m)
{
	enum { KERNEL, COPY, SCALAR };
	const double copy_goal = 0.5, scalar_goal = 8;
	if (bench_ratio(m, KERNEL, COPY) / copy_goal >= bench_ratio(m, KERNEL, SCALAR) / scalar_goal)
		arithmetic = false;
	bench_compare(cases->bench, name, m, KERNEL, COPY, "GB/s", 1e-9, arithmetic ? 0 : copy_goal);
	bench_compare(cases->bench, name, m, KERNEL, SCALAR, "GB/s", 1e-9, arithmetic ? scalar_goal : 0);
}

static void run(struct cases *cases, const char *name, const char *text, bool arithmetic)
{
	struct call call;
	struct inside_op inside, scalar;
	struct remote_op remote;
	struct probe_copy copy;
	struct bench_measured m;
	call_parse(&call, text);
	double bytes = call_bytes(&call);
	inside_place(&cases->inside, &call, NULL, &inside);
	remote_place(&cases->remote, &call, NULL, &remote);
	inside_place(&cases->scalar, &call, NULL, &scalar);
	probe_copy_init(&copy, (size_t)(bytes / 2));
	const struct bench_contender contenders[] = {
		{"engine", inside_run, &inside, bytes, BENCH_OWN},
		{"memcpy", probe_copy_run, &copy, bytes, BENCH_OWN},
		{"scalar loop", inside_run, &scalar, bytes, BENCH_OWN},
	};
	bench_measure(cases->bench, contenders, 3, &m);
	tell(cases, name, arithmetic, &m);
	remote_run(&remote);
	cases_same(cases, &call, &inside, &remote);
	probe_copy_deinit(&copy);
	inside_drop(&inside);
	remote_drop(&remote);
	inside_drop(&scalar);
}

void cases_others(struct cases *cases)
{
	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (bench_wanted(cases->bench, rows[i].name))
			run(cases, rows[i].name, rows[i].call, rows[i].arithmetic);
}
