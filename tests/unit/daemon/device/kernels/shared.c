/* Depthwise convolutions whose channels several threads share. */
#include "tests/support/crew.h"
#include "tests/unit/daemon/device/kernels/convolutions.h"

static void begin(struct calls *c, const struct shape *shape, int dtype)
{
	const struct calls_types types = {dtype, dtype};
	const int64_t frac_bits[4] = {4, 4, 4, 4};
	uint64_t state = 1;
	set_up(c, NPUMEM_KERNEL_DEPTHWISE_CONV2D, shape, &types, frac_bits, false);
	calls_fill(c, IN, &state);
	calls_fill(c, WEIGHTS, &state);
}

/* Helpers that stay, and ones that leave after a part: results and counts are those of one thread. */
TEST(results_do_not_depend_on_threads, .to = 4)
{
	const struct shape shape = {
		.n = 2,
		.i = 13,
		.h = 40,
		.w = 40,
		.o = 13,
		.kh = 3,
		.kw = 3,
		.stride_h = 1,
		.stride_w = 1,
		.top = 1,
		.bottom = 1,
		.left = 1,
		.right = 1,
		.groups = 13,
	};
	struct crew crew = {.n_helpers = 3, .leave = _i / 2};
	const struct kernel_crew threads = crew_of(&crew);
	struct calls c;
	begin(&c, &shape, _i % 2 ? NPUMEM_FX16 : NPUMEM_FX8);
	c.call.crew = &threads;
	check_against_loops(&c, 0);
	ck_assert_ptr_nonnull(crew.work);
	calls_free(&c);
}

/* A helper would not leave such a channel when another user wants its processor, and takes no memory for it. */
TEST(long_channels_are_not_shared)
{
	const struct shape shape = {.n = 1,
				    .i = 2,
				    .h = 80,
				    .w = 80,
				    .o = 2,
				    .kh = 17,
				    .kw = 17,
				    .stride_h = 1,
				    .stride_w = 1,
				    .groups = 2};
	struct crew crew = {.n_helpers = 3};
	const struct kernel_crew threads = crew_of(&crew);
	struct calls c;
	begin(&c, &shape, NPUMEM_FX16);
	c.kernel->plan(&c.call);
	size_t alone = c.kernel->scratch_bytes(&c.call);
	c.call.crew = &threads;
	calls_once(&c);
	ck_assert_uint_eq(c.kernel->scratch_bytes(&c.call), alone);
	ck_assert_ptr_null(crew.work);
	calls_free(&c);
}
