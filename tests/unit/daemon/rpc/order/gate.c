/* What waits at a session's gate, and what passes. */
#include "daemon/rpc/order/gate.h"

#include "tests/support/loop_turns.h"
#include "tests/unit/daemon/rpc/crowd.h"

/* The answer tells of the view's bytes, so it comes behind what its session wrote there, also where that waits
 * itself. */
TEST(a_view_is_told_behind_what_its_session_wrote, .to = 2)
{
	ck_assert_int_eq(crowd_status(0, crowd_alloc(0, "A", LONG_W)), 0);
	ck_assert_int_eq(crowd_status(0, crowd_view(0, "part", 0, "A", LONG_W - 1)), 0);
	crowd_fill(0, "A", 1);
	uint64_t fill = crowd_fill(1, _i ? "A" : "part", 2);
	uint64_t view = crowd_view(1, "v", 0, "A", LONG_W);
	ck_assert_uint_eq(crowd.n_tasks, 1);
	ck_assert_int_eq(crowd_status(1, fill), -1);
	crowd_finish_all();
	ck_assert_int_eq(crowd_status(1, fill), 0);
	ck_assert_int_eq(crowd_status(1, view), 0);
	ck_assert_uint_lt(crowd.peers[1].replies[fill].turn, crowd.peers[1].replies[view].turn);
	ck_assert_int_eq(crowd_value(1, crowd_read(1, "v")), 2);
}

/* It waits for what came first only: what is sent next may use it, and others go before its answer. */
TEST(what_is_sent_behind_a_view_may_use_it)
{
	crowd_alloc(0, "A", LONG_W);
	crowd_fill(0, "A", 1);
	uint64_t view = crowd_view(1, "v", 0, "A", LONG_W);
	uint64_t alloc = crowd_alloc(1, "B", SHORT_W);
	ck_assert_int_eq(crowd_status(1, view), -1);
	ck_assert_int_eq(crowd_status(1, alloc), 0);
	uint64_t other = crowd_fill(1, "B", 3);
	ck_assert_int_eq(crowd_status(1, other), 0);
	crowd_finish_all();
	ck_assert_int_eq(crowd_status(1, view), 0);
}

/* A user's requests that have arrived access no more than so much, over all of its connections; the others wait at
 * their gates, also where they are of one that hangs up. */
TEST(what_a_user_has_arrived_has_a_bound)
{
	enum { OPS = 1000, LISTS = 12, TENSORS = 256 };
	static struct crowd_op ops[OPS];
	static char names[TENSORS][8];
	const struct scheduler_user *user;
	uint64_t ids[LISTS];
	size_t most = 0;
	for (int hangs_up = 0; hangs_up < 2; hangs_up++) {
		crowd_again();
		user = &crowd.peers[0].session.user->order;
		crowd_alloc(0, "A", LONG_W);
		for (unsigned i = 0; i < TENSORS; i++) {
			snprintf(names[i], sizeof(names[i]), "t%u", i);
			crowd_alloc(0, names[i], SHORT_W);
			crowd_fill(0, names[i], 1);
		}
		crowd_fill(0, "A", 1);
		ck_assert_uint_eq(crowd.n_tasks, 1);
		ops[0] = (struct crowd_op){.kind = 'f', .first = "A", .value = 2};
		for (unsigned i = 1; i < OPS; i++)
			ops[i] = (struct crowd_op){.kind = 'f', .first = names[i % TENSORS], .value = 3};
		for (unsigned i = 0; i < LISTS * 4; i++) {
			ids[i % LISTS] = crowd_list(i % PEERS, ops, OPS);
			most = user->n_accesses > most ? user->n_accesses : most;
		}
		ck_assert_uint_gt(most, 4096);
		ck_assert_uint_le(most, 6144 + TENSORS + 1);
		ck_assert(crowd.peers[0].rpc.first_held || crowd.peers[1].rpc.first_held);
		if (hangs_up)
			crowd_close(1);
		crowd_finish_all();
		for (unsigned i = 0; i < LISTS; i++)
			if (!hangs_up || i % PEERS != 1)
				ck_assert_int_eq(crowd_status(i % PEERS, ids[i]), 0);
		ck_assert_uint_eq(user->n_accesses, 0);
		ck_assert_ptr_null(user->first_full);
	}
}

/* Which is of its own user alone, and there it holds up neither a client that does one thing at a time, nor any of
 * those that send as much, for longer than the others. */
TEST(a_long_backlog_does_not_hold_up_other_clients_of_the_user)
{
	enum { OPS = 256, LISTS = 40 };
	static struct crowd_op ops[OPS];
	static char names[OPS][8];
	unsigned last_turn = 0;
	uint64_t ids[PEERS], read;
	const struct scheduler_user *user = &crowd.peers[0].session.user->order;
	crowd_alloc(0, "A", LONG_W);
	crowd_alloc(0, "S", SHORT_W);
	crowd_fill(0, "S", 5);
	for (unsigned i = 0; i < OPS; i++) {
		snprintf(names[i], sizeof(names[i]), "t%u", i);
		crowd_alloc(0, names[i], SHORT_W);
		ops[i] = (struct crowd_op){.kind = 'f', .first = i ? names[i] : "A", .value = 3};
	}
	crowd_fill(0, "A", 1);
	/* One that waits for another client, which itself has nothing at its gate. */
	while (user->n_accesses < 6144)
		crowd_list(0, ops, OPS);
	ck_assert_ptr_null(crowd.peers[0].rpc.first_held);
	ids[1] = crowd_list(1, ops, OPS);
	ck_assert_ptr_nonnull(crowd.peers[1].rpc.first_held);
	crowd_finish_all();
	ck_assert_int_eq(crowd_status(1, ids[1]), 0);

	crowd_fill(0, "A", 1);
	for (unsigned i = 0; i < LISTS; i++)
		crowd_list(0, ops, OPS);
	ck_assert_ptr_nonnull(crowd.peers[0].rpc.first_held);
	read = crowd_read(1, "S");
	ck_assert_int_eq(crowd_value(1, read), 5);
	for (unsigned from = 0; from < PEERS; from++) {
		ids[from] = crowd_list(from, ops, OPS);
		ck_assert_int_eq(crowd_status(from, ids[from]), -1);
	}
	crowd_finish_all();
	for (unsigned from = 0; from < PEERS; from++) {
		ck_assert_int_eq(crowd_status(from, ids[from]), 0);
		last_turn = crowd.peers[from].replies[ids[from]].turn > last_turn
				    ? crowd.peers[from].replies[ids[from]].turn
				    : last_turn;
	}
	/* The backlog's own last one is the last. */
	ck_assert_uint_eq(crowd.peers[0].replies[ids[0]].turn, last_turn);
	ck_assert_uint_lt(crowd.peers[1].replies[ids[1]].turn, last_turn - 5);
	ck_assert_uint_lt(crowd.peers[2].replies[ids[2]].turn, last_turn - 5);
}

enum { LONG_LIST = 400, LONG_LIST_TENSORS = 300 };

static char long_names[LONG_LIST_TENSORS][8];

/* A list that fills 300 tensors, and 100 of them once more, of which the loop has found some. */
static uint64_t long_list_begin(void)
{
	static struct crowd_op ops[LONG_LIST];
	for (unsigned i = 0; i < LONG_LIST_TENSORS; i++) {
		snprintf(long_names[i], sizeof(long_names[i]), "t%u", i);
		crowd_alloc(0, long_names[i], SHORT_W);
	}
	for (unsigned i = 0; i < LONG_LIST; i++)
		ops[i] = (struct crowd_op){.kind = 'f', .first = long_names[i % LONG_LIST_TENSORS], .value = 3};
	loop_turns_begin(crowd.rpc);
	uint64_t id = crowd_list(0, ops, LONG_LIST);
	ck_assert_ptr_nonnull(crowd.peers[0].rpc.first_held);
	ck_assert_uint_gt(crowd.peers[0].rpc.first_held->n_resolved, 0);
	ck_assert_uint_lt(crowd.peers[0].rpc.first_held->n_resolved, LONG_LIST_TENSORS);
	return id;
}

static void long_list_end(void)
{
	loop_turns_all(crowd.rpc);
	loop_turns_end(crowd.rpc);
}

TEST(the_tensors_of_a_long_list_are_found_in_several_turns)
{
	uint64_t list = long_list_begin(), read = crowd_read(0, "t0");
	ck_assert_uint_gt(loop_turns_all(crowd.rpc), 3);
	ck_assert_int_eq(crowd_status(0, list), 0);
	ck_assert_int_eq(crowd_value(0, read), 3);
	long_list_end();
}

/* Another request that uses a tensor in between does not give the list two places in one queue. */
TEST(a_long_list_has_one_place_in_each_queue)
{
	uint64_t list = long_list_begin(), n_accesses;
	crowd_fill(1, "t0", 5);
	while (crowd.peers[0].rpc.first_held)
		loop_turns_one(crowd.rpc);
	n_accesses = crowd.peers[0].session.user->order.n_accesses;
	ck_assert_uint_eq(n_accesses, LONG_LIST_TENSORS);
	loop_turns_all(crowd.rpc);
	ck_assert_int_eq(crowd_status(0, list), 0);
	ck_assert_int_eq(crowd_value(1, crowd_read(1, "t0")), 3);
	long_list_end();
}

static void rename_to(const char *name, const char *to)
{
	struct session *session = &crowd.peers[1].session;
	struct record *record = names_find(&crowd.world.service.names, session->uid, name);
	ck_assert_int_eq(tensors_rename(session, record_tensor(record), to, &crowd.world.error), 0);
}

/* Nothing holds them yet. */
TEST(a_tensor_of_a_long_list_goes_while_others_are_found, .to = 4)
{
	uint64_t list = long_list_begin();
	/* The list names t0 once more behind what is found now, and t100 not. */
	const char *name = _i & 1 ? "t100" : "t0";
	char refusal[64];
	snprintf(refusal, sizeof(refusal), "operation %s: there is no tensor %s", name + 1, name);
	if (_i & 2)
		crowd_free(1, name);
	else
		rename_to(name, "other");
	loop_turns_all(crowd.rpc);
	ck_assert_int_eq(crowd_status(0, list), NPUMEM_NOT_FOUND);
	ck_assert_ptr_nonnull(strstr(crowd_reply(0, list)->message, refusal));
	long_list_end();
}

/* The free request waits for another operation. The list is answered after it. */
TEST(a_free_request_arrives_before_a_long_list)
{
	const struct crowd_op both[] = {{.kind = 'f', .first = "A", .value = 1},
					{.kind = 'f', .first = "t100", .value = 1}};
	uint64_t list = long_list_begin(), id;
	crowd_alloc(2, "A", LONG_W);
	crowd_list(2, both, 2);
	ck_assert_uint_eq(crowd.n_tasks, 1);
	id = crowd_free(1, "t100");
	loop_turns_all(crowd.rpc);
	ck_assert_int_eq(crowd_status(1, id), -1);
	ck_assert_int_eq(crowd_status(0, list), -1);
	ck_assert_uint_eq(crowd.peers[0].session.user->order.n_accesses, 4);
	crowd_finish(0);
	loop_turns_all(crowd.rpc);
	ck_assert_int_eq(crowd_status(1, id), 0);
	ck_assert_int_eq(crowd_status(0, list), NPUMEM_NOT_FOUND);
	long_list_end();
}

TEST(another_tensor_has_the_name_before_a_long_list_arrives)
{
	uint64_t list = long_list_begin(), read;
	crowd_free(1, "t0");
	crowd_alloc(1, "t0", SHORT_W);
	loop_turns_all(crowd.rpc);
	ck_assert_int_eq(crowd_status(0, list), 0);
	read = crowd_read(1, "t0");
	ck_assert_int_eq(crowd_value(1, read), 3);
	long_list_end();
}

/* Changes of other tensors do not make the list start again. */
TEST(a_long_list_arrives_while_others_allocate_and_free)
{
	uint64_t list = long_list_begin();
	for (unsigned i = 0; i < 100 && crowd.peers[0].rpc.first_held; i++) {
		crowd_alloc(1, "other", SHORT_W);
		crowd_free(1, "other");
		loop_turns_one(crowd.rpc);
	}
	ck_assert_ptr_null(crowd.peers[0].rpc.first_held);
	loop_turns_all(crowd.rpc);
	ck_assert_int_eq(crowd_status(0, list), 0);
	long_list_end();
}

/* The memory of a tensor that went is that of one whose place is still searched for. */
TEST(a_tensor_without_an_owner_follows_one_of_a_long_list)
{
	const struct device_request request = world_request(1, SHORT_W);
	uint64_t list = long_list_begin();
	struct error_context context = access_context(&crowd.peers[1].session, &crowd.world.error);
	struct tensor *tensor, *gone;
	gone = record_tensor(names_find(&crowd.world.service.names, crowd.peers[1].session.uid, "t100"));
	crowd_free(1, "t100");
	ck_assert_int_eq(device_alloc(crowd.world.service.device, &request, 1, &tensor, &context), 0);
	ck_assert_ptr_eq(tensor, gone);
	while (crowd.peers[0].rpc.first_held)
		loop_turns_one(crowd.rpc);
	device_release(crowd.world.service.device, tensor, NULL, NULL);
	loop_turns_all(crowd.rpc);
	ck_assert_int_eq(crowd_status(0, list), NPUMEM_NOT_FOUND);
	long_list_end();
}

TEST(a_client_hangs_up_while_the_tensors_of_its_list_are_found)
{
	long_list_begin();
	crowd_close(0);
	loop_turns_all(crowd.rpc);
	ck_assert_uint_eq(crowd.peers[0].n_drained, 1);
	long_list_end();
}
