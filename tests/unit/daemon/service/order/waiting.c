/* The line: turns of the uids, deadlines, what can never fit, which users a request in the line delays, and what
 * those outside the line may take. */
#include "daemon/service/order/waiting.h"

#include "tests/unit/daemon/service/world.h"

static const struct npumem_geometry geometry = {.n_npus = 8, .npu_bytes = 8192, .n_banks = 8, .eu_bytes = 128};
static struct limits_table limits;
static struct limits_user *users[4]; /* of the uids 1 to 3 */
static struct waiting waiting;

static void begin(void)
{
	limits_init(&limits, &heap_libc, &geometry, 500);
	for (uint32_t uid = 1; uid < 4; uid++)
		users[uid] = limits_take(&limits, uid);
	waiting_init(&waiting, &limits);
}

/* All of the line have left. */
static void end(void)
{
	for (unsigned uid = 1; uid < 4; uid++)
		limits_drop(&limits, users[uid]);
	limits_deinit(&limits);
}

static struct waiter waiter_of(unsigned uid)
{
	return (struct waiter){.user = users[uid], .deadline_ns = WAITING_NEVER};
}

static struct waiter *first(const struct waiting *of)
{
	return of->first->waiters;
}

/* The uids in the order in which they are served. */
static void check_order(const uint32_t *uids, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		ck_assert_ptr_nonnull(waiting.first);
		ck_assert_uint_eq(waiting.first->uid, uids[i]);
		waiting_served(&waiting, first(&waiting));
	}
	ck_assert_ptr_null(waiting.first);
	ck_assert_uint_eq(waiting.n, 0);
}

TEST(each_uid_has_one_in_each_turn)
{
	static const uint32_t came[] = {1, 1, 1, 2, 3, 2}, served[] = {1, 2, 3, 1, 2, 1};
	struct waiter waiters[6];
	for (unsigned i = 0; i < 6; i++) {
		waiters[i] = waiter_of(came[i]);
		ck_assert_int_eq(waiting_add(&waiting, &waiters[i], NULL), 0);
	}
	check_order(served, 6);
}

TEST(who_was_just_served_does_not_pass_who_waits)
{
	struct waiter patient[2] = {waiter_of(1), waiter_of(1)}, greedy = waiter_of(2);
	waiting_add(&waiting, &patient[0], NULL);
	waiting_add(&waiting, &patient[1], NULL);
	waiting_add(&waiting, &greedy, NULL);
	waiting_served(&waiting, &patient[0]);
	waiting_served(&waiting, &greedy);
	waiting_add(&waiting, &greedy, NULL);
	ck_assert_ptr_eq(first(&waiting), &patient[1]);
	waiting_remove(&waiting, &patient[1]);
	ck_assert_ptr_eq(first(&waiting), &greedy);
	waiting_remove(&waiting, &greedy);
}

TEST(nobody_passes_the_head)
{
	struct waiter mine[3] = {waiter_of(1), waiter_of(1), waiter_of(1)}, other = waiter_of(2);
	for (unsigned i = 0; i < 3; i++)
		waiting_add(&waiting, &mine[i], NULL);
	waiting_remove(&waiting, &mine[0]);
	waiting_remove(&waiting, &mine[1]);
	waiting_add(&waiting, &other, NULL);
	ck_assert_ptr_eq(first(&waiting), &mine[2]);
	ck_assert_ptr_eq(waiting.first->prev_turn, users[2]);
	waiting_remove(&waiting, &other);
	waiting_remove(&waiting, &mine[2]);
}

TEST(deadlines)
{
	struct waiter waiters[4] = {waiter_of(1), waiter_of(1), waiter_of(2), waiter_of(3)};
	ck_assert_uint_eq(waiting.deadline_ns, WAITING_NEVER);
	waiters[1].deadline_ns = 50;
	waiters[2].deadline_ns = waiters[3].deadline_ns = 40;
	for (unsigned i = 0; i < 4; i++)
		waiting_add(&waiting, &waiters[i], NULL);
	ck_assert_uint_eq(waiting.deadline_ns, 40);
	ck_assert_ptr_null(waiting_expired(&waiting, 39));
	ck_assert_ptr_eq(waiting_expired(&waiting, 40), &waiters[2]);
	waiting_remove(&waiting, &waiters[2]);
	ck_assert_ptr_eq(waiting_expired(&waiting, 40), &waiters[3]);
	waiting_remove(&waiting, &waiters[3]);
	/* Once it was looked for the next is known. */
	ck_assert_uint_eq(waiting.deadline_ns, 40);
	ck_assert_ptr_null(waiting_expired(&waiting, 40));
	ck_assert_uint_eq(waiting.deadline_ns, 50);
	waiters[2].deadline_ns = 45;
	waiting_add(&waiting, &waiters[2], NULL);
	ck_assert_uint_eq(waiting.deadline_ns, 45);
	waiting_remove(&waiting, &waiters[2]);
	ck_assert_ptr_eq(waiting_expired(&waiting, 50), &waiters[1]);
	waiting_remove(&waiting, &waiters[1]);
	ck_assert_ptr_null(waiting_expired(&waiting, 50));
	ck_assert_uint_eq(waiting.deadline_ns, WAITING_NEVER);
	waiters[1].deadline_ns = 60;
	waiting_add(&waiting, &waiters[1], NULL);
	waiting_remove(&waiting, &waiters[1]);
	waiting_remove(&waiting, &waiters[0]);
	ck_assert_uint_eq(waiting.deadline_ns, WAITING_NEVER);
}

TEST(one_uid_may_not_fill_the_line)
{
	struct waiter waiters[3] = {waiter_of(1), waiter_of(1), waiter_of(2)};
	struct npumem_error error;
	npumem_error_clear(&error);
	limits.all[LIMITS_WAITING] = 2;
	ck_assert_int_eq(waiting_add(&waiting, &waiters[0], &error), 0);
	ck_assert_int_eq(waiting_add(&waiting, &waiters[1], &error), NPUMEM_RESOURCE_EXHAUSTED);
	ck_assert_str_eq(error.message, "uid 1 has 1 waiting, and 1 more would pass its limit of 1");
	ck_assert_int_eq(waiting_add(&waiting, &waiters[2], &error), 0);
	limits.all[LIMITS_WAITING] = 4;
	limits.ordinary.most[LIMITS_WAITING] = 1;
	ck_assert_int_eq(waiting_add(&waiting, &waiters[1], &error), NPUMEM_RESOURCE_EXHAUSTED);
	waiting_remove(&waiting, &waiters[0]);
	ck_assert_int_eq(waiting_add(&waiting, &waiters[1], &error), 0);
	waiting_served(&waiting, &waiters[1]);
	waiting_remove(&waiting, &waiters[2]);
	ck_assert_uint_eq(limits.now[LIMITS_WAITING], 0);
}

TEST(what_can_never_fit)
{
	struct device_request requests[2] = {world_request(8, 8192), world_request(8, 4)};
	struct world world;
	struct waiter waiter;
	world_init(&world);
	ck_assert(waiting_measure(world.device, requests, 1, &waiter));
	ck_assert_int_ge(waiter.from, waiter.to);
	ck_assert(!waiting_measure(world.device, requests, 2, &waiter));
	requests[1].reuse = NPUMEM_IF_SAFE;
	ck_assert(waiting_measure(world.device, requests, 2, &waiter));
	ck_assert_uint_eq(waiter.bytes, 8 * (8192 + 128));
	requests[0].spec.shape.w = 8200;
	ck_assert(!waiting_measure(world.device, requests, 1, &waiter));
	requests[0].spec.shape.w = 256;
	requests[0].spec.address = 1024;
	ck_assert(waiting_measure(world.device, requests, 1, &waiter));
	ck_assert_int_eq(waiter.from, 1024);
	ck_assert_int_eq(waiter.to, 1280);
	ck_assert_uint_eq(waiter.bytes, 8 * 256);
	world_deinit(&world);
}

/* Each of them would fit, and so would their bytes. */
TEST(together_they_can_never_fit)
{
	struct device_request requests[2] = {world_request(8, 1024), world_request(8, 1024)};
	struct world world;
	struct waiter waiter;
	world_init(&world);
	requests[0].spec.address = 1024;
	requests[1].spec.address = 1920;
	ck_assert(!waiting_measure(world.device, requests, 2, &waiter));
	requests[1].spec.address = 2048;
	ck_assert(waiting_measure(world.device, requests, 2, &waiter));
	ck_assert_int_eq(waiter.to, 3072);
	/* What is left on both sides of the first is 3840 bytes each. */
	requests[0] = world_request(8, 512);
	requests[0].spec.address = 3840;
	requests[1] = world_request(8, 3968);
	ck_assert(!waiting_measure(world.device, requests, 2, &waiter));
	requests[1].spec.shape.w = 3840;
	ck_assert(waiting_measure(world.device, requests, 2, &waiter));
	ck_assert_int_eq(world_n_tensors(&world), 0);
	world_deinit(&world);
}

/* Without memory to try it, it may wait. */
TEST(a_trial_that_cannot_be_made_keeps_nobody_out)
{
	struct device_request requests[2] = {world_request(8, 1024), world_request(8, 1024)};
	struct world world;
	struct waiter waiter;
	bool fits = true;
	requests[0].spec.address = requests[1].spec.address = 1024;
	world_init(&world);
	for (size_t i = 1; fits; i++) {
		size_t alive = world.n_alive;
		world.n_allocs = 0;
		world.fail_at = i;
		fits = waiting_measure(world.device, requests, 2, &waiter);
		ck_assert_uint_eq(world.n_alive, alive);
	}
	ck_assert_uint_gt(world.n_allocs, 3);
	ck_assert_uint_lt(world.n_allocs, world.fail_at);
	world.fail_at = 0;
	world_deinit(&world);
}

static int alloc(struct world *world, struct session *session, int64_t w, int64_t address, enum tensors_turn turn,
		 struct tensor **tensor)
{
	struct device_request request = world_request(8, w);
	const char *name = "";
	request.spec.address = address;
	npumem_error_clear(&world->error);
	struct tensors_alloc alloc = {.session = session,
				      .requests = &request,
				      .names = &name,
				      .labels = &name,
				      .n = 1,
				      .tensors = tensor,
				      .turn = turn};
	int64_t steps = INT64_MAX;
	int status = tensors_alloc_begin(&alloc, &world->error);

	return status ? status : tensors_alloc_step(&alloc, &steps, &world->error);
}

/* Free: 2048 bytes at 1024, 1024 at 4096. */
TEST(what_the_head_waits_for_is_kept)
{
	static const int64_t taken[][2] = {{0, 1024}, {3072, 1024}, {5120, 3072}};
	struct world world;
	struct session one;
	struct tensor *tensor;
	struct waiter head = waiter_of(1);
	world_init(&world);
	ck_assert_int_eq(session_init(&one, &world.service, 1001, 1, NULL), 0);
	head.user = one.user;
	for (unsigned i = 0; i < 3; i++)
		ck_assert_int_eq(alloc(&world, &one, taken[i][1], taken[i][0], TENSORS_AT_ONCE, &tensor), 0);
	waiting_add(&world.service.waiting, &head, NULL);
	ck_assert_int_eq(alloc(&world, &one, 2048, NPUMEM_ANY, TENSORS_AT_ONCE, &tensor),
			 NPUMEM_RESOURCE_EXHAUSTED);
	ck_assert_ptr_nonnull(
		strstr(world.error.message, "kept for allocations that wait for room, 1 of them of "));
	ck_assert(tensors_lacked_room(&world.error));
	world_check(&world);
	ck_assert_int_eq(world_n_tensors(&world), 3);
	ck_assert_int_eq(alloc(&world, &one, 512, NPUMEM_ANY, TENSORS_LAST, &tensor), NPUMEM_RESOURCE_EXHAUSTED);
	ck_assert_int_eq(alloc(&world, &one, 512, NPUMEM_ANY, TENSORS_AT_ONCE, &tensor), 0);
	ck_assert_int_eq(tensor_place(tensor).offset, 4096);
	head.from = 4700;
	head.to = 4800;
	/* One with an address has its range alone: others are placed elsewhere. */
	ck_assert_int_eq(alloc(&world, &one, 512, 4608, TENSORS_AT_ONCE, &tensor), NPUMEM_RESOURCE_EXHAUSTED);
	ck_assert_int_eq(alloc(&world, &one, 512, 4608, TENSORS_HEAD, &tensor), NPUMEM_RESOURCE_EXHAUSTED);
	ck_assert_int_eq(alloc(&world, &one, 512, NPUMEM_ANY, TENSORS_LAST, &tensor), 0);
	ck_assert_int_eq(tensor_place(tensor).offset, 1024);
	ck_assert_int_eq(alloc(&world, &one, 1536, NPUMEM_ANY, TENSORS_AT_ONCE, &tensor), 0);
	ck_assert_int_eq(tensor_place(tensor).offset, 1536);
	ck_assert_int_eq(alloc(&world, &one, 512, NPUMEM_ANY, TENSORS_AT_ONCE, &tensor),
			 NPUMEM_RESOURCE_EXHAUSTED);
	world_check(&world);
	waiting_remove(&world.service.waiting, &head);
	session_deinit(&one);
	world_deinit(&world);
}

/* ---- which users an allocation in the line delays ---- */

static uint64_t now_ns;

static uint64_t test_clock(void)
{
	return now_ns;
}

struct shared {
	struct world world;
	struct session one, two;
	struct waiting *waiting;
};

static void shared_init(struct shared *shared)
{
	world_init(&shared->world);
	ck_assert_int_eq(session_init(&shared->one, &shared->world.service, 1001, 1, NULL), 0);
	ck_assert_int_eq(session_init(&shared->two, &shared->world.service, 1002, 1, NULL), 0);
	shared->world.service.events.now_ns = test_clock;
	shared->waiting = &shared->world.service.waiting;
	now_ns = 0;
}

static void shared_deinit(struct shared *shared)
{
	while (shared->waiting->first)
		waiting_remove(shared->waiting, first(shared->waiting));
	session_deinit(&shared->one);
	session_deinit(&shared->two);
	world_deinit(&shared->world);
}

FIXTURE_OBJECT(struct shared, shared, shared_init(&shared), shared_deinit(&shared))

static struct waiter asking(const struct session *session, uint64_t bytes)
{
	return (struct waiter){.user = session->user, .deadline_ns = WAITING_NEVER, .bytes = bytes};
}

/* At the beginning of each NPU. */
static struct waiter asking_at(const struct session *session, uint64_t bytes)
{
	struct waiter waiter = asking(session, bytes);

	waiter.to = 64;
	return waiter;
}

/* From one that asks for room now, of neither user. */
#define claims(shared, waiter) ck_assert_ptr_eq(waiting_claims(&(shared)->world.service, NULL).extent, waiter)
#define next_is(shared, waiter) ck_assert_ptr_eq(waiting_next(&(shared)->world.service), waiter)

TEST(others_are_held_up_in_every_second_window)
{
	static struct waiter one, two;
	one = asking(&shared.one, 64);
	two = asking(&shared.two, 64);
	claims(&shared, NULL);
	waiting_add(shared.waiting, &one, NULL);
	claims(&shared, &one);
	ck_assert_uint_eq(waiting_window_end(&shared.world.service), WAITING_NEVER);
	waiting_add(shared.waiting, &two, NULL);
	ck_assert_uint_eq(waiting_window_end(&shared.world.service), WAITING_WINDOW_NS);
	now_ns = WAITING_WINDOW_NS - 1;
	claims(&shared, &one);
	now_ns = WAITING_WINDOW_NS;
	claims(&shared, NULL);
	ck_assert_uint_eq(waiting_window_end(&shared.world.service), 2 * WAITING_WINDOW_NS);
	/* Its own user's later requests wait in each. */
	ck_assert_ptr_eq(waiting_claims(&shared.world.service, two.user).extent, &two);
	now_ns = 2 * WAITING_WINDOW_NS;
	claims(&shared, &one);
	now_ns = WAITING_WINDOW_NS;
	shared.world.service.events.now_ns = NULL;
	claims(&shared, &one);
}

TEST(a_range_is_kept_in_every_second_window)
{
	static struct waiter waiter;
	waiter = asking_at(&shared.one, 64);
	waiting_add(shared.waiting, &waiter, NULL);
	ck_assert_ptr_eq(waiting_claims(&shared.world.service, shared.two.user).range, &waiter);
	now_ns = WAITING_WINDOW_NS;
	ck_assert_ptr_null(waiting_claims(&shared.world.service, shared.two.user).range);
	ck_assert_ptr_eq(waiting_claims(&shared.world.service, shared.one.user).range, &waiter);
}

TEST(what_would_pass_its_users_limit_holds_nobody_up)
{
	static struct waiter waiter;
	struct limits_table *table = &shared.world.service.limits;
	waiter = asking(&shared.one, 1024);
	waiting_add(shared.waiting, &waiter, NULL);
	table->ordinary.most[LIMITS_DEVICE_BYTES] = 1024;
	claims(&shared, &waiter);
	/* What its user has counts, too. */
	limits_charge(table, shared.one.user, LIMITS_DEVICE_BYTES, 1);
	claims(&shared, NULL);
	waiter.bytes--;
	claims(&shared, &waiter);
	limits_give_back(table, shared.one.user, LIMITS_DEVICE_BYTES, 1);
}

TEST(the_first_of_each_user_is_tried_where_nobody_is_held_up)
{
	static struct waiter one[2], two[2];
	now_ns = WAITING_WINDOW_NS;
	next_is(&shared, NULL);
	for (unsigned i = 0; i < 2; i++) {
		one[i] = asking(&shared.one, 64);
		waiting_add(shared.waiting, &one[i], NULL);
		two[i] = asking(&shared.two, 64);
		waiting_add(shared.waiting, &two[i], NULL);
	}
	shared.waiting->room = true;
	/* The first was tried before it stood in line, and is tried again as there is room. */
	next_is(&shared, &two[0]);
	next_is(&shared, &one[0]);
	next_is(&shared, &two[0]);
	next_is(&shared, NULL);
	/* Who leaves lets those behind it be tried, and only those. */
	waiting_remove(shared.waiting, &one[0]);
	next_is(&shared, &one[1]);
	next_is(&shared, NULL);
	waiting_served(shared.waiting, &two[0]);
	next_is(&shared, &two[1]);
	next_is(&shared, NULL);
	/* A newcomer behind those that were tried. */
	waiting_served(shared.waiting, &two[1]);
	next_is(&shared, NULL);
	waiting_add(shared.waiting, &two[1], NULL);
	next_is(&shared, &two[1]);
	next_is(&shared, NULL);
}

TEST(what_is_freed_all_the_time_does_not_keep_the_last_from_being_tried)
{
	static struct waiter ranges[2], last;
	now_ns = WAITING_WINDOW_NS;
	for (unsigned i = 0; i < 2; i++) {
		ranges[i] = asking_at(&shared.one, 64);
		waiting_add(shared.waiting, &ranges[i], NULL);
	}
	last = asking(&shared.two, 64);
	waiting_add(shared.waiting, &last, NULL);
	shared.waiting->room = true;
	next_is(&shared, &ranges[1]);
	shared.waiting->room = true;
	next_is(&shared, &last);
	shared.waiting->room = true;
	next_is(&shared, &ranges[0]);
	shared.waiting->room = true;
	next_is(&shared, &ranges[1]);
	shared.waiting->room = true;
	next_is(&shared, &last);
}

TEST(in_every_second_window_the_first_holds_all_up)
{
	static struct waiter one, two;
	one = asking(&shared.one, 64);
	two = asking(&shared.two, 64);
	waiting_add(shared.waiting, &one, NULL);
	waiting_add(shared.waiting, &two, NULL);
	next_is(&shared, NULL);
	shared.waiting->room = true;
	next_is(&shared, &one);
	next_is(&shared, NULL);
	now_ns = WAITING_WINDOW_NS;
	shared.waiting->is_due = true;
	next_is(&shared, &two);
	next_is(&shared, NULL);
	now_ns = 2 * WAITING_WINDOW_NS;
	shared.waiting->room = true;
	next_is(&shared, &one);
	next_is(&shared, NULL);
}

/* As they have an address for a part of what they ask for. */
TEST(the_claimant_is_found_behind_all_that_hold_nobody_up)
{
	enum { N = 200 };
	static struct waiter mixed[N], last;
	for (unsigned i = 0; i < N; i++) {
		mixed[i] = asking_at(&shared.one, 128);
		mixed[i].anywhere = 64;
		waiting_add(shared.waiting, &mixed[i], NULL);
	}
	claims(&shared, NULL);
	last = asking(&shared.one, 64);
	waiting_add(shared.waiting, &last, NULL);
	claims(&shared, &last);
	shared.waiting->room = true;
	for (unsigned i = 1; i < N; i++)
		next_is(&shared, &mixed[i]);
	next_is(&shared, &last);
}

TEST(in_the_other_windows_others_have_what_fits)
{
	static struct waiter waiter;
	struct tensor *tensor;
	waiter = asking(&shared.one, 64);
	waiting_add(shared.waiting, &waiter, NULL);
	for (int i = TENSORS_AT_ONCE; i <= TENSORS_LAST; i++) {
		now_ns = 0;
		ck_assert_int_eq(alloc(&shared.world, &shared.two, 64, NPUMEM_ANY, (enum tensors_turn)i, &tensor),
				 NPUMEM_RESOURCE_EXHAUSTED);
		now_ns = WAITING_WINDOW_NS;
		ck_assert_int_eq(alloc(&shared.world, &shared.two, 64, NPUMEM_ANY, (enum tensors_turn)i, &tensor),
				 0);
	}
}

static void search_begins(struct waiter *waiter)
{
	next_is(&shared, waiter);
	waiting_search_begins(shared.waiting, waiter);
}

static void search_fails(struct waiter *waiter)
{
	waiting_gives_back(shared.waiting, waiter);
	waiting_search_ended(shared.waiting, waiter);
}

/* They were not tried in this round, and hold nobody up. */
static void searches_wait(struct waiter *searches, unsigned n)
{
	now_ns = WAITING_WINDOW_NS;
	for (unsigned i = 0; i < n; i++) {
		searches[i] = asking_at(i % 2 ? &shared.two : &shared.one, 64);
		searches[i].reuses = true;
		waiting_add(shared.waiting, &searches[i], NULL);
	}
	shared.waiting->round++;
}

/* One may take as long as hundreds of other tries. */
TEST(each_user_has_one_search_and_others_go_on_beside_it)
{
	static struct waiter searches[3], small;
	searches_wait(searches, 3);
	small = asking(&shared.two, 64);
	waiting_add(shared.waiting, &small, NULL);
	next_is(&shared, &small);
	search_begins(&searches[2]);
	search_begins(&searches[1]);
	next_is(&shared, NULL);
	shared.waiting->room = true;
	next_is(&shared, &small);
	next_is(&shared, NULL);
	/* It has held room, for the lack of which the small one may have failed. */
	search_fails(&searches[2]);
	next_is(&shared, &small);
	search_begins(&searches[0]);
	next_is(&shared, NULL);
	waiting_remove(shared.waiting, &searches[0]);
	search_begins(&searches[2]);
	next_is(&shared, NULL);
}

/* Each may have held what the other one lacked. */
TEST(searches_that_failed_beside_each_other_are_repeated_one_at_a_time)
{
	static struct waiter searches[2];
	searches_wait(searches, 2);
	search_begins(&searches[0]);
	search_begins(&searches[1]);
	next_is(&shared, NULL);
	/* The second one was under way when the first one gave back, which had ended when the second one did. */
	search_fails(&searches[0]);
	next_is(&shared, NULL);
	search_fails(&searches[1]);
	search_begins(&searches[0]);
	next_is(&shared, NULL);
	search_fails(&searches[0]);
	search_begins(&searches[1]);
	next_is(&shared, NULL);
	search_fails(&searches[1]);
	/* They were alone: there is no end of it else. */
	next_is(&shared, NULL);
}

/* The repeated one may have failed for what the other one held, once more. */
TEST(a_search_that_begins_beside_a_repeated_one_has_it_repeated_again)
{
	struct session third;
	static struct waiter searches[2], late;
	session_init(&third, &shared.world.service, 1003, 1, NULL);
	searches_wait(searches, 2);
	search_begins(&searches[0]);
	search_begins(&searches[1]);
	search_fails(&searches[0]);
	search_fails(&searches[1]);
	search_begins(&searches[0]);
	late = asking_at(&third, 64);
	late.reuses = true;
	waiting_add(shared.waiting, &late, NULL);
	search_begins(&late);
	search_fails(&searches[0]);
	search_fails(&late);
	search_begins(&searches[1]);
	search_fails(&searches[1]);
	search_begins(&searches[0]);
	search_fails(&searches[0]);
	search_begins(&late);
	search_fails(&late);
	next_is(&shared, NULL);
	waiting_remove(shared.waiting, &late);
	session_deinit(&third);
}

TEST(what_its_users_compaction_holds_back_keeps_nothing)
{
	struct scheduler_entry compaction;
	static struct waiter search, small;
	search = asking(&shared.one, 64);
	search.reuses = true;
	small = asking(&shared.two, 64);
	waiting_add(shared.waiting, &search, NULL);
	waiting_add(shared.waiting, &small, NULL);
	claims(&shared, &search);
	next_is(&shared, NULL);
	shared.one.user->order.exclusive = &compaction;
	shared.waiting->is_due = true;
	claims(&shared, &small);
	next_is(&shared, &small);
	/* One that does not search is tried in any case. */
	search.reuses = false;
	claims(&shared, &search);
	shared.one.user->order.exclusive = NULL;
}

FIXTURE(begin, end)
