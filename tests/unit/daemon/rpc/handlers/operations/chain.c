/* Operations of a list that one thread runs one after the other: as if each had had its own. */
#include "tests/unit/daemon/rpc/crowd.h"

static const char *const names[] = {"a", "b", "c", "d", "unwritten", "short"};

static void init(void)
{
	for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]) - 1; i++)
		crowd_alloc(0, names[i], 4 * SHORT_W * 512);
	crowd_alloc(0, "short", SHORT_W);
	crowd_fill(0, "a", 1);
	crowd_fill(0, "short", 9);
	crowd_finish_all();
}

static size_t n_done(uint64_t list)
{
	return crowd_reply(0, list)->submitted->n_done;
}

static int value(const char *name)
{
	return crowd_value(0, crowd_read(0, name));
}

static int read_status(const char *name)
{
	return crowd_status(0, crowd_read(0, name));
}

static uint64_t scratch(void)
{
	return crowd.peers[0].session.user->now[LIMITS_SCRATCH_BYTES];
}

/* Each reads what the one before it wrote; a short one goes along. */
TEST(one_task)
{
	const struct crowd_op ops[] = {
		{0, 'c', "b", "a", 0}, {0, 'f', "short", NULL, 7}, {0, 'k', "b", "c", 0}, {0, 'c', "d", "c", 0}};
	init();
	uint64_t list = crowd_list(0, ops, 4);
	ck_assert_uint_eq(crowd.n_tasks, 1);
	crowd_finish(0);
	ck_assert_uint_eq(crowd.n_tasks, 0);
	ck_assert_int_eq(crowd_status(0, list), 0);
	ck_assert_uint_eq(n_done(list), 4);
	for (unsigned i = 0; i < 4; i++)
		ck_assert_uint_eq(crowd_reply(0, list)->submitted->done[i]->operation, i);
	ck_assert_int_eq(value("d"), 1);
	ck_assert_int_eq(value("short"), 7);
	ck_assert_uint_eq(scratch(), 0);
}

/* The operation with that index is refused with `status`; "d", which the last one writes, is not written. */
static void check_refused(const struct crowd_op *ops, unsigned n, unsigned index, int status)
{
	char begin[16];
	init();
	uint64_t list = crowd_list(0, ops, n);
	crowd_finish_all();
	ck_assert_int_eq(crowd_status(0, list), status);
	ck_assert_uint_eq(n_done(list), index);
	snprintf(begin, sizeof(begin), "operation %u ", index);
	ck_assert_msg(!strncmp(crowd_reply(0, list)->message, begin, strlen(begin)), "%s",
		      crowd_reply(0, list)->message);
	ck_assert_int_eq(value("b"), 1);
	ck_assert_int_eq(read_status("d"), NPUMEM_FAILED_PRECONDITION);
	ck_assert_uint_eq(scratch(), 0);
}

TEST(refused_when_it_runs)
{
	const struct crowd_op ops[] = {
		{0, 'c', "b", "a", 0}, {0, 'k', "unwritten", "c", 0}, {0, 'k', "a", "d", 0}};
	check_refused(ops, 3, 1, NPUMEM_FAILED_PRECONDITION);
}

TEST(refused_when_it_is_checked)
{
	const struct crowd_op ops[] = {{0, 'c', "b", "a", 0}, {0, 'k', "short", "c", 0}, {0, 'k', "a", "d", 0}};
	check_refused(ops, 3, 1, NPUMEM_INVALID);
}

/* A read with data, and a group, are steps of their own, which find their tensors. */
TEST(what_is_no_part)
{
	const struct crowd_op ops[] = {{0, 'c', "b", "a", 0},	      {0, 'r', "b", NULL, 0},
				       {0, 'c', "c", "b", 0},	      {5, 'c', "d", "c", 0},
				       {5, 'k', "a", "unwritten", 0}, {0, 'r', "d", NULL, 0}};
	init();
	uint64_t list = crowd_list(0, ops, 6);
	crowd_finish_all();
	ck_assert_int_eq(crowd_status(0, list), 0);
	ck_assert_uint_eq(n_done(list), 6);
	ck_assert_int_eq((int8_t)crowd_reply(0, list)->submitted->done[1]->data.data[0], 1);
	ck_assert_int_eq((int8_t)crowd_reply(0, list)->submitted->done[5]->data.data[0], 1);
}

/* Its queues are compared. */
TEST(a_group_stays_one)
{
	const struct crowd_op ops[] = {{0, 'c', "b", "a", 0}, {5, 'c', "d", "a", 0}, {5, 'k', "d", "c", 0}};
	init();
	uint64_t list = crowd_list(0, ops, 3);
	crowd_finish_all();
	ck_assert_int_eq(crowd_status(0, list), NPUMEM_ABORTED);
	ck_assert_uint_eq(n_done(list), 1);
	ck_assert_int_eq(read_status("d"), NPUMEM_FAILED_PRECONDITION);
}

TEST(cancelled)
{
	const struct crowd_op ops[] = {{0, 'c', "b", "a", 0}, {0, 'k', "a", "c", 0}, {0, 'c', "d", "a", 0}};
	Npumem__V1__CancelRequest cancel = NPUMEM__V1__CANCEL_REQUEST__INIT;
	init();
	cancel.request_id = crowd_list(0, ops, 3);
	ck_assert_uint_eq(crowd.n_tasks, 1);
	CROWD_SEND(0, cancel, CANCEL, &cancel);
	crowd_finish_all();
	ck_assert_int_eq(crowd_status(0, cancel.request_id), NPUMEM_CANCELLED);
	ck_assert_uint_eq(n_done(cancel.request_id), 0);
	for (unsigned i = 1; i < 4; i++)
		ck_assert_int_eq(read_status(names[i]), NPUMEM_FAILED_PRECONDITION);
	ck_assert_uint_eq(scratch(), 0);
}

/* What was begun and not run is free, sealed or written by others only when the list is over. */
TEST(others_wait)
{
	const struct crowd_op ops[] = {{0, 'c', "b", "a", 0}, {0, 'k', "b", "c", 0}, {0, 'c', "d", "c", 0}};
	init();
	uint64_t list = crowd_list(0, ops, 3);
	uint64_t frees = crowd_free(0, "c");
	uint64_t fills = crowd_fill(1, "d", 5);
	ck_assert_int_eq(crowd_status(0, frees), -1);
	ck_assert_int_eq(crowd_status(1, fills), -1);
	ck_assert_uint_eq(crowd.n_tasks, 1);
	crowd_finish_all();
	ck_assert_int_eq(crowd_status(0, list), 0);
	ck_assert_int_eq(crowd_status(0, frees), 0);
	ck_assert_int_eq(value("d"), 5);
}

/* Without a thread all is as it was before. */
TEST(no_thread)
{
	const struct crowd_op ops[] = {{0, 'c', "b", "a", 0}, {0, 'k', "a", "c", 0}};
	init();
	crowd.no_threads = true;
	uint64_t list = crowd_list(0, ops, 2);
	ck_assert_int_eq(crowd_status(0, list), NPUMEM_RESOURCE_EXHAUSTED);
	ck_assert_uint_eq(n_done(list), 0);
	ck_assert_uint_eq(scratch(), 0);
	crowd.no_threads = false;
	list = crowd_list(0, ops, 2);
	crowd_finish_all();
	ck_assert_int_eq(crowd_status(0, list), 0);
}
