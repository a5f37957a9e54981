/* What can be taken back, and what is there already. */
#include "tests/unit/daemon/rpc/crowd.h"

static int cancel(uint64_t request)
{
	Npumem__V1__CancelRequest message = NPUMEM__V1__CANCEL_REQUEST__INIT;
	message.request_id = request;
	uint64_t id = CROWD_SEND(0, cancel, CANCEL, &message);
	ck_assert_int_eq(crowd_status(0, id), 0);
	return crowd_reply(0, id)->cancelled->found;
}

/* A fill of "long" is under way. */
static uint64_t init(void)
{
	ck_assert_int_eq(crowd_status(0, crowd_alloc(0, "long", LONG_W)), 0);
	return crowd_fill(0, "long", 1);
}

TEST(what_waits_is_taken_back)
{
	init();
	uint64_t fill = crowd_fill(0, "long", 2);
	ck_assert(cancel(fill));
	ck_assert_int_eq(crowd_status(0, fill), NPUMEM_CANCELLED);
	ck_assert(!cancel(fill));
	crowd_finish_all();
	ck_assert_int_eq(crowd_value(0, crowd_read(0, "long")), 1);
}

/* A view is there, and a tensor has gone, from the moment that its names are looked up. */
TEST(what_is_there_already_goes_on)
{
	init();
	uint64_t view = crowd_view(0, "v", 0, "long", LONG_W);
	ck_assert_int_eq(crowd_status(0, view), -1);
	ck_assert(cancel(view));
	ck_assert_int_eq(crowd_status(0, view), -1);
	uint64_t gone = crowd_free(0, "long");
	ck_assert(cancel(gone));
	ck_assert_int_eq(crowd_status(0, gone), -1);
	crowd_finish_all();
	ck_assert_int_eq(crowd_status(0, view), 0);
	ck_assert_int_eq(crowd_status(0, gone), 0);
	ck_assert_int_eq(world_n_tensors(&crowd.world), 0);
}

/* The same when the client goes. */
TEST(what_is_there_already_goes_on_without_its_client)
{
	crowd_alloc(0, "long", LONG_W);
	crowd_fill(1, "long", 1);
	crowd_view(0, "v", 0, "long", LONG_W);
	crowd_close(0);
	crowd_finish_all();
	ck_assert_uint_eq(crowd.peers[0].n_drained, 1);
	ck_assert_int_eq(crowd_value(1, crowd_read(1, "v")), 1);
}

/* A tensor that dies with its client is read to the end by who has a view of it. */
TEST(what_a_client_leaves_is_not_zeroed_under_a_reader)
{
	uint64_t alloc, copy;
	alloc = crowd_alloc(1, "", LONG_W);
	crowd_view(1, "v", crowd_reply(1, alloc)->allocated->tensors[0]->handle, "", 2 * LONG_W);
	crowd_alloc(0, "copy", LONG_W);
	crowd_fill(0, "v", 3);
	crowd_finish_all();
	copy = crowd_copy(0, "copy", "v");
	ck_assert_uint_eq(crowd.n_tasks, 1);
	crowd_close(1);
	ck_assert_uint_eq(crowd.n_tasks, 1);
	crowd_finish_all();
	ck_assert_int_eq(crowd_status(0, copy), 0);
	ck_assert_int_eq(crowd_value(0, crowd_read(0, "copy")), 3);
}

/* A seal changes what may lie where, so that what its client allocates next waits for it. */
TEST(an_allocation_waits_for_a_seal)
{
	init();
	uint64_t seal = crowd_seal(0, "long");
	uint64_t alloc = crowd_alloc(0, "b", SHORT_W);
	ck_assert_int_eq(crowd_status(0, seal), -1);
	ck_assert_int_eq(crowd_status(0, alloc), -1);
	crowd_finish_all();
	ck_assert_int_eq(crowd_status(0, seal), 0);
	ck_assert_int_eq(crowd_status(0, alloc), 0);
}
