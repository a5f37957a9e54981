/* Entries with accesses, and nobody behind them: who starts when, and who keeps whose place. */
#include "daemon/service/scheduler.h"

#include "tests/unit/daemon/service/world.h"

enum { ENTRIES = 400, COLUMNS = 100 };

/* Entry i has its own user, so that users do not matter. */
static struct {
	struct world world;
	struct session session;
	struct scheduler *scheduler;
	struct tensor *host, *guest, *other; /* the first two meet */
	struct scheduler_entry entries[ENTRIES];
	struct scheduler_user users[ENTRIES];
	struct scheduler_access accesses[ENTRIES][2];
} s;

static struct tensor *place(const char *name, int64_t c, int64_t npu, int reuse)
{
	struct device_request request = world_request(c, COLUMNS);
	struct tensor *tensor = NULL;

	request.reuse = reuse;
	request.spec.address = npu < 0 ? NPUMEM_ANY : npu * 8192;
	ck_assert_int_eq(tensors_alloc(&s.session, &request, &name, 1, &tensor, &s.world.error), 0);
	return tensor;
}

static void begin(void)
{
	memset(&s, 0, sizeof(s));
	world_init(&s.world);
	session_init(&s.session, &s.world.service, 1001, 0, NULL);
	s.scheduler = &s.world.service.scheduler;
	s.host = place("host", 5, 0, NPUMEM_NEVER);
	s.guest = place("guest", 3, 5, NPUMEM_UNCHECKED);
	s.other = place("other", 8, -1, NPUMEM_NEVER);
}

static void end(void)
{
	session_deinit(&s.session);
	world_deinit(&s.world);
}

static void on_ready(struct scheduler_entry *entry)
{
	(void)entry;
}

static struct scheduler_access access(struct tensor *root, bool writes, int64_t from, int64_t to)
{
	struct scheduler_access made = {.root = root, .range = tensor_range_whole(&root->place), .writes = writes};

	made.range.from.w = from;
	made.range.to.w = to;
	return made;
}

static struct scheduler_access whole(struct tensor *root, bool writes)
{
	return access(root, writes, 0, COLUMNS);
}

static void enter(unsigned i)
{
	s.entries[i].ready = on_ready;
	scheduler_enter(s.scheduler, &s.entries[i], &s.users[i]);
}

static void claim(unsigned i, struct scheduler_access first)
{
	s.accesses[i][0] = first;
	scheduler_claim(s.scheduler, &s.entries[i], s.accesses[i], 1);
}

static void claim_both(unsigned i, struct scheduler_access first, struct scheduler_access second)
{
	s.accesses[i][0] = first;
	s.accesses[i][1] = second;
	scheduler_claim(s.scheduler, &s.entries[i], s.accesses[i], 2);
}

static void let_go(unsigned i)
{
	scheduler_let_go(s.scheduler, &s.entries[i]);
}

static void add(unsigned i, struct scheduler_access first)
{
	enter(i);
	claim(i, first);
	let_go(i);
}

static bool runs(unsigned i)
{
	return s.entries[i].is_started;
}

static void leave(unsigned i)
{
	scheduler_leave(s.scheduler, &s.entries[i]);
}

static void leave_all(unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		ck_assert_msg(runs(i), "entry %u never starts", i);
		leave(i);
	}
	ck_assert(scheduler_is_idle(s.scheduler));
}

static void third_waits_for_both(void)
{
	ck_assert(runs(1));
	leave(0);
	ck_assert(!runs(2));
	leave(1);
	ck_assert(runs(2));
	leave(2);
	ck_assert(scheduler_is_idle(s.scheduler));
}

START_TEST(channels_apart_do_not_conflict)
{
	struct scheduler_access low = whole(s.other, true), high = whole(s.other, true);

	low.range.to.c = 4;
	high.range.from.c = 4;
	add(0, low);
	add(1, high);
	ck_assert(runs(0) && runs(1));
	leave_all(2);
}
END_TEST

/* However many there are between that do not: one that is not looked at counts as in the way. */
START_TEST(a_conflict_far_ahead_counts)
{
	add(0, access(s.other, true, 0, 10));
	add(1, access(s.other, true, 10, 20));
	for (unsigned i = 2; i < ENTRIES - 1; i++)
		add(i, access(s.other, false, 10, 20));
	add(ENTRIES - 1, access(s.other, true, 0, 10));
	ck_assert(runs(0) && runs(1) && !runs(2) && !runs(ENTRIES - 1));
	leave_all(ENTRIES);
}
END_TEST

/* Of two roots that meet, who uses the one's data and a kernel that writes the other's footprint wait for each
 * other, and nobody else does. */
START_TEST(footprints_conflict_across_meetings)
{
	struct scheduler_access kernel = whole(s.guest, true);
	struct scheduler_user *user = &s.users[9];

	ck_assert_uint_eq(s.host->n_meetings, 1);
	kernel.footprint = true;
	add(0, whole(s.host, false));
	ck_assert(!scheduler_is_clear(s.scheduler, user, &kernel, 1));
	add(1, kernel);
	ck_assert(runs(0) && !runs(1));
	leave(0);
	ck_assert(runs(1));
	add(2, whole(s.host, false));
	ck_assert(!runs(2));
	leave(1);
	ck_assert(runs(2));
	add(3, whole(s.guest, true));
	ck_assert(runs(3));
	leave(2);
	leave(3);
	ck_assert(scheduler_is_idle(s.scheduler));
}
END_TEST

/* One that has started goes first, also where it came later. */
START_TEST(a_kernel_waits_for_what_has_started_though_it_came_later)
{
	struct scheduler_access kernel = whole(s.guest, true);

	kernel.footprint = true;
	enter(0);
	add(1, whole(s.host, true));
	claim(0, kernel);
	let_go(0);
	ck_assert(runs(1) && !runs(0));
	leave(1);
	leave_all(1);
}
END_TEST

/* An early one that claims late is put in front of later ones that are ready, but have not started. */
START_TEST(who_came_later_waits_for_what_is_put_in_front)
{
	add(0, whole(s.guest, true));
	enter(1);
	enter(2);
	claim_both(2, whole(s.guest, true), whole(s.other, true));
	let_go(2);
	ck_assert(!runs(2));
	claim(1, whole(s.other, true));
	let_go(1);
	third_waits_for_both();
}
END_TEST

/* The same where it kept a place there that is not all that it needs. */
START_TEST(who_came_later_waits_for_more_than_was_claimed_at_first)
{
	add(0, whole(s.guest, true));
	enter(1);
	claim(1, access(s.other, true, 0, 10));
	enter(2);
	claim_both(2, whole(s.guest, true), access(s.other, true, 50, 60));
	let_go(2);
	s.accesses[3][0] = access(s.other, true, 0, 60);
	scheduler_claim(s.scheduler, &s.entries[1], s.accesses[3], 1);
	let_go(1);
	third_waits_for_both();
}
END_TEST

/* What an entry kept is not in its own way when it needs more. */
START_TEST(nobody_waits_for_itself)
{
	enter(0);
	claim(0, access(s.other, false, 0, 10));
	s.accesses[1][0] = access(s.other, true, 0, 20);
	scheduler_claim(s.scheduler, &s.entries[0], s.accesses[1], 1);
	let_go(0);
	leave_all(1);
}
END_TEST

/* In front of those that have not started, whatever stood there. */
START_TEST(what_is_put_in_late_stands_behind_all_that_run)
{
	add(0, access(s.other, true, 0, 10));
	enter(1);
	add(2, access(s.other, true, 10, 20));
	add(3, access(s.other, true, 0, 20));
	claim(1, access(s.other, true, 10, 20));
	let_go(1);
	ck_assert(runs(0) && runs(2) && !runs(3) && !runs(1));
	leave(2);
	ck_assert(runs(1) && !runs(3));
	leave(0);
	ck_assert(!runs(3));
	leave(1);
	ck_assert(runs(3));
	leave(3);
	ck_assert(scheduler_is_idle(s.scheduler));
}
END_TEST

START_TEST(nobody_waits_for_a_root_that_goes)
{
	add(0, whole(s.other, true));
	add(1, whole(s.other, true));
	ck_assert(runs(0) && !runs(1));
	scheduler_forget_root(s.scheduler, &record_of(s.other)->queue);
	ck_assert(runs(1));
	leave(0);
	leave(1);
	ck_assert(scheduler_is_idle(s.scheduler));
}
END_TEST

START_TEST(what_is_held_is_told)
{
	struct scheduler_queue *queue = &record_of(s.other)->queue;
	struct scheduler_access frees = whole(s.other, true);

	frees.frees = true;
	enter(0);
	enter(1);
	claim(1, frees);
	enter(2);
	ck_assert(scheduler_may_go(queue, &s.entries[2]) && scheduler_may_be_used(queue, &s.entries[2]));
	ck_assert(!scheduler_may_go(queue, &s.entries[0]) && !scheduler_may_be_used(queue, &s.entries[0]));
	ck_assert(!scheduler_is_used_later(queue, &s.entries[0]));
	let_go(1);
	ck_assert(!scheduler_may_go(queue, &s.entries[2]) && !scheduler_may_be_used(queue, &s.entries[2]));
	claim(2, whole(s.other, false));
	ck_assert(!scheduler_is_used_later(queue, &s.entries[0]));
	let_go(2);
	ck_assert(!runs(2) && scheduler_is_used_later(queue, &s.entries[0]));
	s.accesses[2][0].survives = true;
	ck_assert(!scheduler_is_used_later(queue, &s.entries[0]));
	leave(0);
	leave(1);
	leave(2);
	ck_assert(scheduler_is_idle(s.scheduler));
}
END_TEST

Suite *suite_scheduler(void)
{
	Suite *suite = suite_create("service/scheduler");
	TCase *tests = tcase_create("scheduler");

	tcase_add_checked_fixture(tests, begin, end);
	tcase_add_test(tests, channels_apart_do_not_conflict);
	tcase_add_test(tests, a_conflict_far_ahead_counts);
	tcase_add_test(tests, footprints_conflict_across_meetings);
	tcase_add_test(tests, a_kernel_waits_for_what_has_started_though_it_came_later);
	tcase_add_test(tests, who_came_later_waits_for_what_is_put_in_front);
	tcase_add_test(tests, who_came_later_waits_for_more_than_was_claimed_at_first);
	tcase_add_test(tests, nobody_waits_for_itself);
	tcase_add_test(tests, what_is_put_in_late_stands_behind_all_that_run);
	tcase_add_test(tests, nobody_waits_for_a_root_that_goes);
	tcase_add_test(tests, what_is_held_is_told);
	suite_add_tcase(suite, tests);
	return suite;
}
