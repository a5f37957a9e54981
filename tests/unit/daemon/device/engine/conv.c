/* Every micro-kernel of implementations.def against the scalar one, through whole convolutions: shapes with every
 * tail, operands of the whole range and mostly the most negative ones, every rounding; and parts shared by
 * threads. That the scalar one is right the kernels' own tests say, by plain loops. */

#include "daemon/device/engine/ukernel.h"
#include "tests/unit/daemon/device/kernels/convolutions.h"
#include "tests/support/crew.h"

enum { KINDS = 4 };
static const int kinds[KINDS] = {NPUMEM_KERNEL_CONV2D, NPUMEM_KERNEL_GROUP_CONV2D, NPUMEM_KERNEL_TRANSPOSE_CONV2D,
				 NPUMEM_KERNEL_DEPTHWISE_CONV2D};

static int64_t few(uint64_t *state, int64_t most)
{
	return oracle_random(state) % 2 ? oracle_between(state, 1, most < 5 ? most : 5)
					: oracle_between(state, 1, most);
}

/* One extent is up to 70, the others are small, so that all of them pass by without taking long. */
static struct shape random_shape(uint64_t *state, int number)
{
	struct shape s = {.n = few(state, 2), .groups = 1, .dilation_h = 1, .dilation_w = 1};
	int64_t large = (int64_t)(oracle_random(state) % 4);
	s.i = few(state, large == 0 ? 70 : 9);
	s.o = few(state, large == 1 ? 70 : 9);
	s.h = few(state, large == 2 ? 70 : 9);
	s.w = few(state, large == 3 ? 70 : 20);
	s.kh = oracle_between(state, 1, s.h < 5 ? s.h : 5);
	s.kw = oracle_between(state, 1, s.w < 5 ? s.w : 5);
	s.stride_h = few(state, 3);
	s.stride_w = few(state, 3);
	if (number == NPUMEM_KERNEL_GROUP_CONV2D) {
		s.groups = oracle_between(state, 1, 5);
		s.i *= s.groups;
		s.o *= s.groups;
	} else if (number == NPUMEM_KERNEL_DEPTHWISE_CONV2D) {
		s.o = s.i * oracle_between(state, 1, 3);
		s.groups = s.i;
	}
	if (number == NPUMEM_KERNEL_TRANSPOSE_CONV2D)
		return s;
	if (s.kh > 1 && (s.kh - 1) * 2 < s.h)
		s.dilation_h = oracle_between(state, 1, 2);
	if (s.kw > 1 && (s.kw - 1) * 3 < s.w)
		s.dilation_w = oracle_between(state, 1, 3);
	s.top = oracle_between(state, 0, (s.kh - 1) * s.dilation_h);
	s.bottom = oracle_between(state, 0, (s.kh - 1) * s.dilation_h);
	s.left = oracle_between(state, 0, (s.kw - 1) * s.dilation_w);
	s.right = oracle_between(state, 0, (s.kw - 1) * s.dilation_w);
	return s;
}

static void set_up_random(struct calls *c, int number, const struct shape *shape, const struct calls_types *types,
			  uint64_t *state)
{
	int64_t data = oracle_between(state, 0, 12), weights = oracle_between(state, 0, 12);
	int64_t out = oracle_between(state, 0, data + weights + 2);
	const int64_t frac_bits[4] = {data, weights, oracle_between(state, 0, data + weights), out};
	set_up(c, number, shape, types, frac_bits, oracle_random(state) % 2);
	c->call.rounding = (enum npumem_rounding)oracle_between(state, NPUMEM_CONVERGENT, NPUMEM_NEAREST);
	calls_param(c, NPUMEM_PARAM_RELU, 1, oracle_between(state, 1, 4), 0, 0, 0);
	for (unsigned role = 0; role < OUT; role++)
		if (c->roles[role].n)
			calls_fill(c, role, state);
}

/* As `isa` has it the outputs and counts are what they are without. */
static void check_isa(struct calls *c, enum isa isa, const void *want, const struct kernel_counts *counts)
{
	const struct npumem_dims *s = &c->operands[IN][0].shape, *w = &c->operands[WEIGHTS][0].shape;
	size_t bytes = calls_bytes(&c->operands[OUT][0]);
	c->call.isa = isa;
	calls_run(c);
	ck_assert_msg(!memcmp(c->operands[OUT][0].data, want, bytes),
		      "%s: %s differs for [%d,%d,%d,%d] x %d of %dx%d", isa_name(isa), c->call.row->name,
		      (int)s->n, (int)s->c, (int)s->h, (int)s->w, (int)w->c, (int)w->h, (int)w->w);
	ck_assert_int_eq(c->call.counts.saturated, counts->saturated);
	ck_assert_int_eq(c->call.counts.wrapped, counts->wrapped);
	ck_assert_int_eq(c->call.counts.macs, counts->macs);
}

static void check_from(struct calls *c, enum isa first)
{
	size_t bytes = calls_bytes(&c->operands[OUT][0]);
	void *want = malloc(bytes);
	c->call.isa = ISA_SCALAR;
	calls_run(c);
	memcpy(want, c->operands[OUT][0].data, bytes);
	const struct kernel_counts counts = c->call.counts;
	for (int isa = (int)first; isa < ISA_N; isa = isa_next(isa))
		check_isa(c, (enum isa)isa, want, &counts);
	free(want);
}

static void check_all(struct calls *c)
{
	check_from(c, ISA_SCALAR);
}

TEST(every_isa, .is_unbounded = true)
{
	const char *many = getenv("NPUMEM_RANDOM_CONVOLUTIONS");
	int n = many ? atoi(many) : 250;
	uint64_t state = 20261122;
	for (int i = 0; i < n; i++) {
		int number = kinds[oracle_random(&state) % KINDS];
		const struct shape shape = random_shape(&state, number);
		struct calls c;
		set_up_random(&c, number, &shape, &calls_fxn[oracle_random(&state) % 3], &state);
		check_all(&c);
		calls_free(&c);
	}
}

/* What is summed with pixels as rows: every number of them in a row and of vectors of output channels, taps that
 * lie in the padding on every side, rows and columns of outputs that see nothing else. */
static void check_small_images(const struct calls_types *types, int64_t first, int64_t step)
{
	uint64_t state = 9;
	for (int64_t w = first; w <= 24; w += step)
		for (int64_t o = 7; o < 110; o += 8) {
			int64_t kh = oracle_between(&state, 1, 5), kw = oracle_between(&state, 1, 5);
			const struct shape shape = {
				.n = few(&state, 2),
				.i = few(&state, 19),
				.h = oracle_between(&state, 1, 6),
				.w = w,
				.o = o + few(&state, 9),
				.kh = kh,
				.kw = kw,
				.stride_h = few(&state, 2),
				.stride_w = few(&state, 2),
				.top = kh - 1,
				.bottom = oracle_between(&state, 0, kh - 1),
				.left = oracle_between(&state, 0, kw - 1),
				.right = kw - 1,
				.groups = 1,
			};
			struct calls c;
			set_up_random(&c, NPUMEM_KERNEL_CONV2D, &shape, types, &state);
			check_from(&c, isa_best());
			calls_free(&c);
		}
}

TEST(small_images, .is_slow = true, .is_unbounded = true)
{
	for (unsigned t = 0; t < 3; t++)
		check_small_images(&calls_fxn[t], IS_SANITIZED ? 1 + t : 1, IS_SANITIZED ? 3 : 1);
}

/* Long sums: several segments of 32 bits, what wraps at 40 bits and what nearly does, split weights and not, of a
 * few output channels and of as many as have pixels as rows. */
TEST(long_sums, .is_unbounded = true)
{
	uint64_t state = 77;
	for (unsigned t = 0; t < 3; t++)
		for (int64_t inputs = 480; inputs < 1100; inputs += 157) {
			const int64_t o = inputs % 2 ? 40 : 8;
			const struct shape shape = {1, inputs, 3, 7, o, 2, 2, 1, 1, 1, 0, 1, 0, 1, 1, 1};
			struct calls c;
			set_up(&c, NPUMEM_KERNEL_CONV2D, &shape, &calls_fxn[t], (const int64_t[4]){7, 7, 0, 0},
			       true);
			for (int how = 0; how < 3; how++) {
				calls_fill(&c, IN, &state);
				calls_fill(&c, WEIGHTS, &state);
				calls_fill(&c, BIAS, &state);
				check_all(&c);
			}
			calls_free(&c);
		}
}

/* Sums that are often ties, of weights whose products do not stay in 32 bits: rounded with what is below a unit.
 */
TEST(ties, .is_unbounded = true)
{
	uint64_t state = 31;
	for (int i = 0; i < 36; i++) {
		int number = i % 2 ? NPUMEM_KERNEL_DEPTHWISE_CONV2D : NPUMEM_KERNEL_CONV2D;
		struct shape shape = {1, 12, 5, 20, 12, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1, 1};
		if (number == NPUMEM_KERNEL_DEPTHWISE_CONV2D)
			shape.groups = shape.i;
		else if (i % 4 == 0)
			shape.kh = shape.kw = 1, shape.top = shape.bottom = shape.left = shape.right = 0;
		struct calls c;
		set_up(&c, number, &shape, &calls_fxn[1], (const int64_t[4]){7, 8, 0, 15 - (8 + i % 5)}, true);
		ck_assert_int_eq(calls_fxn[1].weights, NPUMEM_FX16);
		c.call.rounding = (enum npumem_rounding)(NPUMEM_CONVERGENT + i / 4 % 3);
		for (unsigned role = 0; role < OUT; role++)
			calls_sample(&c, role, &state);
		int64_t n = (int64_t)calls_bytes(&c.operands[IN][0]) / 2;
		for (int64_t j = 0; j < n; j++)
			calls_put(&c, IN, j, oracle_between(&state, -8, 8) * 128);
		check_all(&c);
		calls_free(&c);
	}
}

/* Weights of which two, or four, reach just what 16 bits hold of the largest data, and just not. */
TEST(sums_at_the_brim, .is_unbounded = true)
{
	static const int64_t weights[] = {127, -127, 1, -1, 2, -2, 64, -64, 65, -65, 33, -33, 32, -32, 0, -128};
	static const int64_t data[] = {127, 127, 126, -128};
	uint64_t state = 5;
	for (int i = 0; i < 60; i++) {
		const struct shape shape = {1, 1 + 5 * (i % 9), 3, 24, 1 + i % 7, 1, 2, 1, 1, 0, 0, 0, 0, 1, 1, 1};
		struct calls c;
		set_up(&c, NPUMEM_KERNEL_CONV2D, &shape, &calls_fxn[0], (const int64_t[4]){7, 7, 0, 4}, false);
		int64_t n_data = (int64_t)calls_bytes(&c.operands[IN][0]);
		int64_t n_weights = (int64_t)calls_bytes(&c.operands[WEIGHTS][0]);
		for (int64_t j = 0; j < n_data; j++)
			calls_put(&c, IN, j, data[oracle_random(&state) % 4]);
		for (int64_t j = 0; j < n_weights; j++)
			calls_put(&c, WEIGHTS, j, weights[oracle_random(&state) % (i % 3 ? 16 : 8)]);
		check_all(&c);
		calls_free(&c);
	}
}

/* ---- stores ---- */

enum { SUMS = UKERNEL_ROWS_MAX * UKERNEL_COLUMNS };

/* Results of sums from `first` on, with totals, of which the strip has every column, or some; how many saturated.
 */
static int64_t store(const struct ukernel *u, const struct requantize *to, int64_t first, bool is_small,
		     int8_t *out)
{
	int32_t sums[SUMS] __attribute__((aligned(64)));
	int64_t totals[UKERNEL_ROWS_MAX];
	uint8_t *rows[UKERNEL_ROWS_MAX];
	uint64_t real = first % 3 ? ~UINT64_C(0) : UINT64_C(0x7fe1ffff0c3ffe5b);
	const struct ukernel_strip strip = {real, UKERNEL_COLUMNS, (unsigned)__builtin_popcountll(real)};
	for (int i = 0; i < UKERNEL_ROWS_MAX; i++) {
		totals[i] = 1000003 * (i - 16);
		rows[i] = (uint8_t *)out + i * UKERNEL_COLUMNS;
	}
	for (int i = 0; i < SUMS; i++)
		sums[i] = (int32_t)(first + i - totals[i / UKERNEL_COLUMNS]);
	memset(out, 0, SUMS);
	const struct ukernel_result result = {to, totals, rows, 0, is_small};
	return u->store32(&result, &strip, UKERNEL_ROWS_MAX, sums);
}

/* All small sums, for every shift and rounding: the same as without that promise. */
TEST(small_sums, .is_unbounded = true)
{
	int8_t is[SUMS], want[SUMS];
	const struct ukernel *u = ukernel_choose(UKERNEL_FX8, isa_best());
	for (int i = 0; u->store32 && i < 3 * 23; i++) {
		struct requantize to;
		requantize_init(&to, NPUMEM_FX8, i / 3, (enum npumem_rounding)(NPUMEM_CONVERGENT + i % 3));
		int64_t most = 1 << 24;
		while (!ukernel_is_small(&to, most))
			most--;
		for (int64_t first = -most; first <= most; first += SUMS) {
			int64_t at = first < most - SUMS ? first : most - SUMS + 1;
			ck_assert_int_eq(store(u, &to, at, true, is), store(u, &to, at, false, want));
			ck_assert(!memcmp(is, want, SUMS));
		}
	}
}

/* ---- threads ---- */

/* The same as alone. */
static void share(enum isa isa)
{
	static const struct shape shapes[] = {
		{2, 32, 40, 40, 64, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1, 1},
		{1, 64, 40, 41, 96, 3, 3, 2, 2, 1, 1, 1, 1, 1, 1, 4},
		{1, 3, 90, 90, 80, 5, 5, 2, 1, 1, 1, 1, 1, 1, 1, 1},
		{1, 300, 33, 33, 99, 1, 1, 1, 1, 0, 0, 0, 0, 1, 1, 1},
		{2, 90, 33, 31, 180, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1, 90}, /* depthwise: this and what follows */
		{1, 40, 50, 50, 40, 5, 5, 2, 2, 0, 1, 2, 1, 1, 1, 40},
	};
	enum { N = sizeof(shapes) / sizeof(*shapes), DEPTHWISE = 4 };
	uint64_t state = 5;
	for (unsigned i = 0; i < 3 * N; i++) {
		if (IS_SANITIZED && i / N != i % 3)
			continue;
		struct crew crew = {.n_helpers = 11, .leave = (i / N + i) % 2};
		const struct kernel_crew threads = crew_of(&crew);
		struct calls c;
		int number = i % N < DEPTHWISE ? NPUMEM_KERNEL_GROUP_CONV2D : NPUMEM_KERNEL_DEPTHWISE_CONV2D;
		set_up(&c, number, &shapes[i % N], &calls_fxn[i / N % 3], (const int64_t[4]){7, 7, 0, 7}, true);
		for (unsigned role = 0; role < OUT; role++)
			calls_fill(&c, role, &state);
		size_t bytes = calls_bytes(&c.operands[OUT][0]);
		void *want = malloc(bytes);
		c.call.isa = isa;
		calls_run(&c);
		memcpy(want, c.operands[OUT][0].data, bytes);
		const struct kernel_counts counts = c.call.counts;
		c.call.crew = &threads;
		check_isa(&c, isa_best(), want, &counts);
		free(want);
		calls_free(&c);
	}
}

TEST(shared, .is_unbounded = true)
{
	share(isa_best());
}

/* Which is the same as without vectors. */
TEST(shared_without_vectors, .is_slow = true, .is_unbounded = true)
{
	share(ISA_SCALAR);
}
