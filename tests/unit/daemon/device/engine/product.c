/* Products against plain loops under every instruction set: every tail, operands of the whole range and mostly the
 * most negative ones, every rounding, sums that are narrow, widened, split and wrapped; and tiles shared by
 * threads. */

#include "tests/unit/daemon/device/kernels/calls.h"
#include "tests/support/crew.h"

enum { LEFT, RIGHT, BIAS, OUT };

struct shape {
	int64_t rows, terms, columns;
};

static void set_up(struct calls *c, const struct shape *shape, uint64_t *state)
{
	const struct calls_types *types = &calls_fxn[oracle_random(state) % 3];
	int64_t left = oracle_between(state, 0, 15), right = oracle_between(state, 0, 15);
	/* Mostly results that fit, and every shift of the bias. */
	int64_t out = oracle_random(state) % 4 ? oracle_between(state, 0, 3)
					       : oracle_between(state, 0, left + right + 2);
	calls_init(c, NPUMEM_KERNEL_MATMUL);
	calls_add(c, "left", types->data, left, shape->rows, shape->terms, 1, 1);
	calls_add(c, "right", types->weights, right, shape->terms, shape->columns, 1, 1);
	if (oracle_random(state) % 4)
		calls_add(c, "bias", types->weights, oracle_between(state, 0, left + right), 1, shape->columns, 1,
			  1);
	calls_add(c, "out", types->data, out, shape->rows, shape->columns, 1, 1);
	c->call.rounding = (enum npumem_rounding)oracle_between(state, NPUMEM_CONVERGENT, NPUMEM_NEAREST);
	calls_param(c, NPUMEM_PARAM_RELU, 1, oracle_between(state, 1, 4), 0, 0, 0);
	for (unsigned role = 0; role < OUT; role++)
		if (c->roles[role].n)
			calls_fill(c, role, state);
}

static void check_against_loops(struct calls *c, const struct shape *s)
{
	bool has_bias = c->roles[BIAS].n > 0;
	int64_t frac_bits = c->operands[LEFT][0].frac_bits + c->operands[RIGHT][0].frac_bits;
	int64_t relu = c->call.params.given[NPUMEM_PARAM_RELU].values[0], saturated = 0, wrapped = 0;
	calls_run(c);
	for (int64_t r = 0; r < s->rows; r++)
		for (int64_t m = 0; m < s->columns; m++) {
			int64_t sum = 0;
			for (int64_t k = 0; k < s->terms; k++)
				sum += calls_get(c, LEFT, r * s->terms + k) *
				       calls_get(c, RIGHT, k * s->columns + m);
			int64_t want = calls_weighted(c, sum, has_bias ? calls_get(c, BIAS, m) : 0, frac_bits,
						      has_bias ? c->operands[BIAS][0].frac_bits : frac_bits, OUT,
						      relu, &saturated, &wrapped);
			int64_t got = calls_get(c, OUT, r * s->columns + m);
			ck_assert_msg(got == want, "[%d x %d] x [%d x %d]: (%d, %d) is %d and not %d",
				      (int)s->rows, (int)s->terms, (int)s->terms, (int)s->columns, (int)r, (int)m,
				      (int)got, (int)want);
		}
	ck_assert_int_eq(c->call.counts.saturated, saturated);
	ck_assert_int_eq(c->call.counts.wrapped, wrapped);
	ck_assert_int_eq(c->call.counts.macs, s->rows * s->terms * s->columns);
}

static int64_t few(uint64_t *state, bool many)
{
	return many ? oracle_between(state, 1, 70) : oracle_between(state, 1, 9);
}

static void check_random(uint64_t *state, int64_t terms)
{
	int64_t large = (int64_t)(oracle_random(state) % 4);
	struct shape shape = {few(state, large == 0), few(state, large == 1), few(state, large == 2)};
	shape.terms = terms ? terms : shape.terms;
	struct calls c;
	set_up(&c, &shape, state);
	check_against_loops(&c, &shape);
	calls_free(&c);
}

TEST(every_isa, .is_unbounded = true)
{
	const char *many = getenv("NPUMEM_RANDOM_PRODUCTS");
	int n = many ? atoi(many) : 300;
	uint64_t state = 20261122;
	for (int i = 0; i < n; i++)
		check_random(&state, 0);
	for (int i = 0; i < n / 25; i++)
		check_random(&state, oracle_between(&state, 70, 3000));
}

/* More steps than are done between two looks, so that fx8 is widened as well, past what 32 bits hold. */
TEST(long_sums, .is_unbounded = true)
{
	uint64_t state = 3;
	for (int64_t terms = 4095; terms < 200000; terms = terms * 2 + 1)
		for (int i = 0; i < 4; i++) {
			const struct shape shape = {1 + i % 2, terms, 1 + i};
			struct calls c;
			set_up(&c, &shape, &state);
			check_against_loops(&c, &shape);
			calls_free(&c);
		}
}

/* Strips that come in stretches, for blocks of several panels and of a tile's last rows. */
TEST(long_sums_of_many_rows, .is_slow = true, .is_unbounded = true)
{
	static const struct shape shapes[] = {{7, 9001, 65}, {97, 8300, 3}, {203, 4100, 70}, {13, 200000, 2}};
	uint64_t state = 4;
	for (int i = 0; i < 4; i++) {
		struct calls c;
		set_up(&c, &shapes[i], &state);
		c.call.isa = isa_best();
		check_against_loops(&c, &shapes[i]);
		calls_free(&c);
	}
}

/* ---- threads ---- */

/* Several panels of several tiles: what threads share is what one makes, and all of it is told. */
TEST(shared, .is_unbounded = true)
{
	static const struct shape shape = {400, 3000, 100};
	uint64_t state = 5;
	for (int i = 0; i < 4; i++) {
		struct crew crew = {.n_helpers = 3, .leave = i % 2};
		const struct kernel_crew threads = crew_of(&crew);
		struct kernel_progress progress = {.piece = 0};
		struct calls c;
		set_up(&c, &shape, &state);
		c.call.isa = isa_best();
		calls_once(&c);
		size_t bytes = calls_bytes(&c.operands[OUT][0]);
		const struct kernel_counts counts = c.call.counts;
		void *want = malloc(bytes);
		memcpy(want, c.operands[OUT][0].data, bytes);
		c.call.crew = &threads;
		c.call.progress = &progress;
		calls_once(&c);
		ck_assert_ptr_nonnull(crew.work);
		ck_assert(!memcmp(c.operands[OUT][0].data, want, bytes));
		ck_assert(!memcmp(&c.call.counts, &counts, sizeof(counts)));
		ck_assert_int_eq(progress.done, shape.rows * shape.columns * KERNEL_PARTS);
		free(want);
		calls_free(&c);
	}
}
