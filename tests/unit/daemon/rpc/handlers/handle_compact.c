/* Compaction step by step: what may happen between two steps, and every end. */
#include "tests/unit/daemon/rpc/crowd.h"

enum { N = 300 };

/* N small tensors of peer 1 behind a gap; "last" is the last one, and holds 9. */
static void scatter(void)
{
	crowd_alloc(0, "gap", SHORT_W);
	for (unsigned i = 0; i < N; i++)
		ck_assert_int_eq(crowd_status(1, crowd_alloc(1, "", SHORT_W)), 0);
	crowd_alloc(0, "last", SHORT_W);
	crowd_fill(0, "last", 9);
	ck_assert_int_eq(crowd_status(0, crowd_free(0, "gap")), 0);
}

static uint64_t dry_run(unsigned from)
{
	Npumem__V1__CompactRequest request = NPUMEM__V1__COMPACT_REQUEST__INIT;
	request.dry_run = true;
	return CROWD_SEND(from, compact, COMPACT, &request);
}

/* Waits for room as long as it takes. */
static uint64_t alloc_wait(unsigned from, const char *name, int64_t w)
{
	struct talk_spec spec;
	Npumem__V1__Allocation allocation = NPUMEM__V1__ALLOCATION__INIT, *list = &allocation;
	allocation.spec = talk_spec(&spec, 8, w);
	allocation.name = (char *)name;
	Npumem__V1__AllocRequest request = {MESSAGE(alloc_request), .n_tensors = 1, .tensors = &list,
					    .wait_ms = 1000};
	return CROWD_SEND(from, alloc, ALLOC, &request);
}

/* What its client sends behind it must be of a session that has its token. */
TEST(a_session_gets_its_token_beside_it)
{
	Npumem__V1__ResumeRequest request = NPUMEM__V1__RESUME_REQUEST__INIT;
	scatter();
	uint64_t compact = crowd_compact(2);
	uint64_t resume = CROWD_SEND(0, resume, RESUME, &request);
	ck_assert_int_eq(crowd_status(2, compact), -1);
	ck_assert_int_eq(crowd_status(0, resume), 0);
	crowd_finish_all();
}

static uint64_t linger(bool lingers)
{
	Npumem__V1__ResumeRequest request = NPUMEM__V1__RESUME_REQUEST__INIT;
	request.linger = lingers;
	return CROWD_SEND(0, resume, RESUME, &request);
}

/* A client that leaves closes its connection behind it. But it does not overtake what its session sent before. */
TEST(a_farewell_goes_first_where_nothing_is_before_it)
{
	scatter();
	crowd.peers[0].session.has_token = true; /* as with a state */
	uint64_t compact = crowd_compact(2);
	uint64_t farewell = linger(false);
	ck_assert_int_eq(crowd_status(0, farewell), 0);
	uint64_t stays = linger(true);
	farewell = linger(false);
	ck_assert_int_eq(crowd_status(2, compact), -1);
	ck_assert_int_eq(crowd_status(0, stays), -1);
	ck_assert_int_eq(crowd_status(0, farewell), -1);
	crowd_finish_all();
	ck_assert_int_eq(crowd_status(0, stays), 0);
	ck_assert_int_eq(crowd_status(0, farewell), 0);
	crowd.peers[0].session.has_token = false;
}

TEST(it_comes_in_steps_and_nobody_notices)
{
	unsigned steps = 0;
	scatter();
	uint64_t dry = dry_run(2);
	crowd_finish_all();
	uint64_t wet = crowd_compact(2);
	uint64_t read = crowd_read(0, "last");
	while (crowd_status(2, wet) < 0) {
		ck_assert_uint_eq(crowd.n_tasks, 1);
		ck_assert_int_eq(crowd_status(0, read), -1);
		crowd_finish(0);
		steps++;
	}
	ck_assert_uint_ge(steps, 3);
	ck_assert_int_eq(crowd_status(2, wet), 0);
	ck_assert_int_eq(crowd_value(0, read), 9);
	ck_assert_uint_eq(crowd_reply(2, wet)->compacted->n_moves, N + 1);
	ck_assert_uint_eq(crowd_reply(2, dry)->compacted->n_moves, N + 1);
	for (unsigned i = 0; i <= N; i++) {
		const Npumem__V1__Move *is = crowd_reply(2, wet)->compacted->moves[i];
		const Npumem__V1__Move *was = crowd_reply(2, dry)->compacted->moves[i];
		ck_assert_int_eq(is->from_address, was->from_address);
		ck_assert_int_eq(is->to_address, was->to_address);
		ck_assert_int_eq(is->to_address, 128 * (int64_t)i);
	}
	ck_assert_int_eq(crowd_reply(2, wet)->compacted->largest_free_after,
			 crowd_reply(2, wet)->compacted->largest_free_before + 128);
	world_check(&crowd.world);
}

/* What the first one in line keeps from the second one is free while tensors move. */
TEST(nobody_in_line_is_served_while_it_moves)
{
	Npumem__V1__CancelRequest cancel = NPUMEM__V1__CANCEL_REQUEST__INIT;
	scatter();
	cancel.request_id = alloc_wait(0, "large", CROWD_NPU_BYTES);
	uint64_t small = alloc_wait(0, "small", SHORT_W);
	uint64_t compact = crowd_compact(2);
	crowd_finish(0);
	CROWD_SEND(0, cancel, CANCEL, &cancel);
	ck_assert_int_eq(crowd_status(0, cancel.request_id), NPUMEM_CANCELLED);
	ck_assert_int_eq(crowd_status(2, compact), -1);
	ck_assert_int_eq(crowd_status(0, small), -1);
	crowd_finish_all();
	ck_assert_int_eq(crowd_status(2, compact), 0);
	ck_assert_int_eq(crowd_status(0, small), 0);
}

TEST(cancelled_it_ends_with_what_has_moved)
{
	Npumem__V1__CancelRequest cancel = NPUMEM__V1__CANCEL_REQUEST__INIT;
	scatter();
	uint64_t compact = crowd_compact(2);
	crowd_finish(0);
	cancel.request_id = compact;
	CROWD_SEND(2, cancel, CANCEL, &cancel);
	ck_assert_int_eq(crowd_status(2, compact), -1);
	crowd_finish(0);
	ck_assert_int_eq(crowd_status(2, compact), NPUMEM_CANCELLED);
	ck_assert_uint_eq(crowd.n_tasks, 0);
	size_t n = crowd_reply(2, compact)->compacted->n_moves;
	ck_assert_uint_gt(n, 0);
	ck_assert_uint_lt(n, N);
	ck_assert_int_eq(crowd_value(0, crowd_read(0, "last")), 9);
	world_check(&crowd.world);
	/* It can be taken up again. */
	compact = crowd_compact(2);
	crowd_finish_all();
	ck_assert_uint_eq(crowd_reply(2, compact)->compacted->n_moves, N + 1 - n);
	ck_assert_int_eq(crowd_value(0, crowd_read(0, "last")), 9);
}

TEST(its_client_may_go_between_any_two_steps)
{
	for (unsigned steps = 0; steps < 4; steps++) {
		crowd_again();
		scatter();
		crowd_compact(2);
		for (unsigned i = 0; i < steps && crowd.n_tasks; i++)
			crowd_finish(0);
		crowd_close(2);
		crowd_finish_all();
		ck_assert_uint_eq(crowd.peers[2].n_drained, 1);
		ck_assert_int_eq(crowd_value(0, crowd_read(0, "last")), 9);
	}
}

/* The room between two steps may still be in use. */
TEST(who_waits_for_room_is_served_at_its_end)
{
	enum { ALL_W = CROWD_NPU_BYTES };
	uint64_t most, waits, compact;
	scatter();
	/* All but the gap, and as much behind the last. */
	most = crowd_alloc(0, "most", ALL_W - 128 * (N + 2) - 128);
	ck_assert_int_eq(crowd_status(0, most), 0);
	waits = alloc_wait(0, "two", 256);
	ck_assert_int_eq(crowd_status(0, waits), -1);
	compact = crowd_compact(2);
	crowd_finish(0);
	ck_assert_int_eq(crowd_status(2, compact), -1);
	ck_assert_int_eq(crowd_status(0, waits), -1);
	/* Another's end makes the line be looked at again. */
	crowd_alloc(2, "", SHORT_W);
	ck_assert_int_eq(crowd_status(0, waits), -1);
	crowd_finish_all();
	ck_assert_int_eq(crowd_status(2, compact), 0);
	ck_assert_int_eq(crowd_status(0, waits), 0);
	world_check(&crowd.world);
}

/* Wherever memory runs out, tensors are whole, and what is told of has moved. */
TEST(host_memory_may_run_out_anywhere)
{
	bool hit = true;
	for (size_t i = 1; hit; i++) {
		uint64_t compact;
		int status;
		crowd_again();
		scatter();
		crowd.world.fail_at = crowd.world.n_allocs + i;
		compact = crowd_compact(2);
		crowd_finish_all();
		hit = crowd.world.n_allocs >= crowd.world.fail_at;
		crowd.world.fail_at = 0;
		status = crowd_status(2, compact);
		ck_assert(status >= 0 || crowd.peers[2].is_broken);
		ck_assert(status < 1 || status == NPUMEM_RESOURCE_EXHAUSTED);
		ck_assert_int_eq(crowd_value(0, crowd_read(0, "last")), 9);
	}
}

/* A kernel and a compaction of one uid: what comes after them of its own waits, what others send does not. */
TEST(what_its_uid_lets_run_holds_nobody_else_back)
{
	crowd_become(2, 1002);
	crowd_alloc(0, "long", LONG_W);
	crowd_alloc(0, "short", SHORT_W);
	crowd_alloc(2, "others", SHORT_W);
	uint64_t run = crowd_fill(0, "long", 1);
	ck_assert_uint_eq(crowd.n_tasks, 1);
	uint64_t compact = crowd_compact(1);
	uint64_t own = crowd_fill(0, "short", 2);
	uint64_t other = crowd_fill(2, "others", 3);
	ck_assert_int_eq(crowd_status(2, other), 0);
	ck_assert_int_eq(crowd_status(2, crowd_alloc(2, "more", SHORT_W)), 0);
	ck_assert_int_eq(crowd_status(0, own), -1);
	crowd_finish(0);
	ck_assert_int_eq(crowd_status(0, run), 0);
	/* It has begun, and the device for itself. */
	ck_assert_uint_eq(crowd.n_tasks, 1);
	other = crowd_fill(2, "others", 4);
	ck_assert_int_eq(crowd_status(2, other), -1);
	crowd_finish_all();
	ck_assert_int_eq(crowd_status(1, compact), 0);
	ck_assert_int_eq(crowd_status(0, own), 0);
	ck_assert_int_eq(crowd_status(2, other), 0);
}

/* Others may send as much as they like: what runs by the time that its own is over is the last that it waits for.
 */
TEST(others_do_not_keep_it_waiting_for_ever)
{
	uint64_t first, second, compact;
	crowd_become(2, 1002);
	crowd_alloc(0, "long", LONG_W);
	crowd_alloc(2, "first", LONG_W);
	crowd_alloc(2, "second", LONG_W);
	crowd_fill(0, "long", 1);
	compact = crowd_compact(1);
	first = crowd_fill(2, "first", 2);
	ck_assert_uint_eq(crowd.n_tasks, 2);
	crowd_finish(0);
	second = crowd_fill(2, "second", 3);
	ck_assert_uint_eq(crowd.n_tasks, 1);
	crowd_finish(0);
	ck_assert_int_eq(crowd_status(2, first), 0);
	ck_assert_int_eq(crowd_status(2, second), -1);
	while (crowd_status(1, compact) < 0)
		crowd_finish(0);
	ck_assert_int_eq(crowd_status(2, second), -1);
	crowd_finish_all();
	ck_assert_int_eq(crowd_status(2, second), 0);
}

/* Given up while it is held back, it leaves nobody waiting. */
TEST(its_client_may_go_while_it_is_held_back)
{
	crowd_alloc(0, "long", LONG_W);
	crowd_alloc(0, "short", SHORT_W);
	crowd_fill(0, "long", 1);
	crowd_compact(1);
	uint64_t own = crowd_fill(0, "short", 2);
	ck_assert_int_eq(crowd_status(0, own), -1);
	crowd_close(1);
	ck_assert_int_eq(crowd_status(0, own), 0);
}
