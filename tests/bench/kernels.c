/* Speed of the kernels with weights on one core, without a daemon: operands are dense, as the device gathers them.
 *
 * Every case is measured in turns with a reference, plain loops over every output and tap, and told as GMAC/s and
 * as the ratio of the two, which another load on the machine changes less. MACs are nominal: padded taps count.
 * The first six cases are those that other libraries were measured with; the rest are shapes with short rows, few
 * channels, one point, and transposed ones. Arguments: a part of the cases' name, a type, an instruction set. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "daemon/device/operations/kernel.h"

enum { ROUNDS = 5 };
enum { IN, WEIGHTS, BIAS, OUT, N_ROLES };

struct shape {
	const char *name;
	int kernel;
	int64_t n, c, h, w, o, k, stride, padding, groups;
};

static const struct shape shapes[] = {
	{"a conv 3x3 56x56x64->64", NPUMEM_KERNEL_CONV2D, 1, 64, 56, 56, 64, 3, 1, 1, 1},
	{"b conv 1x1 28x28 256->256", NPUMEM_KERNEL_CONV2D, 1, 256, 28, 28, 256, 1, 1, 0, 1},
	{"c depthwise 3x3 112x112x32", NPUMEM_KERNEL_DEPTHWISE_CONV2D, 1, 32, 112, 112, 32, 3, 1, 1, 32},
	{"d1 fully connected 1024->1000", NPUMEM_KERNEL_FULLY_CONNECTED, 1, 1024, 1, 1, 1000, 1, 1, 0, 1},
	{"d16 the same, batch 16", NPUMEM_KERNEL_FULLY_CONNECTED, 16, 1024, 1, 1, 1000, 1, 1, 0, 1},
	{"e conv 3x3 7x7 512->512", NPUMEM_KERNEL_CONV2D, 1, 512, 7, 7, 512, 3, 1, 1, 1},
	{"first 3x3 s2 224x224x3->32", NPUMEM_KERNEL_CONV2D, 1, 3, 224, 224, 32, 3, 2, 1, 1},
	{"first 7x7 s2 224x224x3->64", NPUMEM_KERNEL_CONV2D, 1, 3, 224, 224, 64, 7, 2, 3, 1},
	{"conv 5x5 28x28 1->6", NPUMEM_KERNEL_CONV2D, 1, 1, 28, 28, 6, 5, 1, 2, 1},
	{"conv 3x3 s2 56x56x64->128", NPUMEM_KERNEL_CONV2D, 1, 64, 56, 56, 128, 3, 2, 1, 1},
	{"conv 1x1 7x7 512->2048", NPUMEM_KERNEL_CONV2D, 1, 512, 7, 7, 2048, 1, 1, 0, 1},
	{"conv 1x1 56x56 64->8", NPUMEM_KERNEL_CONV2D, 1, 64, 56, 56, 8, 1, 1, 0, 1},
	{"conv 1x1 56x56 24->4", NPUMEM_KERNEL_CONV2D, 1, 24, 56, 56, 4, 1, 1, 0, 1},
	{"conv 1x1 1x1 256->64", NPUMEM_KERNEL_CONV2D, 1, 256, 1, 1, 64, 1, 1, 0, 1},
	{"conv 3x3 4x4 256->256", NPUMEM_KERNEL_CONV2D, 1, 256, 4, 4, 256, 3, 1, 1, 1},
	{"conv 3x3 14x14 256->1", NPUMEM_KERNEL_CONV2D, 1, 256, 14, 14, 1, 3, 1, 1, 1},
	{"group 32 3x3 14x14 256->256", NPUMEM_KERNEL_GROUP_CONV2D, 1, 256, 14, 14, 256, 3, 1, 1, 32},
	{"group 32 3x3 56x56 128->128", NPUMEM_KERNEL_GROUP_CONV2D, 1, 128, 56, 56, 128, 3, 1, 1, 32},
	{"depthwise 3x3 s2 112x112x64", NPUMEM_KERNEL_DEPTHWISE_CONV2D, 1, 64, 112, 112, 64, 3, 2, 1, 64},
	{"depthwise 3x3 14x14x512", NPUMEM_KERNEL_DEPTHWISE_CONV2D, 1, 512, 14, 14, 512, 3, 1, 1, 512},
	{"depthwise 3x3 7x7x1024", NPUMEM_KERNEL_DEPTHWISE_CONV2D, 1, 1024, 7, 7, 1024, 3, 1, 1, 1024},
	{"depthwise 5x5 14x14x240", NPUMEM_KERNEL_DEPTHWISE_CONV2D, 1, 240, 14, 14, 240, 5, 1, 2, 240},
	{"fully connected 4096->4096", NPUMEM_KERNEL_FULLY_CONNECTED, 1, 4096, 1, 1, 4096, 1, 1, 0, 1},
	{"fully connected 512->10", NPUMEM_KERNEL_FULLY_CONNECTED, 1, 512, 1, 1, 10, 1, 1, 0, 1},
	{"transposed 4x4 s2 28x28 64->32", NPUMEM_KERNEL_TRANSPOSE_CONV2D, 1, 64, 28, 28, 32, 4, 2, 1, 1},
	{"transposed 2x2 s2 28x28 128->64", NPUMEM_KERNEL_TRANSPOSE_CONV2D, 1, 128, 28, 28, 64, 2, 2, 0, 1},
};

static const struct {
	const char *name;
	int data, weights;
} types[] = {
	{"fx8", NPUMEM_FX8, NPUMEM_FX8}, {"fx16", NPUMEM_FX16, NPUMEM_FX16}, {"fx16w8", NPUMEM_FX16, NPUMEM_FX8}};

struct bench {
	const struct shape *shape;
	const struct kernel *kernel;
	struct kernel_operand operands[N_ROLES];
	struct kernel_role roles[N_ROLES];
	struct kernel_call call;
	void *pack; /* of the weights, as it is kept between runs */
	int64_t h_out, w_out;
	int64_t macs;
};

static void *take(size_t bytes)
{
	void *memory = aligned_alloc(64, (bytes / 64 + 1) * 64);
	if (!memory)
		abort();
	return memory;
}

static void add(struct bench *b, unsigned role, const char *name, int dtype, int64_t frac_bits, int64_t n,
		int64_t c, int64_t h, int64_t w)
{
	struct kernel_operand *operand = &b->operands[role];
	*operand = (struct kernel_operand){dtype, frac_bits, {n, c, h, w}, NULL, {.base = NULL}};
	size_t bytes = (size_t)(n * c * h * w) * npumem_dtype_bytes(dtype);
	kernel_operand_dense(operand, take(bytes));
	for (size_t i = 0; i < bytes; i++)
		((uint8_t *)operand->data)[i] = (uint8_t)rand();
	b->roles[role] = (struct kernel_role){name, 1, operand};
}

static void param(struct bench *b, int number, unsigned n, int64_t value)
{
	b->call.params.given[number] = (struct npumem_param){number, n, {value, value, value, value}};
}

static void bench_init(struct bench *b, const struct shape *s, int data, int weights, enum isa isa)
{
	bool transposed = s->kernel == NPUMEM_KERNEL_TRANSPOSE_CONV2D;
	*b = (struct bench){.shape = s, .kernel = kernel_by_number(s->kernel)};
	int64_t pads = s->k - 2 * s->padding;
	b->h_out = transposed ? (s->h - 1) * s->stride + pads : (s->h - pads) / s->stride + 1;
	b->w_out = transposed ? (s->w - 1) * s->stride + pads : (s->w - pads) / s->stride + 1;
	b->macs = s->n * s->o * s->c / s->groups * s->k * s->k;
	b->macs *= transposed ? s->h * s->w : b->h_out * b->w_out;
	add(b, IN, "in", data, 7, s->n, s->c, s->h, s->w);
	add(b, WEIGHTS, "weights", weights, 7, s->c / s->groups, s->o, s->k, s->k);
	add(b, BIAS, "bias", weights, 7, 1, s->o, 1, 1);
	add(b, OUT, "out", data, 3, s->n, s->o, b->h_out, b->w_out);
	b->call.row = npumem_kernel_by_number(s->kernel);
	b->call.roles = b->roles;
	b->call.n_roles = N_ROLES;
	b->call.rounding = NPUMEM_CONVERGENT;
	b->call.isa = isa;
	if (s->kernel != NPUMEM_KERNEL_FULLY_CONNECTED) {
		param(b, NPUMEM_PARAM_STRIDE, 2, s->stride);
		param(b, NPUMEM_PARAM_PADDING, 4, s->padding);
	}
	if (s->kernel == NPUMEM_KERNEL_GROUP_CONV2D)
		param(b, NPUMEM_PARAM_GROUPS, 1, s->groups);
	struct npumem_error error;
	npumem_error_clear(&error);
	if (b->kernel->check(&b->call, &error) != 0) {
		fprintf(stderr, "%s: %s\n", s->name, error.message);
		exit(1);
	}
	b->call.scratch = take(b->kernel->scratch_bytes(&b->call));
	size_t bytes = b->kernel->pack_bytes ? b->kernel->pack_bytes(&b->call) : 0;
	if (bytes) {
		b->pack = take(bytes);
		b->kernel->pack(&b->call, b->pack);
		b->call.pack = b->pack;
	}
}

static void bench_deinit(struct bench *b)
{
	for (unsigned role = 0; role < N_ROLES; role++)
		free(b->operands[role].data);
	free(b->call.scratch);
	free(b->pack);
}

static double now(void)
{
	struct timespec time;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
	return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

/* One output, tap by tap: what a first version of any of these kernels looks like. */
#define REFERENCE(name, data_type, weight_type, sum_type)                                                         \
	static sum_type name(const struct bench *b, int64_t n, int64_t o, int64_t y, int64_t x)                   \
	{                                                                                                         \
		const struct shape *s = b->shape;                                                                 \
		const data_type *in = b->operands[IN].data;                                                       \
		const weight_type *weights = b->operands[WEIGHTS].data;                                           \
		int64_t channels = s->c / s->groups, first = o / (s->o / s->groups) * channels;                   \
		sum_type sum = 0;                                                                                 \
		for (int64_t i = 0; i < channels; i++)                                                            \
			for (int64_t ky = 0; ky < s->k; ky++) {                                                   \
				int64_t iy = y * s->stride + ky - s->padding;                                     \
				if (iy < 0 || iy >= s->h)                                                         \
					continue;                                                                 \
				for (int64_t kx = 0; kx < s->k; kx++) {                                           \
					int64_t ix = x * s->stride + kx - s->padding;                             \
					if (ix < 0 || ix >= s->w)                                                 \
						continue;                                                         \
					sum += (sum_type)in[((n * s->c + first + i) * s->h + iy) * s->w + ix] *   \
					       weights[((i * s->o + o) * s->k + ky) * s->k + kx];                 \
				}                                                                                 \
			}                                                                                         \
		return sum;                                                                                       \
	}
REFERENCE(reference_8, int8_t, int8_t, int32_t)
REFERENCE(reference_16, int16_t, int16_t, int64_t)
REFERENCE(reference_16w8, int16_t, int8_t, int64_t)

/* For transposed shapes: an ordinary convolution of as many taps and inputs, one output per input. */
static int64_t reference(const struct bench *b)
{
	bool transposed = b->shape->kernel == NPUMEM_KERNEL_TRANSPOSE_CONV2D;
	int64_t h = transposed ? b->shape->h : b->h_out, w = transposed ? b->shape->w : b->w_out, total = 0;
	for (int64_t n = 0; n < b->shape->n; n++)
		for (int64_t o = 0; o < b->shape->o; o++)
			for (int64_t y = 0; y < h; y++)
				for (int64_t x = 0; x < w; x++)
					if (b->operands[IN].dtype == NPUMEM_FX8)
						total += reference_8(b, n, o, y, x);
					else if (b->operands[WEIGHTS].dtype == NPUMEM_FX16)
						total += reference_16(b, n, o, y, x);
					else
						total += reference_16w8(b, n, o, y, x);
	return total;
}

/* The shortest time of one run in seconds; short ones are repeated. */
static void measure(struct bench *b, double *kernel, double *plain)
{
	int64_t repeats = 1 + 20000000 / b->macs, ignored = 0;
	*kernel = *plain = 1e9;
	for (int round = 0; round < ROUNDS; round++) {
		double start = now();
		for (int64_t i = 0; i < repeats; i++)
			b->kernel->run(&b->call);
		double time = (now() - start) / (double)repeats;
		*kernel = time < *kernel ? time : *kernel;
		if (round > 1)
			continue;
		start = now();
		ignored += reference(b);
		time = now() - start;
		*plain = time < *plain ? time : *plain;
	}
	if (ignored == 1)
		putchar('\n'); /* so that the reference is not left out */
}

int main(int argc, char **argv)
{
	enum isa isa = argc > 3 ? isa_parse(argv[3]) : isa_best();
	printf("%-32s %-7s %8s %10s %6s\n", "case", "type", "GMAC/s", "reference", "ratio");
	for (size_t s = 0; s < sizeof(shapes) / sizeof(shapes[0]); s++) {
		if (argc > 1 && !strstr(shapes[s].name, argv[1]))
			continue;
		for (unsigned t = 0; t < 3; t++) {
			struct bench b;
			double kernel, plain;
			if (argc > 2 && strcmp(types[t].name, argv[2]) != 0)
				continue;
			bench_init(&b, &shapes[s], types[t].data, types[t].weights, isa);
			measure(&b, &kernel, &plain);
			printf("%-32s %-7s %8.2f %10.2f %6.1f\n", shapes[s].name, types[t].name,
			       (double)b.macs / kernel * 1e-9, (double)b.macs / plain * 1e-9, plain / kernel);
			fflush(stdout);
			bench_deinit(&b);
		}
	}
	return 0;
}
