/* What a uid learns of what others do, and how an answer with very many sessions is made. */
#include "tests/support/loop_turns.h"
#include "tests/unit/daemon/rpc/crowd.h"

FIXTURE_OBJECT(struct talk, talk, talk_init(&talk), talk_deinit(&talk))

static int stat(struct session *session, bool details, bool reset)
{
	Npumem__V1__StatRequest request = {MESSAGE(stat_request), .details = details, .reset = reset};
	return TALK_AS(&talk, session, stat, STAT, &request);
}

TEST(only_its_own_uid_and_sessions)
{
	struct session root;
	session_init(&root, &talk.world.service, 0, 0, NULL);
	ck_assert_int_eq(stat(&talk.stranger, true, false), 0);
	ck_assert_uint_eq(talk.response->stat->n_uids, 1);
	ck_assert_uint_eq(talk.response->stat->uids[0]->uid, 1002);
	ck_assert_uint_eq(talk.response->stat->n_clients, 1);
	ck_assert_uint_eq(talk.response->stat->clients[0]->session, talk.stranger.id);
	ck_assert_int_eq(stat(&talk.session, true, false), 0);
	ck_assert_uint_eq(talk.response->stat->n_clients, 2);
	ck_assert_int_eq(stat(&root, true, false), 0);
	ck_assert_uint_eq(talk.response->stat->n_uids, 3);
	ck_assert_uint_eq(talk.response->stat->n_clients, 4);
	session_deinit(&root);
}

TEST(only_administrators_reset)
{
	struct session root;
	session_init(&root, &talk.world.service, 0, 0, NULL);
	ck_assert_int_eq(stat(&talk.session, false, true), NPUMEM_PERMISSION_DENIED);
	ck_assert_int_eq(stat(&root, false, true), 0);
	session_deinit(&root);
}

static uint32_t account_of_1001(const void *accounts, uint32_t uid)
{
	(void)accounts;
	return uid == 200000 || uid == 200001 ? 1001 : uid;
}

/* Alice is 1001; her containers' uids are 200000 and 200001. */
TEST(subordinate_uids_are_their_user)
{
	struct session sub;
	talk.world.service.limits.account = account_of_1001;
	session_init(&sub, &talk.world.service, 200000, 0, NULL);
	for (unsigned i = 0; i < 2; i++) {
		ck_assert_int_eq(stat(i ? &talk.session : &sub, true, false), 0);
		ck_assert_uint_eq(talk.response->stat->n_uids, 1);
		ck_assert_uint_eq(talk.response->stat->uids[0]->uid, 1001);
		ck_assert_uint_eq(talk.response->stat->uids[0]->sessions, 3);
		ck_assert_uint_eq(talk.response->stat->n_clients, 3);
	}
	ck_assert_int_eq(stat(&talk.stranger, true, false), 0);
	ck_assert_uint_eq(talk.response->stat->n_clients, 1);
	session_deinit(&sub);
}

enum { MANY = 16000, STEP_MOST = 256 };

static uint64_t ask_details(unsigned from)
{
	Npumem__V1__StatRequest request = NPUMEM__V1__STAT_REQUEST__INIT;
	request.details = true;
	return CROWD_SEND(from, stat, STAT, &request);
}

static struct session *begin_many(void)
{
	struct session *sessions = calloc(MANY, sizeof(*sessions));
	for (unsigned i = 0; i < MANY; i++)
		ck_assert_int_eq(session_init(&sessions[i], &crowd.world.service, 2000 + i % 100, 1, NULL), 0);
	return sessions;
}

static void end_many(struct session *sessions, unsigned from)
{
	for (unsigned i = from; i < MANY; i++)
		session_deinit(&sessions[i]);
	free(sessions);
}

TEST(very_many_sessions_take_many_turns)
{
	unsigned turns = 0;
	crowd_become(0, 0);
	struct session *sessions = begin_many();
	loop_turns_begin(crowd.rpc);
	uint64_t id = ask_details(0);
	while (crowd_status(0, id) < 0) {
		/* Others' requests run in between. */
		uint64_t alloc = crowd_alloc(1, "", SHORT_W);
		ck_assert(loop_turns_one(crowd.rpc));
		ck_assert_int_eq(crowd_status(1, alloc), 0);
		turns++;
	}
	ck_assert_uint_ge(turns, MANY / STEP_MOST);
	const Npumem__V1__Stat *stat = crowd_reply(0, id)->stat;
	ck_assert_uint_eq(stat->n_clients, MANY + PEERS);
	for (unsigned i = 1; i < stat->n_clients; i++)
		ck_assert_uint_lt(stat->clients[i]->session, stat->clients[i - 1]->session);
	ck_assert_uint_eq(stat->n_uids, 102);
	/* An ordinary user's answer does not depend on them. */
	id = ask_details(1);
	ck_assert_int_eq(crowd_status(1, id), 0);
	ck_assert_uint_eq(crowd_reply(1, id)->stat->n_clients, PEERS - 1);
	loop_turns_end(crowd.rpc);
	end_many(sessions, 0);
}

TEST(sessions_end_and_begin_while_they_are_listed)
{
	enum { LATE = 300 };
	struct session *sessions, late[LATE];
	const Npumem__V1__Stat *stat;
	Npumem__V1__CancelRequest cancel = NPUMEM__V1__CANCEL_REQUEST__INIT;
	unsigned ended = 0, n_late = 0;
	uint64_t ids[2];
	crowd_become(0, 0);
	sessions = begin_many();
	loop_turns_begin(crowd.rpc);
	ids[0] = ask_details(0);
	ck_assert(loop_turns_one(crowd.rpc));
	ids[1] = ask_details(0);
	while (crowd_status(0, ids[1]) < 0) {
		ck_assert(loop_turns_one(crowd.rpc));
		/* The oldest, which are listed last, and at least the one that would be next, end first. */
		for (unsigned i = 0; i < 200 && ended < MANY; i++)
			session_deinit(&sessions[ended++]);
		if (n_late < LATE)
			session_init(&late[n_late++], &crowd.world.service, 5000, 1, NULL);
	}
	for (unsigned i = 0; i < 2; i++) {
		stat = crowd_reply(0, ids[i])->stat;
		ck_assert_uint_le(stat->n_clients, MANY + PEERS + LATE);
		ck_assert_uint_ge(stat->n_clients, MANY / 4);
		for (unsigned k = 1; k < stat->n_clients; k++)
			ck_assert_uint_lt(stat->clients[k]->session, stat->clients[k - 1]->session);
	}
	cancel.request_id = ask_details(0);
	ck_assert(loop_turns_one(crowd.rpc));
	CROWD_SEND(0, cancel, CANCEL, &cancel);
	loop_turns_all(crowd.rpc);
	ck_assert_int_eq(crowd_status(0, cancel.request_id), NPUMEM_CANCELLED);
	ck_assert_ptr_null(crowd.world.service.walks);
	/* A client that goes takes its walk with it. */
	ask_details(0);
	ck_assert(loop_turns_one(crowd.rpc));
	crowd_close(0);
	loop_turns_all(crowd.rpc);
	ck_assert_uint_eq(crowd.peers[0].n_drained, 1);
	ck_assert_ptr_null(crowd.world.service.walks);
	loop_turns_end(crowd.rpc);
	while (n_late)
		session_deinit(&late[--n_late]);
	end_many(sessions, ended);
}

TEST(host_memory_may_run_out)
{
	bool hit = true;
	for (size_t i = 1; hit; i++) {
		uint64_t id;
		crowd_again();
		crowd.world.fail_at = crowd.world.n_allocs + i;
		id = ask_details(0);
		hit = crowd.world.n_allocs >= crowd.world.fail_at;
		crowd.world.fail_at = 0;
		ck_assert(crowd.peers[0].is_broken || crowd_status(0, id) == 0 ||
			  crowd_status(0, id) == NPUMEM_RESOURCE_EXHAUSTED);
		ck_assert_ptr_null(crowd.world.service.walks);
	}
}
