/* Recording through requests: what is told of each answer, and what a recording does to the requests around it. */
#include <stdio.h>

#include "tests/unit/daemon/rpc/crowd.h"

#include "daemon/service/observed/recorder.h"
#include "proto/digest.h"

enum { ADMIN = 500 };

static struct session admin;

static void talk_with_admin(struct talk *talk)
{
	talk_init(talk);
	ck_assert_int_eq(session_init(&admin, &talk->world.service, ADMIN, 0, NULL), 0);
}

static void end_with_admin(struct talk *talk)
{
	session_deinit(&admin);
	talk_deinit(talk);
}

FIXTURE_OBJECT(struct talk, talk, talk_with_admin(&talk), end_with_admin(&talk))

static int record(struct session *session, int action)
{
	Npumem__V1__RecordRequest request = NPUMEM__V1__RECORD_REQUEST__INIT;
	request.action = (Npumem__V1__RecordAction)action;
	return TALK_AS(&talk, session, record, RECORD, &request);
}

TEST(actions_and_rights)
{
	talk_fails(&talk, record(&admin, 99), NPUMEM_INVALID, "record action 99 is none");
	for (int action = 1; action <= 4; action++)
		ck_assert_int_eq(record(&talk.session, action), action == 1 || action == 4
									? NPUMEM_PERMISSION_DENIED
									: NPUMEM_FAILED_PRECONDITION);
	ck_assert_int_eq(record(&admin, NPUMEM__V1__RECORD_ACTION__RECORD_STOP), NPUMEM_FAILED_PRECONDITION);
	ck_assert_int_eq(record(&admin, NPUMEM__V1__RECORD_ACTION__RECORD_START), 0);
	/* Nothing waits, and nothing is recorded of recording. */
	ck_assert_int_eq(record(&admin, NPUMEM__V1__RECORD_ACTION__RECORD_TAKE), 0);
	ck_assert_uint_eq(talk.response->recorded->n_entries, 0);
	ck_assert_int_eq(record(&admin, NPUMEM__V1__RECORD_ACTION__RECORD_HASH), 0);
	ck_assert_uint_eq(talk.response->recorded->n_local, 8);
	ck_assert_int_eq(record(&admin, NPUMEM__V1__RECORD_ACTION__RECORD_STOP), 0);
	ck_assert_int_eq(record(&admin, NPUMEM__V1__RECORD_ACTION__RECORD_TAKE), 0);
	ck_assert_uint_eq(talk.response->recorded->n_entries, 0);
}

/* What the answers were, as one who replays them sees it. */
struct seen {
	int status;
	uint64_t digest, handle;
};

static void see(struct seen *seen)
{
	seen->status = (int)talk.response->status;
	seen->digest = digest_response(talk.response);
	seen->handle = 0;
	digest_handles(talk.response, &seen->handle, 1);
}

static void submit_two(uint64_t handle, uint64_t missing)
{
	Npumem__V1__Operation operations[2] = {NPUMEM__V1__OPERATION__INIT, NPUMEM__V1__OPERATION__INIT},
			      *list[] = {&operations[0], &operations[1]};
	Npumem__V1__ReadRequest reads[2] = {NPUMEM__V1__READ_REQUEST__INIT, NPUMEM__V1__READ_REQUEST__INIT};
	Npumem__V1__Ref refs[2] = {talk_ref(handle, ""), talk_ref(missing, "")};
	for (unsigned i = 0; i < 2; i++) {
		reads[i].tensor = &refs[i];
		operations[i].kind_case = NPUMEM__V1__OPERATION__KIND_READ;
		operations[i].read = &reads[i];
	}
	Npumem__V1__SubmitRequest request = {MESSAGE(submit_request), .n_operations = 2, .operations = list};
	TALK(&talk, submit, SUBMIT, &request);
}

TEST(each_answer_is_told)
{
	struct seen seen[6];
	uint8_t data[128];
	uint64_t x;
	memset(data, 5, sizeof(data));
	ck_assert_int_eq(record(&admin, NPUMEM__V1__RECORD_ACTION__RECORD_START), 0);
	x = talk_tensor(&talk, "x");
	see(&seen[0]);
	ck_assert_int_eq(talk_write_as(&talk, &talk.session, x, 0, data, sizeof(data)), 0);
	see(&seen[1]);
	ck_assert_int_eq(talk_read_as(&talk, &talk.neighbour, x, 3, 50), 0);
	see(&seen[2]);
	ck_assert_int_eq(talk_read_as(&talk, &talk.stranger, x, 0, 1), NPUMEM_NOT_FOUND);
	see(&seen[3]);
	/* None runs where one is not there. */
	submit_two(x, 99);
	ck_assert_int_eq((int)talk.response->status, NPUMEM_NOT_FOUND);
	see(&seen[4]);
	ck_assert_int_eq(talk_bytes(&talk, &talk.session, (const uint8_t *)"\xff\xff", 2), NPUMEM_INVALID);
	see(&seen[5]);
	ck_assert_int_eq(record(&admin, NPUMEM__V1__RECORD_ACTION__RECORD_TAKE), 0);
	const Npumem__V1__Recorded *recorded = talk.response->recorded;
	ck_assert(!recorded->lost);
	ck_assert_uint_eq(recorded->n_entries, 6);
	for (unsigned i = 0; i < 6; i++) {
		const Npumem__V1__RecordEntry *entry = recorded->entries[i];
		ck_assert_uint_eq(entry->number, i + 1);
		ck_assert_int_eq((int)entry->status, seen[i].status);
		ck_assert_msg(entry->digest == seen[i].digest, "answer %u", i);
		ck_assert_uint_eq(entry->n_handles, seen[i].handle != 0);
		ck_assert(!entry->part && !entry->transfer && !entry->shared);
		ck_assert_uint_eq(entry->uid, i == 3 ? 1002 : 1001);
	}
	ck_assert_uint_eq(recorded->entries[0]->handles[0], x);
	ck_assert_uint_eq(recorded->entries[2]->session, talk.neighbour.id);
	ck_assert_uint_eq(recorded->entries[5]->request.len, 2);
}

TEST(what_is_long_is_told_in_parts)
{
	static uint8_t message[1400 << 10] = {1 << 3, 7};
	size_t bytes = 0;
	unsigned n_parts = 0, n_takes = 0;
	ck_assert_int_eq(record(&admin, NPUMEM__V1__RECORD_ACTION__RECORD_START), 0);
	/* Garbage is recorded like anything else. */
	talk_bytes(&talk, &talk.session, message, sizeof(message));
	do {
		ck_assert_int_eq(record(&admin, NPUMEM__V1__RECORD_ACTION__RECORD_TAKE), 0);
		ck_assert_uint_le(talk.out.used, (1 << 20) + 1024);
		for (size_t i = 0; i < talk.response->recorded->n_entries; i++) {
			const Npumem__V1__RecordEntry *entry = talk.response->recorded->entries[i];
			ck_assert_uint_eq(entry->number, 1);
			ck_assert_int_eq(entry->part, bytes + entry->request.len < sizeof(message));
			ck_assert_mem_eq(entry->request.data, message + bytes, entry->request.len);
			bytes += entry->request.len;
			n_parts++;
		}
		n_takes++;
	} while (talk.response->recorded->n_entries);
	ck_assert_uint_eq(bytes, sizeof(message));
	ck_assert_uint_eq(n_parts, 6);
	ck_assert_uint_eq(n_takes, 3);
}

/* ---- beside other requests ---- */

static uint64_t crowd_record(unsigned from, int action)
{
	Npumem__V1__RecordRequest request = NPUMEM__V1__RECORD_REQUEST__INIT;
	request.action = (Npumem__V1__RecordAction)action;
	return CROWD_SEND(from, record, RECORD, &request);
}

TEST(the_end_waits_and_holds_up_what_touches)
{
	const Npumem__V1__Recorded *recorded;
	crowd_become(2, ADMIN);
	ck_assert_int_eq(crowd_status(2, crowd_record(2, NPUMEM__V1__RECORD_ACTION__RECORD_START)), 0);
	crowd_alloc(0, "a", SHORT_W);
	crowd_alloc(0, "A", LONG_W);
	crowd_fill(0, "a", 4);
	uint64_t fill = crowd_fill(0, "A", 1);
	uint64_t stop = crowd_record(2, NPUMEM__V1__RECORD_ACTION__RECORD_STOP);
	ck_assert_uint_eq(crowd.n_tasks, 1);
	crowd_finish(0);
	ck_assert_int_eq(crowd_status(0, fill), 0);
	/* Now the sums are made elsewhere, and what would change them waits. */
	ck_assert_uint_eq(crowd.n_tasks, 1);
	ck_assert_int_eq(crowd_status(2, stop), -1);
	uint64_t read = crowd_read(1, "a");
	ck_assert_int_eq(crowd_status(1, read), -1);
	uint64_t alloc = crowd_alloc(1, "b", SHORT_W);
	ck_assert_int_eq(crowd_status(1, alloc), -1);
	crowd_finish_all();
	ck_assert_int_eq(crowd_status(1, alloc), 0);
	ck_assert_int_eq(crowd_status(2, stop), 0);
	ck_assert_int_eq(crowd_status(1, read), 0);
	/* What was not summed up is not recorded either: two allocations and two fills are. */
	recorded = crowd_reply(2, crowd_record(2, NPUMEM__V1__RECORD_ACTION__RECORD_TAKE))->recorded;
	ck_assert_uint_eq(recorded->n_entries, 4);
	ck_assert_uint_eq(recorded->entries[3]->number, 4);
	uint64_t hash = crowd_record(2, NPUMEM__V1__RECORD_ACTION__RECORD_HASH);
	crowd_finish_all();
	ck_assert_uint_ne(crowd_reply(2, hash)->recorded->hash, crowd_reply(2, stop)->recorded->hash);
}

/* A thread goes through all tensors then. */
TEST(no_view_comes_into_being_while_the_sums_are_made)
{
	crowd_become(2, ADMIN);
	crowd_alloc(0, "A", LONG_W);
	crowd_fill(0, "A", 1);
	crowd_finish_all();
	uint64_t hash = crowd_record(2, NPUMEM__V1__RECORD_ACTION__RECORD_HASH);
	ck_assert_uint_eq(crowd.n_tasks, 1);
	uint64_t view = crowd_view(1, "v", 0, "A", LONG_W);
	uint64_t free = crowd_free(1, "v");
	ck_assert_int_eq(world_n_tensors(&crowd.world), 1);
	ck_assert_ptr_null(names_find(&crowd.world.service.names, 1001, "v"));
	crowd_finish_all();
	ck_assert_int_eq(crowd_status(2, hash), 0);
	ck_assert_int_eq(crowd_status(1, view), 0);
	ck_assert_int_eq(crowd_status(1, free), 0);
}

TEST(who_may_not_record_holds_nobody_up)
{
	crowd_alloc(0, "A", LONG_W);
	crowd_alloc(0, "b", SHORT_W);
	uint64_t fill = crowd_fill(0, "A", 1);
	ck_assert_int_eq(crowd_status(1, crowd_record(1, NPUMEM__V1__RECORD_ACTION__RECORD_HASH)),
			 NPUMEM_PERMISSION_DENIED);
	uint64_t other = crowd_fill(2, "b", 1);
	ck_assert_int_eq(crowd_status(2, other), 0);
	ck_assert_int_eq(crowd_status(0, fill), -1);
}

/* Short operations whose group takes long to compare: the request's bytes are needed after its message is gone. */
TEST(a_group_that_is_compared_elsewhere_is_recorded_whole)
{
	enum { FILLS = 20, ROLES = 27 };
	Npumem__V1__Operation operations[FILLS + 1], *list[FILLS + 1];
	Npumem__V1__Operand operands[ROLES], *roles[ROLES];
	char names[ROLES][8];
	Npumem__V1__Ref a = talk_ref(0, "a"), b = talk_ref(0, "b");
	crowd_become(2, ADMIN);
	crowd_record(2, NPUMEM__V1__RECORD_ACTION__RECORD_START);
	crowd_alloc(0, "a", SHORT_W);
	crowd_alloc(0, "b", SHORT_W);
	Npumem__V1__FillRequest fill = {MESSAGE(fill_request), .tensor = &a,
					.value_case = NPUMEM__V1__FILL_REQUEST__VALUE_INTEGER};
	Npumem__V1__RunRequest run = {MESSAGE(run_request), .kernel = NPUMEM__V1__KERNEL__CONCAT,
				      .n_operands = ROLES, .operands = roles};
	for (unsigned i = 0; i < ROLES; i++) {
		npumem__v1__operand__init(&operands[i]);
		snprintf(names[i], sizeof(names[i]), i ? "in%u" : "out", i - 1);
		operands[i].role = names[i];
		operands[i].tensor = &b;
		roles[i] = &operands[i];
	}
	for (unsigned i = 0; i <= FILLS; i++) {
		npumem__v1__operation__init(&operations[i]);
		operations[i].group = 1;
		operations[i].kind_case = i ? NPUMEM__V1__OPERATION__KIND_FILL : NPUMEM__V1__OPERATION__KIND_RUN;
		operations[i].fill = &fill;
		if (!i)
			operations[i].run = &run;
		list[i] = &operations[i];
	}
	Npumem__V1__SubmitRequest request = {MESSAGE(submit_request), .n_operations = FILLS + 1,
					     .operations = list};
	uint64_t id = CROWD_SEND(0, submit, SUBMIT, &request);
	ck_assert_uint_eq(crowd.n_tasks, 1);
	ck_assert_uint_gt(crowd.peers[0].rpc.call_bytes, 0);
	crowd_finish_all();
	ck_assert_int_gt(crowd_status(0, id), 0);
	uint64_t take = crowd_record(2, NPUMEM__V1__RECORD_ACTION__RECORD_TAKE);
	ck_assert_uint_eq(crowd_reply(2, take)->recorded->n_entries, 3);
}

/* The recording session goes while its sums are made, or before. */
TEST(a_recorder_that_goes)
{
	for (unsigned early = 0; early < 2; early++) {

		crowd_again();
		crowd_become(2, ADMIN);
		crowd_record(2, NPUMEM__V1__RECORD_ACTION__RECORD_START);
		crowd_alloc(0, "A", LONG_W);
		crowd_fill(0, "A", 1);
		if (early)
			crowd_close(2);
		crowd_finish_all();
		if (!early) {
			crowd_record(2, NPUMEM__V1__RECORD_ACTION__RECORD_STOP);
			ck_assert_uint_eq(crowd.n_tasks, 1);
			crowd_close(2);
			crowd_finish_all();
		}
		ck_assert(!recorder_is_on(&crowd.world.service.recorder));
	}
}

/* A submit's two lanes end in any order, and are told in the order of the list. */
TEST(a_message_that_was_cut_short_is_not_missing)
{
	static const uint8_t head[] = {8, 9};
	struct npumem_error error;
	crowd_become(2, ADMIN);
	crowd_record(2, NPUMEM__V1__RECORD_ACTION__RECORD_START);
	npumem_error_clear(&error);
	npumem_error_set(&error, NPUMEM_RESOURCE_EXHAUSTED, "a long message");
	ck_assert_int_eq(rpc_refuse_part(crowd.rpc, &crowd.peers[0].rpc, &error, head, sizeof(head)), 0);
	ck_assert_int_eq(crowd_status(0, 9), NPUMEM_RESOURCE_EXHAUSTED);
	ck_assert(recorder_is_on(&crowd.world.service.recorder));
}

TEST(a_submit_in_steps)
{
	static const struct crowd_op ops[] = {
		{1, 'r', "A", NULL, 0}, {1, 'k', "B", "C", 0}, {0, 'f', "a", NULL, 3}};
	crowd_become(2, ADMIN);
	crowd_record(2, NPUMEM__V1__RECORD_ACTION__RECORD_START);
	crowd_alloc(0, "a", SHORT_W);
	for (const char *c = "ABC"; *c; c++) {
		char name[2] = {*c, 0};
		crowd_alloc(0, name, LONG_W);
		crowd_fill(0, name, *c);
		crowd_finish_all();
	}
	uint64_t submit = crowd_list(0, ops, 3);
	while (crowd.n_tasks)
		crowd_finish(crowd.n_tasks - 1);
	ck_assert_int_eq(crowd_status(0, submit), 0);
	const Npumem__V1__Recorded *recorded =
		crowd_reply(2, crowd_record(2, NPUMEM__V1__RECORD_ACTION__RECORD_TAKE))->recorded;
	ck_assert_uint_eq(recorded->n_entries, 8);
	ck_assert_uint_eq(recorded->entries[7]->digest, digest_response(crowd_reply(0, submit)));
	ck_assert_uint_ne(recorded->entries[7]->digest, digest_begin());
}

/* ---- without memory ---- */

/* A record is whole, or it says that it is not; requests are answered either way. */
TEST(every_allocation_may_fail)
{
	bool hit = true;
	for (size_t i = 1; hit; i++) {
		uint64_t stop, take, requests[3];
		bool is_lost = false;
		size_t n = 0;
		crowd_again();
		crowd_become(2, ADMIN);
		crowd_record(2, NPUMEM__V1__RECORD_ACTION__RECORD_START);
		crowd.world.fail_at = crowd.world.n_allocs + i;
		requests[0] = crowd_alloc(0, "A", LONG_W);
		requests[1] = crowd_fill(0, "A", 1);
		requests[2] = crowd_read(0, "A");
		crowd_finish_all();
		stop = crowd_record(2, NPUMEM__V1__RECORD_ACTION__RECORD_STOP);
		crowd_finish_all();
		take = crowd_record(2, NPUMEM__V1__RECORD_ACTION__RECORD_TAKE);
		crowd_finish_all();
		hit = crowd.world.n_allocs >= crowd.world.fail_at;
		crowd.world.fail_at = 0;
		for (unsigned k = 0; k < 3; k++)
			n += crowd_status(0, requests[k]) >= 0;
		if (crowd_status(2, take) == 0) {
			const Npumem__V1__Recorded *recorded = crowd_reply(2, take)->recorded;
			size_t told = 0;
			/* A stop for which there was no memory may be among them. */
			for (size_t k = 0; k < recorded->n_entries; k++)
				told += recorded->entries[k]->session == crowd.peers[0].session.id;
			is_lost = recorded->lost;
			ck_assert(is_lost || told == n);
		}
		ck_assert(hit || (n == 3 && !is_lost && crowd_status(2, stop) == 0));
		ck_assert_uint_lt(i, 1000);
	}
}
