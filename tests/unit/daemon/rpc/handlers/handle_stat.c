/* What a uid is told of what others do. */
#include "tests/unit/daemon/rpc/talk.h"

static int stat(struct talk *talk, struct session *session, bool details, bool reset)
{
	Npumem__V1__StatRequest request = NPUMEM__V1__STAT_REQUEST__INIT;

	request.details = details;
	request.reset = reset;
	return TALK_AS(talk, session, stat, STAT, &request);
}

START_TEST(only_its_own_uid_and_sessions)
{
	struct talk talk;
	struct session root;

	talk_init(&talk);
	session_init(&root, &talk.world.service, 0, 0, NULL);
	ck_assert_int_eq(stat(&talk, &talk.stranger, true, false), 0);
	ck_assert_uint_eq(talk.response->stat->n_uids, 1);
	ck_assert_uint_eq(talk.response->stat->uids[0]->uid, 1002);
	ck_assert_uint_eq(talk.response->stat->n_clients, 1);
	ck_assert_uint_eq(talk.response->stat->clients[0]->session, talk.stranger.id);
	ck_assert_int_eq(stat(&talk, &talk.session, true, false), 0);
	ck_assert_uint_eq(talk.response->stat->n_clients, 2);
	ck_assert_int_eq(stat(&talk, &root, true, false), 0);
	ck_assert_uint_eq(talk.response->stat->n_uids, 3);
	ck_assert_uint_eq(talk.response->stat->n_clients, 4);
	session_deinit(&root);
	talk_deinit(&talk);
}
END_TEST

START_TEST(only_administrators_reset)
{
	struct talk talk;
	struct session root;

	talk_init(&talk);
	session_init(&root, &talk.world.service, 0, 0, NULL);
	ck_assert_int_eq(stat(&talk, &talk.session, false, true), NPUMEM_PERMISSION_DENIED);
	ck_assert_int_eq(stat(&talk, &root, false, true), 0);
	session_deinit(&root);
	talk_deinit(&talk);
}
END_TEST

Suite *suite_handle_stat(void)
{
	Suite *suite = suite_create("rpc/handle_stat");
	TCase *tests = tcase_create("handle_stat");

	tcase_add_test(tests, only_its_own_uid_and_sessions);
	tcase_add_test(tests, only_administrators_reset);
	suite_add_tcase(suite, tests);
	return suite;
}
