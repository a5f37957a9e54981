/* Element-wise kernels over features of every tail, dense, on lanes and in place, under every instruction set:
 * each must do what it does by scalars. What that is the kernels' own tests say. */
#include "tests/support/crew.h"
#include "tests/unit/daemon/device/kernels/calls.h"

enum { WIDTH_MAX = 70 };

static const int kernels[] = {
	NPUMEM_KERNEL_RELU,
	NPUMEM_KERNEL_LEAKY_RELU,
	NPUMEM_KERNEL_PRELU,
	NPUMEM_KERNEL_ELTWISE_ADD,
	NPUMEM_KERNEL_ELTWISE_SUB,
	NPUMEM_KERNEL_ELTWISE_MUL,
	NPUMEM_KERNEL_ELTWISE_MAX,
	NPUMEM_KERNEL_ELTWISE_MIN,
	NPUMEM_KERNEL_ELTWISE_DIV,
	NPUMEM_KERNEL_MAC,
	NPUMEM_KERNEL_SIGMOID,
	NPUMEM_KERNEL_TANH,
	NPUMEM_KERNEL_CONVERT_TENSOR,
	NPUMEM_KERNEL_PACKED_ADD,
	NPUMEM_KERNEL_PACKED_SUB,
	NPUMEM_KERNEL_PACKED_MUL,
	NPUMEM_KERNEL_PACKED_MAC,
	NPUMEM_KERNEL_PACKED_MIN,
	NPUMEM_KERNEL_PACKED_MAX,
	NPUMEM_KERNEL_PACKED_ARITHMETIC_SHIFT,
	NPUMEM_KERNEL_PACKED_LOGICAL_SHIFT,
};

/* The type of a role of a kernel that has no choice; else `dtype`. */
static int dtype_of(int kernel, const char *role, int dtype)
{
	bool bytes = strcmp(role, "in1") == 0 || strcmp(role, "in2") == 0;
	switch (kernel) {
	case NPUMEM_KERNEL_PACKED_MUL:
	case NPUMEM_KERNEL_PACKED_MAC:
		return bytes ? (strcmp(role, "in1") == 0 ? NPUMEM_UINT8 : NPUMEM_INT8) : NPUMEM_INT16;
	case NPUMEM_KERNEL_PACKED_ARITHMETIC_SHIFT:
		return NPUMEM_INT16;
	case NPUMEM_KERNEL_PACKED_LOGICAL_SHIFT:
		return NPUMEM_UINT16;
	case NPUMEM_KERNEL_CONVERT_TENSOR:
		return strcmp(role, "in") == 0 ? dtype : dtype == NPUMEM_FX8 ? NPUMEM_FX16 : NPUMEM_FP32;
	}
	if (kernel >= NPUMEM_KERNEL_PACKED_ADD && kernel <= NPUMEM_KERNEL_PACKED_MAX)
		return dtype == NPUMEM_FX8 ? NPUMEM_UINT8 : NPUMEM_INT16;
	return dtype;
}

static void add_role(struct calls *c, unsigned i, int dtype, int64_t channels, int64_t h, int64_t w,
		     uint64_t *state)
{
	const char *role = c->names[i];
	int kernel = c->kernel->number, type = dtype_of(kernel, role, dtype);
	bool fixed = npumem_dtype_is_fixed(type), slope = strcmp(role, "slope") == 0;
	bool is_table = kernel == NPUMEM_KERNEL_SIGMOID || kernel == NPUMEM_KERNEL_TANH;
	int64_t frac_bits = fixed ? 7 : 0;
	if (fixed && strcmp(role, "in2") == 0 && kernel != NPUMEM_KERNEL_ELTWISE_MAX &&
	    kernel != NPUMEM_KERNEL_ELTWISE_MIN)
		frac_bits = oracle_between(state, 3, 12);
	if (fixed && is_table && c->is_output[i])
		frac_bits = type == NPUMEM_FX8 ? 7 : 15;
	if (slope)
		channels = kernel == NPUMEM_KERNEL_PRELU ? channels : 1;
	calls_add(c, role, type, frac_bits, slope ? 1 : 2, channels, slope ? 1 : h, slope ? 1 : w);
	if (!c->is_output[i])
		calls_sample(c, i, state);
}

static void check_width(int kernel, int64_t w, uint64_t *state)
{
	int dtype = oracle_random(state) % 2 ? NPUMEM_FX8 : NPUMEM_FX16;
	struct calls c;
	calls_init(&c, kernel);
	for (unsigned i = 0; i < c.call.n_roles; i++)
		add_role(&c, i, dtype, 3, 1 + w % 3, w, state);
	c.call.rounding = (enum npumem_rounding)oracle_between(state, 1, 3);
	if (strstr(c.call.row->parameters, "rshift"))
		calls_param(&c, NPUMEM_PARAM_RSHIFT, 1, oracle_between(state, 0, 9), 0, 0, 0);
	if (strstr(c.call.row->parameters, "lshift"))
		calls_param(&c, NPUMEM_PARAM_LSHIFT, 1, oracle_between(state, 0, 17), 0, 0, 0);
	if (kernel == NPUMEM_KERNEL_RELU)
		calls_param(&c, NPUMEM_PARAM_RELU, 1, oracle_between(state, 1, 4), 0, 0, 0);
	calls_run(&c);
	calls_free(&c);
}

TEST(every_tail)
{
	uint64_t state = 5;
	for (size_t k = 0; k < sizeof(kernels) / sizeof(kernels[0]); k++)
		for (int64_t w = 1; w <= WIDTH_MAX; w++)
			check_width(kernels[k], w, &state);
}

/* With helpers that stay, and ones that leave after a part: results and counts are those of one thread. */
static void check_shared(int kernel, int64_t channels, int64_t h, int64_t w, bool leave, uint64_t *state)
{
	struct crew crew = {.n_helpers = 3, .leave = leave};
	const struct kernel_crew threads = crew_of(&crew);
	struct calls c;
	calls_init(&c, kernel);
	for (unsigned i = 0; i < c.call.n_roles; i++)
		add_role(&c, i, leave ? NPUMEM_FX8 : NPUMEM_FX16, channels, h, w, state);
	calls_run(&c);
	const struct kernel_operand *out = &c.operands[c.call.n_roles - 1][0];
	const struct kernel_counts counts = c.call.counts;
	size_t bytes = calls_bytes(out);
	void *want = malloc(bytes);
	memcpy(want, out->data, bytes);
	c.call.crew = &threads;
	calls_run(&c);
	ck_assert_ptr_nonnull(crew.work);
	ck_assert(!memcmp(want, out->data, bytes));
	ck_assert(!memcmp(&counts, &c.call.counts, sizeof(counts)));
	free(want);
	calls_free(&c);
}

/* Rows with a band for each thread, few rows in pieces, and short ones, which are one row where they are dense. */
TEST(shared, .is_unbounded = true)
{
	static const int64_t shapes[][3] = {{20, 50, 51}, {3, 120, 110}, {700, 8, 8}};
	uint64_t state = 6;
	for (size_t k = 0; k < sizeof(kernels) / sizeof(kernels[0]); k++)
		for (unsigned i = 0; i < 6 && kernel_by_number(kernels[k])->walks; i++)
			check_shared(kernels[k], shapes[i % 3][0], shapes[i % 3][1], shapes[i % 3][2], i / 3,
				     &state);
}
