/* Frees among what others have under way. */
#include "tests/unit/daemon/rpc/crowd.h"

static uint64_t list(unsigned from)
{
	Npumem__V1__ListRequest request = NPUMEM__V1__LIST_REQUEST__INIT;
	return CROWD_SEND(from, list, LIST, &request);
}

/* What a free that came first finds only when it is looked at may be a view whose own answer is not out yet. */
TEST(a_view_is_answered_before_it_goes)
{
	crowd_alloc(0, "A", LONG_W);
	crowd_alloc(0, "B", LONG_W);
	crowd_fill(1, "A", 1);
	list(1);
	uint64_t free = crowd_free(1, "v");
	crowd_fill(0, "B", 1);
	uint64_t view = crowd_view(0, "v", 0, "B", LONG_W);
	ck_assert_uint_eq(crowd.n_tasks, 2);
	ck_assert_int_eq(crowd_status(0, view), -1);
	crowd_finish(0);
	ck_assert_int_eq(crowd_status(1, free), -1);
	crowd_finish_all();
	ck_assert_int_eq(crowd_status(0, view), 0);
	ck_assert_str_eq(crowd_reply(0, view)->tensor->name, "v");
	ck_assert_int_eq(crowd_status(1, free), 0);
}

static uint64_t rename_to(unsigned from, const char *old, const char *name)
{
	Npumem__V1__Ref ref = talk_ref(0, old);
	Npumem__V1__RenameRequest request = {MESSAGE(rename_request), .tensor = &ref, .name = (char *)name};
	return CROWD_SEND(from, rename, RENAME, &request);
}

static size_t n_listed(unsigned from)
{
	uint64_t id = list(from);
	ck_assert_int_eq(crowd_status(from, id), 0);
	return crowd_reply(from, id)->list->n_tensors;
}

/* A name is free, and nobody is told that its tensor is gone, when nothing uses the bytes any more: not earlier,
 * as the daemon may be killed and all of it be there again. */
TEST(a_name_is_free_when_the_free_takes_effect)
{
	static const char strangers[] = "1001:A";
	uint64_t free, open, alloc, view, renamed;
	crowd_become(2, 1002);
	crowd_alloc(0, "A", LONG_W);
	crowd_alloc(0, "B", LONG_W);
	for (unsigned kind = 0; kind < 4; kind++) {
		crowd_fill(0, "A", 1);
		free = crowd_free(0, "A");
		ck_assert_uint_eq(n_listed(1), 2);
		open = kind == 0 ? crowd_open(1, "A") : 0;
		alloc = kind == 1 ? crowd_alloc(1, "A", SHORT_W) : 0;
		view = kind == 2 ? crowd_view(1, "A", 0, "B", LONG_W) : 0;
		renamed = kind == 3 ? rename_to(1, "B", "A") : 0;
		ck_assert_uint_eq(crowd.n_tasks, 1);
		ck_assert_int_eq(crowd_status(1, open + alloc + view + renamed), -1);
		/* Who may not see it is not told that it goes. */
		ck_assert_int_eq(crowd_status(2, crowd_open(2, strangers)), NPUMEM_NOT_FOUND);
		ck_assert_int_eq(crowd_status(2, crowd_alloc(2, "A", SHORT_W)), 0);
		crowd_free(2, "A");
		crowd_finish(0);
		ck_assert_uint_eq(crowd.n_tasks, 1);
		ck_assert_int_eq(crowd_status(0, free), -1);
		ck_assert_int_eq(crowd_status(1, open + alloc + view + renamed), -1);
		crowd_finish_all();
		ck_assert_int_eq(crowd_status(0, free), 0);
		ck_assert_int_eq(crowd_status(1, open + alloc + view + renamed), kind ? 0 : NPUMEM_NOT_FOUND);
		ck_assert_uint_eq(n_listed(1), kind == 1 || kind == 2 ? 2 : 1);
		if (kind != 3)
			crowd_free(1, kind ? "A" : "");
		crowd_finish_all();
		crowd_alloc(1, kind == 3 ? "B" : "A", LONG_W);
	}
}

/* From its arrival on nobody finds the tensor: so it is done, although its client ends or cancels it. */
TEST(a_free_that_has_arrived_is_done, .to = 2)
{
	Npumem__V1__CancelRequest cancel = NPUMEM__V1__CANCEL_REQUEST__INIT;
	crowd_alloc(0, "A", LONG_W);
	crowd_fill(1, "A", 1);
	cancel.request_id = crowd_free(0, "A");
	if (_i)
		CROWD_SEND(0, cancel, CANCEL, &cancel);
	else
		crowd_close(0);
	crowd_finish_all();
	ck_assert_int_eq(world_n_tensors(&crowd.world), 0);
	ck_assert_int_eq(crowd_status(1, crowd_alloc(1, "A", SHORT_W)), 0);
}

/* It would be told of what is not there any more. */
TEST(who_may_do_less_waits_to_see_too)
{
	Npumem__V1__Ref ref = talk_ref(0, "A");
	crowd_become(1, 1002);
	crowd_alloc(0, "A", LONG_W);
	Npumem__V1__GrantRequest request = {MESSAGE(grant_request), .tensor = &ref, .uid = 1002,
					    .access = NPUMEM__V1__ACCESS__ACCESS_READ};
	ck_assert_int_eq(crowd_status(0, CROWD_SEND(0, grant, GRANT, &request)), 0);
	uint64_t fill = crowd_fill(1, "1001:A", 1);
	ck_assert_int_eq(crowd_status(1, fill), NPUMEM_PERMISSION_DENIED);
	crowd_fill(0, "A", 1);
	crowd_free(0, "A");
	fill = crowd_fill(1, "1001:A", 1);
	ck_assert_int_eq(crowd_status(1, fill), -1);
	crowd_finish_all();
	ck_assert_int_eq(crowd_status(1, fill), NPUMEM_NOT_FOUND);
}

/* What waits at its session's gate has not arrived: a free that others sent later goes before it. */
TEST(what_waits_at_the_gate_is_behind_a_free)
{
	crowd_alloc(0, "C", LONG_W);
	crowd_fill(1, "C", 1);
	list(1);
	uint64_t fill = crowd_fill(1, "A", 5);
	uint64_t alloc = crowd_alloc(1, "A", SHORT_W);
	crowd_alloc(0, "A", LONG_W);
	crowd_fill(0, "A", 1);
	uint64_t free = crowd_free(0, "A");
	crowd_finish(0);
	ck_assert_int_eq(crowd_status(1, fill), -1);
	ck_assert_int_eq(crowd_status(1, alloc), -1);
	ck_assert_int_eq(crowd_status(0, free), -1);
	crowd_finish_all();
	ck_assert_int_eq(crowd_status(1, fill), NPUMEM_NOT_FOUND);
	ck_assert_int_eq(crowd_status(1, alloc), 0);
	ck_assert_int_eq(crowd_status(0, free), 0);
}

TEST(nobody_goes_before_a_free_that_has_arrived)
{
	Npumem__V1__Ref refs[2] = {talk_ref(0, "A"), talk_ref(0, "C")}, *both[2] = {&refs[0], &refs[1]};
	uint64_t renamed, free;
	crowd_alloc(0, "C", LONG_W);
	crowd_fill(1, "C", 1);
	renamed = rename_to(1, "A", "Q");
	crowd_alloc(0, "A", LONG_W);
	Npumem__V1__FreeRequest request = {MESSAGE(free_request), .n_tensors = 2, .tensors = both};
	free = CROWD_SEND(0, free, FREE, &request);
	/* Both have waited for the same. */
	crowd_finish(0);
	ck_assert_int_eq(crowd_status(1, renamed), NPUMEM_NOT_FOUND);
	crowd_finish_all();
	ck_assert_int_eq(crowd_status(0, free), 0);
	ck_assert_int_eq(crowd_reply(0, free)->freed->tensors, 2);
}

/* Of two calls in one message the later one counts, and nothing of the earlier one does: what takes long is left
 * to a thread. */
TEST(a_payload_before_it_does_not_keep_it_on_the_loop, .to = 2)
{
	static uint8_t payload[] = {1};
	Npumem__V1__ListRequest list = NPUMEM__V1__LIST_REQUEST__INIT;
	Npumem__V1__Request first = NPUMEM__V1__REQUEST__INIT, request = NPUMEM__V1__REQUEST__INIT;
	Npumem__V1__Ref ref = talk_ref(0, "slow"), *refs = &ref;
	crowd_slow("slow");
	Npumem__V1__WriteRequest write = {MESSAGE(write_request), .tensor = &ref,
					  .data = (ProtobufCBinaryData){sizeof(payload), payload}};
	first.call_case = NPUMEM__V1__REQUEST__CALL_WRITE;
	first.write = &write;
	request.call_case = _i ? NPUMEM__V1__REQUEST__CALL_FREE : NPUMEM__V1__REQUEST__CALL_LIST;
	Npumem__V1__FreeRequest free = {MESSAGE(free_request), .n_tensors = 1, .tensors = &refs};
	if (_i)
		request.free = &free;
	else
		request.list = &list;
	uint64_t id = crowd_send_behind(0, &first, &request);
	ck_assert_uint_eq(crowd.n_tasks, 1);
	ck_assert_int_eq(crowd_status(0, id), -1);
	crowd_finish_all();
	ck_assert_int_eq(crowd_status(0, id), 0);
}
