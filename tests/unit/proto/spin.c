#include "proto/spin.h"

#include "tests/support/test.h"

enum { MOST_NS = 50000, ROUND_NS = 128 << 19 };

/* What waits cost, in a world that begins behind the trials of a round. */
struct world {
	uint64_t now_ns, slept_ns, looked_ns;
};

/* How many of n waits were looked through. */
static unsigned looks(struct spin *spin, struct world *world, unsigned n)
{
	unsigned looked = 0;
	for (unsigned i = 0; i < n; i++) {
		bool did = spin_begin(spin, world->now_ns);
		world->now_ns += did ? world->looked_ns : world->slept_ns;
		looked += did;
	}
	return looked;
}

/* The part of n rounds that was spent looking. */
static double share(struct spin *spin, struct world *world, unsigned n)
{
	uint64_t begin = world->now_ns, end = begin + (uint64_t)n * ROUND_NS, looked = 0;
	while (world->now_ns < end)
		if (looks(spin, world, 1))
			looked += world->looked_ns < MOST_NS ? world->looked_ns : MOST_NS;
	return (double)looked / (double)(world->now_ns - begin);
}

TEST(it_looks_while_it_pays)
{
	struct world world = {ROUND_NS / 2, 100000, 7000};
	struct spin spin;
	spin_init(&spin, MOST_NS);
	ck_assert_uint_eq(looks(&spin, &world, 1000), 1000);
	/* But for the trials. */
	ck_assert_double_gt(share(&spin, &world, 20), 0.98);
	ck_assert_double_lt(share(&spin, &world, 20), 0.995);
	/* One in vain now and then does no harm. */
	for (unsigned i = 0; i < 100; i++) {
		world.looked_ns = 10000000;
		looks(&spin, &world, 1);
		world.looked_ns = 7000;
		looks(&spin, &world, 15);
	}
	ck_assert_double_gt(share(&spin, &world, 20), 0.97);
}

TEST(it_sleeps_where_it_does_not_pay)
{
	static const struct world worlds[] = {
		{ROUND_NS / 2, 10000, 60000},	   /* the other side waits for this core */
		{ROUND_NS / 2, 10000, 3000000},	   /* or somebody else had it */
		{ROUND_NS / 2, 10000, 9000},	   /* not worth a core */
		{ROUND_NS / 2, 1000000, 1000000},  /* what it waits for takes its time */
		{ROUND_NS / 2, 10000000, 5000000}, /* and nothing is known of that */
	};
	struct spin spin;
	for (unsigned i = 0; i < sizeof(worlds) / sizeof(worlds[0]); i++) {
		struct world world = worlds[i];
		spin_init(&spin, MOST_NS);
		share(&spin, &world, 1);
		ck_assert_double_lt(share(&spin, &world, 4), 0.05);
	}
}

TEST(it_notices_that_things_have_changed)
{
	struct world world = {ROUND_NS / 2, 10000, 60000};
	struct spin spin;
	spin_init(&spin, MOST_NS);
	share(&spin, &world, 1);
	ck_assert_double_lt(share(&spin, &world, 4), 0.05);
	world.slept_ns = 100000;
	world.looked_ns = 7000;
	share(&spin, &world, 4);
	ck_assert_double_gt(share(&spin, &world, 4), 0.97);
	world.slept_ns = 10000;
	world.looked_ns = 60000;
	share(&spin, &world, 4);
	ck_assert_double_lt(share(&spin, &world, 4), 0.05);
}

/* Each of two looks in vain while the other sleeps. */
TEST(both_ends_find_out_together)
{
	struct spin spins[2];
	uint64_t now_ns = ROUND_NS / 2, end_ns = now_ns + 8 * (uint64_t)ROUND_NS;
	bool a = false, b = false;
	spin_init(&spins[0], MOST_NS);
	spin_init(&spins[1], MOST_NS);
	spins[0].mean_ns[true] = spins[1].mean_ns[true] = 4 * MOST_NS;
	while (now_ns < end_ns) {
		a = spin_begin(&spins[0], now_ns);
		b = spin_begin(&spins[1], now_ns);
		now_ns += a && b ? 7000 : 110000;
	}
	ck_assert(a && b);
}

static bool third_time(void *ctx)
{
	return ++*(unsigned *)ctx == 3;
}

static bool never(void *ctx)
{
	++*(unsigned *)ctx;
	return false;
}

TEST(it_asks_until_it_has_come)
{
	unsigned n = 0;
	struct spin spin;
	spin_init(&spin, 0);
	ck_assert(!spin_look(&spin, third_time, &n));
	ck_assert_uint_eq(n, 0);
	/* Of the trials half are to be slept through. */
	for (unsigned tries = 0; n != 3 && tries < 10000000; tries++) {
		spin_init(&spin, UINT64_C(1) << 40);
		n = 0;
		ck_assert(spin_look(&spin, third_time, &n) || !n);
	}
	ck_assert_uint_eq(n, 3);
	for (n = 0; !n;) {
		spin_init(&spin, 1);
		ck_assert(!spin_look(&spin, never, &n));
	}
	ck_assert_uint_eq(n, 1);
}
