/* A record that begins on a device with tensors: which of them are in it, what runs meanwhile, and without memory.
 */
#include "daemon/service/observed/recorder.h"
#include "tests/unit/daemon/rpc/crowd.h"

enum { ADMIN = 500, N_SMALL = 70 /* more than a page */ };

static uint64_t ask(unsigned from, int action)
{
	Npumem__V1__RecordRequest request = NPUMEM__V1__RECORD_REQUEST__INIT;
	request.action = (Npumem__V1__RecordAction)action;
	return CROWD_SEND(from, record, RECORD, &request);
}

static void init(void)
{
	crowd_become(2, ADMIN);
}

/* How many of a record's entries are of before, and how many tensors they have. */
static size_t before(const Npumem__V1__Recorded *recorded, size_t *n)
{
	size_t n_tensors = 0;
	*n = 0;
	for (size_t at = 0; at < recorded->n_entries; at++) {
		const Npumem__V1__RecordEntry *entry = recorded->entries[at];
		Npumem__V1__Response *answer;
		ck_assert_uint_eq(entry->number, at + 1);
		if (!entry->before)
			continue;
		++*n;
		answer = npumem__v1__response__unpack(NULL, entry->answer.len, entry->answer.data);
		ck_assert_ptr_nonnull(answer);
		ck_assert_uint_eq(entry->request.len, 0);
		ck_assert_int_eq((int)answer->result_case, NPUMEM__V1__RESPONSE__RESULT_LIST);
		ck_assert_uint_eq(answer->list->n_tensors, entry->n_handles);
		for (size_t i = 0; i < entry->n_handles; i++)
			ck_assert_uint_eq(answer->list->tensors[i]->handle, entry->handles[i]);
		n_tensors += entry->n_handles;
		npumem__v1__response__free_unpacked(answer, NULL);
	}
	return n_tensors;
}

TEST(all_tensors_are_in_it)
{
	size_t n;
	init();
	for (unsigned i = 0; i < N_SMALL; i++) {
		char name[16];
		snprintf(name, sizeof(name), "t%u", i);
		crowd_alloc(i % 2, name, SHORT_W);
	}
	ck_assert_int_eq(crowd_status(1, ask(1, NPUMEM__V1__RECORD_ACTION__RECORD_WATCH)),
			 NPUMEM_PERMISSION_DENIED);
	uint64_t watch = ask(2, NPUMEM__V1__RECORD_ACTION__RECORD_WATCH);
	crowd_finish_all();
	ck_assert_int_eq(crowd_status(2, watch), 0);
	ck_assert(!crowd.world.service.recorder.lost);
	crowd_fill(0, "t0", 1);
	crowd_finish_all();
	uint64_t take = ask(2, NPUMEM__V1__RECORD_ACTION__RECORD_TAKE);
	ck_assert_int_eq(crowd_status(2, take), 0);
	ck_assert_uint_eq(before(crowd_reply(2, take)->recorded, &n), N_SMALL);
	ck_assert_uint_eq(n, 2);
	ck_assert_uint_eq(crowd_reply(2, take)->recorded->n_entries, 3);
	ck_assert_int_eq(crowd_status(2, ask(2, NPUMEM__V1__RECORD_ACTION__RECORD_WATCH)),
			 NPUMEM_FAILED_PRECONDITION);
}

/* While a tensor's bytes are counted elsewhere, tensors come and go. The record has those of its moment alone,
 * each once, and before it is freed. */
TEST(others_go_on_meanwhile)
{
	size_t n;
	init();
	crowd_slow("A");
	uint64_t watch = ask(2, NPUMEM__V1__RECORD_ACTION__RECORD_WATCH);
	ck_assert_uint_eq(crowd.n_tasks, 1);
	crowd_alloc(1, "B", SHORT_W);
	uint64_t freed = crowd_free(0, "A");
	ck_assert_uint_eq(crowd.n_tasks, 2);
	crowd_finish(1);
	ck_assert_int_eq(crowd_status(0, freed), 0);
	ck_assert_int_eq(world_n_tensors(&crowd.world), 1);
	ck_assert_int_eq(crowd_status(2, watch), -1);
	crowd_finish_all();
	ck_assert_int_eq(crowd_status(2, watch), 0);
	ck_assert_int_eq(crowd_status(1, crowd_free(1, "B")), 0);
	uint64_t take = ask(2, NPUMEM__V1__RECORD_ACTION__RECORD_TAKE);
	const Npumem__V1__Recorded *recorded = crowd_reply(2, take)->recorded;
	ck_assert_uint_eq(before(recorded, &n), 1);
	ck_assert_uint_eq(recorded->n_entries, 4);
	ck_assert(recorded->entries[1]->before && !recorded->entries[2]->before);
}

/* It came before the record was asked for or began, and changes what the record's tensors hold after that. */
TEST(what_waits_when_it_begins_is_in_it)
{
	size_t n;
	init();
	crowd_alloc(0, "A", LONG_W);
	crowd_fill(0, "A", 1);
	uint64_t watch = ask(2, NPUMEM__V1__RECORD_ACTION__RECORD_WATCH);
	uint64_t fill = crowd_fill(1, "A", 2);
	ck_assert_int_eq(crowd_status(1, fill), -1);
	crowd_finish_all();
	ck_assert_int_eq(crowd_status(2, watch), 0);
	ck_assert_int_eq(crowd_status(1, fill), 0);
	uint64_t take = ask(2, NPUMEM__V1__RECORD_ACTION__RECORD_TAKE);
	before(crowd_reply(2, take)->recorded, &n);
	ck_assert_uint_eq(crowd_reply(2, take)->recorded->n_entries, n + 1);
}

TEST(who_asked_is_gone)
{
	init();
	crowd_slow("A");
	ask(2, NPUMEM__V1__RECORD_ACTION__RECORD_WATCH);
	ck_assert_uint_eq(crowd.n_tasks, 1);
	crowd_close(2);
	crowd_finish_all();
	ck_assert_ptr_null(crowd.world.service.recorder.owner);
}

/* It begins whole, or is refused and nothing is recorded; the others go on either way. */
TEST(every_allocation_may_fail)
{
	bool hit = true;
	for (size_t i = 1; hit; i++) {
		uint64_t watch;
		crowd_again();
		init();
		crowd_alloc(0, "a", SHORT_W);
		crowd.world.fail_at = crowd.world.n_allocs + i;
		watch = ask(2, NPUMEM__V1__RECORD_ACTION__RECORD_WATCH);
		crowd_finish_all();
		hit = crowd.world.n_allocs >= crowd.world.fail_at;
		crowd.world.fail_at = 0;
		ck_assert_int_eq(crowd_status(0, crowd_fill(0, "a", 1)), 0);
		if (crowd_status(2, watch) == 0)
			ck_assert(recorder_is_on(&crowd.world.service.recorder));
		else
			ck_assert(hit && !crowd.world.service.recorder.owner &&
				  !crowd.world.service.recorder.bytes);
		ck_assert_uint_lt(i, 100);
	}
}
