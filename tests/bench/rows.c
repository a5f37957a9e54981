/* Speed of the kernels without weights on one core, without a daemon, beside memcpy and beside themselves with the
 * scalar instructions: bench_rows [part of a case's name [type]].
 *
 * Operands of 1 MiB lie planar on 16 lanes where the kernel's row takes them by feature, dense elsewhere. Bytes
 * are those read and written once. All three are measured in turns; the ratios are of the shortest times. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "daemon/device/operations/kernel.h"

enum { ROUNDS = 7, ROLES = 4, LANES = 16, LANE_GAP = 2176, FXN = 0, MIB = 1 << 20 };

struct tensor {
	const char *role;
	int dtype; /* FXN: the type of the run */
	int frac_bits;
	int64_t n, c, h, w; /* h: for elements of one byte; halved where they have two. 0: as it is for scalars */
};

struct bench_case {
	const char *name;
	int kernel;
	struct tensor tensors[ROLES];
	struct npumem_param params[3];
	int only; /* bytes of the run's type; 0: both */
};

#define IMAGE(role, frac_bits)                                                                                    \
	{                                                                                                         \
		role, FXN, frac_bits, 1, 64, 128, 128                                                             \
	}
#define ONE(role, frac_bits)                                                                                      \
	{                                                                                                         \
		role, FXN, frac_bits, 1, 1, 1, 1                                                                  \
	}
#define TYPED(role, dtype, frac_bits)                                                                             \
	{                                                                                                         \
		role, dtype, frac_bits, 1, 64, 128, 128                                                           \
	}
#define P1(name, a)                                                                                               \
	{                                                                                                         \
		NPUMEM_PARAM_##name, 1,                                                                           \
		{                                                                                                 \
			a                                                                                         \
		}                                                                                                 \
	}
#define P2(name, a, b)                                                                                            \
	{                                                                                                         \
		NPUMEM_PARAM_##name, 2,                                                                           \
		{                                                                                                 \
			a, b                                                                                      \
		}                                                                                                 \
	}
#define P4(name, a, b, c, d)                                                                                      \
	{                                                                                                         \
		NPUMEM_PARAM_##name, 4,                                                                           \
		{                                                                                                 \
			a, b, c, d                                                                                \
		}                                                                                                 \
	}
#define POOL(k, s, p)                                                                                             \
	{                                                                                                         \
		P2(KERNEL, k, k), P2(STRIDE, s, s), P4(PADDING, p, p, p, p)                                       \
	}

static const struct bench_case cases[] = {
	{"relu", NPUMEM_KERNEL_RELU, {IMAGE("in", 7), IMAGE("out", 7)}, {P1(RELU, 2)}, 0},
	{"leaky_relu",
	 NPUMEM_KERNEL_LEAKY_RELU,
	 {IMAGE("in", 7), ONE("slope", 7), IMAGE("out", 7)},
	 {P1(RELU, 0)},
	 0},
	{"prelu c",
	 NPUMEM_KERNEL_PRELU,
	 {IMAGE("in", 7), {"slope", FXN, 7, 1, 64, 1, 1}, IMAGE("out", 7)},
	 {P1(AXIS, 3)},
	 0},
	{"prelu w",
	 NPUMEM_KERNEL_PRELU,
	 {IMAGE("in", 7), {"slope", FXN, 7, 1, 1, 1, 128}, IMAGE("out", 7)},
	 {P1(AXIS, 5)},
	 0},
	{"eltwise_add",
	 NPUMEM_KERNEL_ELTWISE_ADD,
	 {IMAGE("in1", 7), IMAGE("in2", 6), IMAGE("out", 5)},
	 {P1(RELU, 0)},
	 0},
	{"eltwise_sub",
	 NPUMEM_KERNEL_ELTWISE_SUB,
	 {IMAGE("in1", 7), IMAGE("in2", 6), IMAGE("out", 5)},
	 {P1(RELU, 0)},
	 0},
	{"eltwise_mul",
	 NPUMEM_KERNEL_ELTWISE_MUL,
	 {IMAGE("in1", 7), IMAGE("in2", 7), IMAGE("out", 7)},
	 {P1(RELU, 0)},
	 0},
	{"eltwise_max",
	 NPUMEM_KERNEL_ELTWISE_MAX,
	 {IMAGE("in1", 7), IMAGE("in2", 7), IMAGE("out", 7)},
	 {P1(RELU, 0)},
	 0},
	{"eltwise_min 1",
	 NPUMEM_KERNEL_ELTWISE_MIN,
	 {IMAGE("in1", 7), ONE("in2", 7), IMAGE("out", 7)},
	 {P1(RELU, 0)},
	 0},
	{"eltwise_div",
	 NPUMEM_KERNEL_ELTWISE_DIV,
	 {IMAGE("in1", 7), IMAGE("in2", 7), IMAGE("out", 7)},
	 {P1(RELU, 0)},
	 0},
	{"mac",
	 NPUMEM_KERNEL_MAC,
	 {IMAGE("in1", 7), IMAGE("in2", 7), IMAGE("acc", 7), IMAGE("out", 7)},
	 {P1(RELU, 0)},
	 0},
	{"sigmoid", NPUMEM_KERNEL_SIGMOID, {IMAGE("in", 4), IMAGE("out", -1)}, {P1(LUT, 0)}, 0},
	{"sigmoid Q.12", NPUMEM_KERNEL_SIGMOID, {IMAGE("in", 12), IMAGE("out", -1)}, {P1(LUT, 0)}, 0},
	{"tanh Q.12", NPUMEM_KERNEL_TANH, {IMAGE("in", 12), IMAGE("out", -1)}, {P1(LUT, 0)}, 0},
	{"softmax", NPUMEM_KERNEL_SOFTMAX, {IMAGE("in", 4), IMAGE("out", -1)}, {P1(LUT, 0)}, 0},
	{"softmax c", NPUMEM_KERNEL_SOFTMAX, {IMAGE("in", 4), IMAGE("out", -1)}, {P1(AXIS, 3)}, 0},
	{"softmax w", NPUMEM_KERNEL_SOFTMAX, {IMAGE("in", 12), IMAGE("out", -1)}, {P1(AXIS, 5)}, 0},
	{"l2_normalize", NPUMEM_KERNEL_L2_NORMALIZE, {IMAGE("in", 12), IMAGE("out", -1)}, {P1(LUT, 0)}, 2},
	{"l2_normalize c", NPUMEM_KERNEL_L2_NORMALIZE, {IMAGE("in", 12), IMAGE("out", -1)}, {P1(AXIS, 3)}, 2},
	{"maxpool 2x2 s2",
	 NPUMEM_KERNEL_MAXPOOL,
	 {IMAGE("in", 7), {"out", FXN, 7, 1, 64, 64, 64}},
	 POOL(2, 2, 0),
	 0},
	{"maxpool 3x3 s2",
	 NPUMEM_KERNEL_MAXPOOL,
	 {IMAGE("in", 7), {"out", FXN, 7, 1, 64, 64, 64}},
	 {P2(KERNEL, 3, 3), P2(STRIDE, 2, 2), P4(PADDING, 1, 1, 1, 1)},
	 0},
	{"maxpool 3x3 s1",
	 NPUMEM_KERNEL_MAXPOOL,
	 {IMAGE("in", 7), {"out", FXN, 7, 1, 64, 128, 128}},
	 POOL(3, 1, 1),
	 0},
	{"avepool 2x2 s2",
	 NPUMEM_KERNEL_AVEPOOL,
	 {IMAGE("in", 7), {"out", FXN, 7, 1, 64, 64, 64}},
	 POOL(2, 2, 0),
	 0},
	{"avepool 3x3 s1",
	 NPUMEM_KERNEL_AVEPOOL,
	 {IMAGE("in", 7), {"out", FXN, 7, 1, 64, 128, 128}},
	 POOL(3, 1, 1),
	 0},
	{"avepool 7x7",
	 NPUMEM_KERNEL_AVEPOOL,
	 {{"in", FXN, 7, 1, 16384, 7, 7}, {"out", FXN, 7, 1, 16384, 1, 1}},
	 {P2(KERNEL, 7, 7), P2(STRIDE, 7, 7), P4(PADDING, 0, 0, 0, 0)},
	 0},
	{"convert fx to fx", NPUMEM_KERNEL_CONVERT_TENSOR, {IMAGE("in", 7), IMAGE("out", 5)}, {P1(RELU, 0)}, 0},
	{"convert to fx8",
	 NPUMEM_KERNEL_CONVERT_TENSOR,
	 {IMAGE("in", 12), TYPED("out", NPUMEM_FX8, 5)},
	 {P1(RELU, 0)},
	 2},
	{"convert to fp32",
	 NPUMEM_KERNEL_CONVERT_TENSOR,
	 {IMAGE("in", 7), TYPED("out", NPUMEM_FP32, 0)},
	 {P1(RELU, 0)},
	 0},
	{"convert from fp32",
	 NPUMEM_KERNEL_CONVERT_TENSOR,
	 {TYPED("in", NPUMEM_FP32, 0), IMAGE("out", 5)},
	 {P1(RELU, 0)},
	 0},
	{"convert from int32",
	 NPUMEM_KERNEL_CONVERT_TENSOR,
	 {TYPED("in", NPUMEM_INT32, 0), IMAGE("out", 0)},
	 {P1(RELU, 0)},
	 0},
	{"reduce_sum all", NPUMEM_KERNEL_REDUCE_SUM, {IMAGE("in", 7), ONE("out", 0)}, {P1(AXES, 0)}, 0},
	{"reduce_sum c",
	 NPUMEM_KERNEL_REDUCE_SUM,
	 {IMAGE("in", 7), {"out", FXN, 0, 1, 1, 128, 128}},
	 {P1(AXES, 2)},
	 0},
	{"reduce_sum hw",
	 NPUMEM_KERNEL_REDUCE_SUM,
	 {IMAGE("in", 7), {"out", FXN, 0, 1, 64, 1, 1}},
	 {P2(AXES, 3, 4)},
	 0},
	{"reduce_max w",
	 NPUMEM_KERNEL_REDUCE_MAX,
	 {IMAGE("in", 7), {"out", FXN, 7, 1, 64, 128, 1}},
	 {P1(AXES, 4)},
	 0},
	{"reduce_max c",
	 NPUMEM_KERNEL_REDUCE_MAX,
	 {IMAGE("in", 7), {"out", FXN, 7, 1, 1, 128, 128}},
	 {P1(AXES, 2)},
	 0},
	{"argmax", NPUMEM_KERNEL_ARGMAX, {IMAGE("in", 7), {"out", NPUMEM_INT32, 0, 1, 1, 1, 1}}, {P1(TOPK, 1)}, 0},
	{"argmax top 5",
	 NPUMEM_KERNEL_ARGMAX,
	 {IMAGE("in", 7), {"out", NPUMEM_INT32, 0, 1, 5, 1, 1}},
	 {P1(TOPK, 5)},
	 0},
	{"permute to n,h,w,c",
	 NPUMEM_KERNEL_PERMUTE,
	 {IMAGE("in", 7), {"out", FXN, 7, 1, 128, 128, 64}},
	 {P4(PERM, 0, 2, 3, 1)},
	 0},
	{"permute w,h",
	 NPUMEM_KERNEL_PERMUTE,
	 {IMAGE("in", 7), {"out", FXN, 7, 1, 64, 128, 128}},
	 {P4(PERM, 0, 1, 3, 2)},
	 0},
	{"permute h,c,w",
	 NPUMEM_KERNEL_PERMUTE,
	 {IMAGE("in", 7), {"out", FXN, 7, 1, 128, 64, 128}},
	 {P4(PERM, 0, 2, 1, 3)},
	 0},
	{"concat c", NPUMEM_KERNEL_CONCAT, {IMAGE("in", 7), {"out", FXN, 7, 1, 64, 128, 128}}, {P1(AXIS, 3)}, 0},
	{"pad2d",
	 NPUMEM_KERNEL_PAD2D,
	 {IMAGE("in", 7), {"out", FXN, 7, 1, 64, 130, 130}},
	 {P4(PADDING, 1, 1, 1, 1)},
	 0},
	{"packed_add",
	 NPUMEM_KERNEL_PACKED_ADD,
	 {TYPED("in1", NPUMEM_INT8, 0), TYPED("in2", NPUMEM_UINT8, 0), TYPED("out", NPUMEM_INT8, 0)},
	 {P1(RSHIFT, 1)},
	 1},
	{"packed_mul",
	 NPUMEM_KERNEL_PACKED_MUL,
	 {TYPED("in1", NPUMEM_INT8, 0), TYPED("in2", NPUMEM_UINT8, 0), TYPED("out", NPUMEM_INT16, 0)},
	 {P1(RSHIFT, 1)},
	 1},
	{"packed_mac",
	 NPUMEM_KERNEL_PACKED_MAC,
	 {TYPED("in1", NPUMEM_INT8, 0), TYPED("in2", NPUMEM_UINT8, 0), TYPED("acc", NPUMEM_INT16, 0),
	  TYPED("out", NPUMEM_INT16, 0)},
	 {P1(RSHIFT, 1), P1(LSHIFT, 1)},
	 1},
	{"packed_max",
	 NPUMEM_KERNEL_PACKED_MAX,
	 {TYPED("in1", NPUMEM_UINT16, 0), TYPED("in2", NPUMEM_UINT16, 0), TYPED("out", NPUMEM_UINT16, 0)},
	 {P1(VALUE, 0)},
	 2},
	{"packed_shift",
	 NPUMEM_KERNEL_PACKED_ARITHMETIC_SHIFT,
	 {TYPED("in1", NPUMEM_INT16, 0), TYPED("in2", NPUMEM_INT16, 0), TYPED("out", NPUMEM_INT16, 0)},
	 {P1(VALUE, 0)},
	 2},
	{"packed_add_c",
	 NPUMEM_KERNEL_PACKED_ADD_C,
	 {TYPED("in1", NPUMEM_INT8, 0), TYPED("out", NPUMEM_INT8, 0)},
	 {P1(VALUE, 3)},
	 1},
};

struct bench {
	struct kernel_operand operands[ROLES];
	void *memory[ROLES];
	struct kernel_role roles[ROLES];
	struct kernel_call call;
	const struct kernel *kernel;
	int64_t bytes;
};

static void *take(size_t bytes)
{
	void *memory = aligned_alloc(4096, (bytes / 4096 + 1) * 4096);
	if (!memory)
		abort();
	return memory;
}

static int64_t place(struct kernel_operand *operand, bool by_feature, void **memory)
{
	const struct npumem_dims *s = &operand->shape;
	int64_t feature = s->h * s->w * npumem_dtype_bytes(operand->dtype), rows = (s->c + LANES - 1) / LANES;
	int64_t pitch = s->n * rows * feature + LANE_GAP,
		bytes = by_feature ? pitch * LANES : s->n * s->c * feature;
	*memory = take((size_t)bytes);
	for (int64_t i = 0; i < bytes; i++)
		((uint8_t *)*memory)[i] = (uint8_t)rand();
	for (int64_t i = 0; operand->dtype == NPUMEM_FP32 && i < bytes / 4; i++)
		((float *)*memory)[i] = (float)(rand() % 100000) / 30000 - 1;
	kernel_operand_dense(operand, *memory);
	if (by_feature) {
		operand->data = NULL;
		operand->features = (struct kernel_features){*memory, rows * feature, feature, pitch, 0, LANES};
	}
	return s->n * s->c * feature;
}

static void bench_init(struct bench *b, const struct bench_case *c, int dtype)
{
	unsigned bytes = npumem_dtype_bytes(dtype);
	*b = (struct bench){.kernel = kernel_by_number(c->kernel)};
	b->call.row = npumem_kernel_by_number(c->kernel);
	b->call.rounding = NPUMEM_CONVERGENT;
	for (const char *role = b->call.row->roles; *role; role += strcspn(role, " "), role += strspn(role, " ")) {
		const struct tensor *t = c->tensors;
		size_t length = strcspn(role + (*role == '>'), " ?*");
		unsigned i = b->call.n_roles++;
		while (strlen(t->role) != length || strncmp(t->role, role + (*role == '>'), length) != 0)
			t++;
		int64_t channels =
			t->c % (int64_t)bytes == 0 && t->c * t->h * t->w > 256 && t->dtype != NPUMEM_INT32
				? t->c / bytes
				: t->c;
		if (c->kernel == NPUMEM_KERNEL_PERMUTE && bytes == 2)
			channels = t->c;
		b->operands[i] =
			(struct kernel_operand){.dtype = t->dtype ? t->dtype : dtype,
						.frac_bits = t->frac_bits < 0 ? 8 * (int)bytes - 1 : t->frac_bits,
						.shape = {t->n, channels, t->h, t->w}};
		if (t->dtype == NPUMEM_INT32 && t->c == 64)
			b->operands[i].shape.c = 64 / bytes;
		if (t->c == 64 && t->h == 1 && bytes == 2)
			b->operands[i].shape.c = 32;
		bool feature = b->kernel->by_feature >> i & 1 && t->h * t->w * bytes >= 32;
		b->bytes += place(&b->operands[i], feature, &b->memory[i]);
		b->roles[i] = (struct kernel_role){t->role, 1, &b->operands[i]};
	}
	b->call.roles = b->roles;
	for (unsigned i = 0; i < 3; i++)
		if (c->params[i].n_values && (c->params[i].values[0] || c->params[i].n_values > 1))
			b->call.params.given[c->params[i].number] = c->params[i];
	struct npumem_error error;
	npumem_error_clear(&error);
	if (b->kernel->check(&b->call, &error) != 0) {
		fprintf(stderr, "%s: %s\n", c->name, error.message);
		exit(1);
	}
}

static double now(void)
{
	struct timespec time;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
	return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static double run(struct bench *b, enum isa isa, int repeats)
{
	_Alignas(16) uint8_t plan[KERNEL_PLAN_BYTES];
	b->call.isa = isa;
	b->call.plan = plan;
	if (b->kernel->plan)
		b->kernel->plan(&b->call);
	free(b->call.scratch);
	b->call.scratch = take(b->kernel->scratch_bytes ? b->kernel->scratch_bytes(&b->call) : 0);
	double start = now();
	for (int i = 0; i < repeats; i++)
		b->kernel->run(&b->call);
	return (now() - start) / repeats;
}

static void measure(struct bench *b, const char *name, const char *type)
{
	static uint8_t from[MIB] __attribute__((aligned(4096))), to[MIB] __attribute__((aligned(4096)));
	double best = 1, scalar = 1, copy = 1;
	for (int round = 0; round < ROUNDS; round++) {
		double time = run(b, isa_best(), 8);
		best = time < best ? time : best;
		if (round < 2) {
			time = run(b, ISA_SCALAR, 1);
			scalar = time < scalar ? time : scalar;
		}
		time = now();
		for (int i = 0; i < 16; i++) {
			memcpy(to, from, MIB);
			__asm__ volatile("" : : "r"(to) : "memory");
		}
		time = (now() - time) / 16;
		copy = time < copy ? time : copy;
	}
	double rate = (double)b->bytes / best * 1e-9, memory = 2.0 * MIB / copy * 1e-9;
	printf("%-20s %-5s %8.1f %8.2f %8.1f\n", name, type, rate, rate / memory, scalar / best);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	isa_permit_tiles();
	printf("%-20s %-5s %8s %8s %8s\n", "case", "type", "GB/s", "x memcpy", "x scalar");
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		if (argc > 1 && !strstr(cases[i].name, argv[1]))
			continue;
		for (int bytes = 1; bytes <= 2; bytes++) {
			const char *type = bytes == 1 ? "fx8" : "fx16";
			struct bench b;
			if ((cases[i].only && cases[i].only != bytes) || (argc > 2 && strcmp(type, argv[2]) != 0))
				continue;
			bench_init(&b, &cases[i], bytes == 1 ? NPUMEM_FX8 : NPUMEM_FX16);
			measure(&b, cases[i].name, type);
			for (unsigned r = 0; r < ROLES; r++)
				free(b.memory[r]);
			free(b.call.scratch);
		}
	}
	return 0;
}
