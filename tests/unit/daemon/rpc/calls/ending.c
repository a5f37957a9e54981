/* What a session leaves behind goes in parts, each in its turn. */
#include "daemon/rpc/calls/ending.h"

#include "tests/unit/daemon/rpc/crowd.h"

static void alloc_many(unsigned from, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		ck_assert_int_eq(crowd_status(from, crowd_alloc(from, "", SHORT_W)), 0);
}

TEST(many_go_in_parts)
{
	enum { N = ENDING_PART + 44, PART = ENDING_PART };
	ck_assert_int_eq(crowd_status(0, crowd_alloc(0, "x", SHORT_W)), 0);
	alloc_many(1, N);
	ck_assert_int_eq(world_n_tensors(&crowd.world), N + 1);
	crowd_close(1);
	ck_assert_uint_eq(crowd.n_tasks, 1);
	ck_assert_uint_eq(crowd.peers[1].n_drained, 0);
	ck_assert_int_eq(crowd_status(0, crowd_fill(0, "x", 1)), 0);
	ck_assert_int_eq(world_n_tensors(&crowd.world), N + 1);
	crowd_finish(0);
	ck_assert_uint_eq(crowd.peers[1].n_drained, 1);
	ck_assert_int_eq(world_n_tensors(&crowd.world), 1);
	alloc_many(2, 2 * PART);
	crowd_close(2);
	for (unsigned left = 2; left; left--) {
		ck_assert_uint_eq(crowd.n_tasks, 1);
		ck_assert_int_eq(world_n_tensors(&crowd.world), left * PART + 1);
		crowd_finish(0);
	}
	ck_assert_uint_eq(crowd.peers[2].n_drained, 1);
	ck_assert_int_eq(world_n_tensors(&crowd.world), 1);
}

TEST(what_went_meanwhile_is_not_missed)
{
	crowd_alloc(0, "B", LONG_W);
	uint64_t view = crowd_view(1, "", 0, "B", LONG_W);
	ck_assert_int_eq(crowd_status(1, view), 0);
	ck_assert_int_eq(crowd_status(1, crowd_alloc(1, "", SHORT_W)), 0);
	crowd_fill(0, "B", 1);
	uint64_t freed = crowd_free(0, "B");
	/* The view went with its base, when that was hidden. */
	crowd_close(1);
	ck_assert_uint_eq(crowd.peers[1].n_drained, 1);
	crowd_finish(0);
	ck_assert_int_eq(crowd_status(0, freed), -1);
	crowd_finish(0);
	ck_assert_int_eq(crowd_status(0, freed), 0);
	ck_assert_uint_eq(crowd.peers[1].n_drained, 1);
	ck_assert_int_eq(world_n_tensors(&crowd.world), 0);
}

/* A view of somebody else's tensor dies with the session, and the tensor does not. */
TEST(views_go_and_their_bases_stay)
{
	crowd_alloc(0, "B", LONG_W);
	crowd_fill(0, "B", 7);
	crowd_finish_all();
	ck_assert_int_eq(crowd_status(1, crowd_view(1, "", 0, "B", LONG_W)), 0);
	crowd_close(1);
	ck_assert_uint_eq(crowd.peers[1].n_drained, 1);
	ck_assert_int_eq(world_n_tensors(&crowd.world), 1);
	ck_assert_int_eq(crowd_value(0, crowd_read(0, "B")), 7);
}

TEST(without_memory_it_goes_in_smaller_parts)
{
	alloc_many(1, 20);
	crowd.world.fail_at = crowd.world.n_allocs + 1;
	crowd_close(1);
	ck_assert_uint_ge(crowd.world.n_allocs, crowd.world.fail_at);
	ck_assert_uint_eq(crowd.peers[1].n_drained, 1);
	ck_assert_int_eq(world_n_tensors(&crowd.world), 0);
}
