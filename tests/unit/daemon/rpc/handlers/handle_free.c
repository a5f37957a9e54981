/* Frees among what others have under way. */
#include "tests/unit/daemon/rpc/crowd.h"

static uint64_t list(struct crowd *crowd, unsigned from)
{
	Npumem__V1__ListRequest request = NPUMEM__V1__LIST_REQUEST__INIT;

	return CROWD_SEND(crowd, from, list, LIST, &request);
}

/* What a free that came first finds only when it is looked at may be a view whose own answer is not out yet. */
START_TEST(a_view_is_answered_before_it_goes)
{
	struct crowd crowd;
	uint64_t view, free;

	crowd_init(&crowd);
	crowd_alloc(&crowd, 0, "A", LONG_W);
	crowd_alloc(&crowd, 0, "B", LONG_W);
	crowd_fill(&crowd, 1, "A", 1);
	list(&crowd, 1);
	free = crowd_free(&crowd, 1, "v");
	crowd_fill(&crowd, 0, "B", 1);
	view = crowd_view(&crowd, 0, "v", 0, "B", LONG_W);
	ck_assert_uint_eq(crowd.n_tasks, 2);
	ck_assert_int_eq(crowd_status(&crowd, 0, view), -1);
	crowd_finish(&crowd, 0);
	ck_assert_int_eq(crowd_status(&crowd, 1, free), -1);
	crowd_finish_all(&crowd);
	ck_assert_int_eq(crowd_status(&crowd, 0, view), 0);
	ck_assert_str_eq(crowd_reply(&crowd, 0, view)->tensor->name, "v");
	ck_assert_int_eq(crowd_status(&crowd, 1, free), 0);
	crowd_deinit(&crowd);
}
END_TEST

Suite *suite_handle_free(void)
{
	Suite *suite = suite_create("rpc/handle_free");
	TCase *tcase = tcase_create("all");

	tcase_add_test(tcase, a_view_is_answered_before_it_goes);
	suite_add_tcase(suite, tcase);
	return suite;
}
