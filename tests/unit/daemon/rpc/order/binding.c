/* What a request was found to may do when it came is looked at again when its turn comes. */
#include "daemon/rpc/order/claim.h"

#include "tests/unit/daemon/rpc/crowd.h"

enum { OWNER, OTHER, THIRD };

static uint64_t grant(const char *name, uint32_t uid, int access)
{
	Npumem__V1__Ref ref = talk_ref(0, name);
	Npumem__V1__GrantRequest request = {MESSAGE(grant_request), .tensor = &ref, .uid = uid,
					    .access = (Npumem__V1__Access)access};
	return CROWD_SEND(OWNER, grant, GRANT, &request);
}

/* 1002 may do so with "a" of 1001, of which a long fill is under way. */
static void init(int access)
{
	crowd_become(OTHER, 1002);
	crowd_become(THIRD, 1003);
	ck_assert_int_eq(crowd_status(OWNER, crowd_alloc(OWNER, "a", LONG_W)), 0);
	ck_assert_int_eq(crowd_status(OWNER, grant("a", 1002, access)), 0);
	crowd_fill(OWNER, "a", 1);
	ck_assert_uint_eq(crowd.n_tasks, 1);
}

static void check_refused(uint64_t id, int status)
{
	ck_assert_int_eq(crowd_status(OTHER, id), -1);
	crowd_finish_all();
	ck_assert_int_eq(crowd_status(OTHER, id), status);
	ck_assert_int_eq(crowd_value(OWNER, crowd_read(OWNER, "a")), 2);
}

TEST(what_is_written_after_a_grant_was_taken_back_is_not_read)
{
	init(NPUMEM__V1__ACCESS__ACCESS_READ);
	grant("a", 1002, NPUMEM__V1__ACCESS__ACCESS_NONE);
	crowd_write(OWNER, "a", 1, 2);
	check_refused(crowd_read(OTHER, "1001:a"), NPUMEM_NOT_FOUND);
}

TEST(who_may_only_read_by_then_does_not_write)
{
	init(NPUMEM__V1__ACCESS__ACCESS_WRITE);
	grant("a", 1002, NPUMEM__V1__ACCESS__ACCESS_READ);
	crowd_write(OWNER, "a", 1, 2);
	check_refused(crowd_fill(OTHER, "1001:a", 3), NPUMEM_PERMISSION_DENIED);
}

/* Nor is it told of, or anything done of a list that has it in the end. */
TEST(nothing_else_is_done_with_it)
{
	const struct crowd_op ops[] = {{.kind = 'f', .first = "mine", .value = 4},
				       {.kind = 'c', .first = "mine", .second = "1001:a"}};
	init(NPUMEM__V1__ACCESS__ACCESS_READ);
	crowd_alloc(OTHER, "mine", LONG_W);
	grant("a", 1002, NPUMEM__V1__ACCESS__ACCESS_NONE);
	crowd_write(OWNER, "a", 1, 2);
	uint64_t open = crowd_open(OTHER, "1001:a");
	uint64_t list = crowd_list(OTHER, ops, 2);
	crowd_finish_all();
	ck_assert_int_eq(crowd_status(OTHER, open), NPUMEM_NOT_FOUND);
	ck_assert_int_eq(crowd_status(OTHER, list), NPUMEM_NOT_FOUND);
	uint64_t read = crowd_read(OTHER, "mine");
	ck_assert_int_eq(crowd_status(OTHER, read), NPUMEM_FAILED_PRECONDITION);
}

/* With more tensors than a request has room for at first. */
TEST(each_of_a_long_list_is_looked_at)
{
	struct crowd_op ops[3 * BINDING_FEW];
	init(NPUMEM__V1__ACCESS__ACCESS_READ);
	crowd_alloc(OTHER, "mine", SHORT_W);
	for (unsigned i = 0; i < 3 * BINDING_FEW; i++)
		ops[i] = (struct crowd_op){.kind = 'f', .first = "mine", .value = 4};
	ops[3 * BINDING_FEW - 1] = (struct crowd_op){.kind = 'r', .first = "1001:a"};
	grant("a", 1002, NPUMEM__V1__ACCESS__ACCESS_NONE);
	crowd_write(OWNER, "a", 1, 2);
	check_refused(crowd_list(OTHER, ops, 3 * BINDING_FEW), NPUMEM_NOT_FOUND);
}

/* What is under way ends before a grant takes effect. */
TEST(a_grant_waits_for_who_looks)
{
	init(NPUMEM__V1__ACCESS__ACCESS_READ);
	crowd_alloc(OWNER, "b", LONG_W);
	crowd_finish_all();
	crowd_copy(OWNER, "b", "a");
	ck_assert_uint_eq(crowd.n_tasks, 1);
	uint64_t granted = grant("a", 1002, NPUMEM__V1__ACCESS__ACCESS_NONE);
	ck_assert_int_eq(crowd_status(OWNER, granted), -1);
	crowd_finish_all();
	ck_assert_int_eq(crowd_status(OWNER, granted), 0);
}

/* Who may write it does not own it. */
TEST(what_only_its_owner_may)
{
	Npumem__V1__Ref ref = talk_ref(0, "1001:a");
	init(NPUMEM__V1__ACCESS__ACCESS_WRITE);
	crowd_finish_all();
	Npumem__V1__GrantRequest request = {MESSAGE(grant_request), .tensor = &ref, .uid = 1003,
					    .access = NPUMEM__V1__ACCESS__ACCESS_READ};
	ck_assert_int_eq(crowd_status(OTHER, crowd_seal(OTHER, "1001:a")), NPUMEM_PERMISSION_DENIED);
	ck_assert_int_eq(crowd_status(OTHER, crowd_free(OTHER, "1001:a")), NPUMEM_PERMISSION_DENIED);
	ck_assert_int_eq(crowd_status(OTHER, CROWD_SEND(OTHER, grant, GRANT, &request)), NPUMEM_PERMISSION_DENIED);
	ck_assert_int_eq(crowd_status(THIRD, crowd_open(THIRD, "1001:a")), NPUMEM_NOT_FOUND);
	crowd_fill(OTHER, "1001:a", 5);
	crowd_finish_all();
	ck_assert_int_eq(crowd_value(OWNER, crowd_read(OWNER, "a")), 5);
}

TEST(what_came_before_it_was_taken_back_goes_on)
{
	init(NPUMEM__V1__ACCESS__ACCESS_READ);
	uint64_t read = crowd_read(OTHER, "1001:a");
	grant("a", 1002, NPUMEM__V1__ACCESS__ACCESS_NONE);
	crowd_write(OWNER, "a", 1, 2);
	crowd_finish_all();
	ck_assert_int_eq(crowd_value(OTHER, read), 1);
}
