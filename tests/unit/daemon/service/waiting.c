/* The line: turns of the uids, deadlines, what can never fit, and what those outside the line may take. */
#include "daemon/service/waiting.h"

#include "tests/unit/daemon/service/world.h"

static struct waiter waiter_of(uint32_t uid, const void *owner)
{
	return (struct waiter){.uid = uid, .owner = owner, .deadline_ns = WAITING_NEVER};
}

/* The uids in the order in which they are served. */
static void check_order(struct waiting *waiting, const uint32_t *uids, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		ck_assert_ptr_nonnull(waiting->first);
		ck_assert_uint_eq(waiting->first->uid, uids[i]);
		waiting_served(waiting, waiting->first);
	}
	ck_assert_ptr_null(waiting->first);
	ck_assert_ptr_null(waiting->last);
	ck_assert_uint_eq(waiting->n, 0);
}

START_TEST(each_uid_has_one_in_each_turn)
{
	struct waiting waiting = {.n = 0};
	static const uint32_t came[] = {1, 1, 1, 2, 3, 2}, served[] = {1, 2, 3, 1, 2, 1};
	struct waiter waiters[6];

	for (unsigned i = 0; i < 6; i++) {
		waiters[i] = waiter_of(came[i], &waiting);
		ck_assert_int_eq(waiting_add(&waiting, &waiters[i], NULL), 0);
	}
	check_order(&waiting, served, 6);
}
END_TEST

START_TEST(who_was_just_served_does_not_pass_who_waits)
{
	struct waiting waiting = {.n = 0};
	struct waiter patient[2] = {waiter_of(1, NULL), waiter_of(1, NULL)}, greedy = waiter_of(2, NULL);

	waiting_add(&waiting, &patient[0], NULL);
	waiting_add(&waiting, &patient[1], NULL);
	waiting_add(&waiting, &greedy, NULL);
	waiting_served(&waiting, &patient[0]);
	waiting_served(&waiting, &greedy);
	waiting_add(&waiting, &greedy, NULL);
	ck_assert_ptr_eq(waiting.first, &patient[1]);
	waiting_remove(&waiting, &patient[1]);
	ck_assert_ptr_eq(waiting.first, &greedy);
	waiting_remove(&waiting, &greedy);
}
END_TEST

START_TEST(nobody_passes_the_head)
{
	struct waiting waiting = {.n = 0};
	struct waiter mine[3] = {waiter_of(1, NULL), waiter_of(1, NULL), waiter_of(1, NULL)},
		      other = waiter_of(2, NULL);

	for (unsigned i = 0; i < 3; i++)
		waiting_add(&waiting, &mine[i], NULL);
	waiting_remove(&waiting, &mine[0]);
	waiting_remove(&waiting, &mine[1]);
	waiting_add(&waiting, &other, NULL);
	ck_assert_ptr_eq(waiting.first, &mine[2]);
	ck_assert_ptr_eq(waiting.last, &other);
	waiting_remove(&waiting, &other);
	waiting_remove(&waiting, &mine[2]);
}
END_TEST

START_TEST(deadlines)
{
	struct waiting waiting = {.n = 0};
	struct waiter waiters[3] = {waiter_of(1, NULL), waiter_of(1, NULL), waiter_of(2, NULL)};

	ck_assert_uint_eq(waiting_deadline(&waiting), WAITING_NEVER);
	waiters[1].deadline_ns = 50;
	waiters[2].deadline_ns = 40;
	for (unsigned i = 0; i < 3; i++)
		waiting_add(&waiting, &waiters[i], NULL);
	ck_assert_uint_eq(waiting_deadline(&waiting), 40);
	ck_assert_ptr_null(waiting_expired(&waiting, 39));
	ck_assert_ptr_eq(waiting_expired(&waiting, 40), &waiters[2]);
	waiting.room = false;
	waiting_remove(&waiting, &waiters[2]);
	ck_assert(!waiting.room);
	ck_assert_ptr_eq(waiting_expired(&waiting, 50), &waiters[1]);
	waiting_remove(&waiting, &waiters[0]);
	ck_assert_msg(waiting.room, "the next one is to be tried");
}
END_TEST

START_TEST(one_owner_may_not_fill_the_line)
{
	struct waiting waiting = {.n = 0};
	struct waiter waiters[WAITING_OF_ONE_MAX + 1];
	struct npumem_error error;
	int others;

	npumem_error_clear(&error);
	for (unsigned i = 0; i < WAITING_OF_ONE_MAX; i++) {
		waiters[i] = waiter_of(1, &waiting);
		ck_assert_int_eq(waiting_add(&waiting, &waiters[i], &error), 0);
	}
	waiters[WAITING_OF_ONE_MAX] = waiter_of(1, &waiting);
	ck_assert_int_eq(waiting_add(&waiting, &waiters[WAITING_OF_ONE_MAX], &error), NPUMEM_RESOURCE_EXHAUSTED);
	ck_assert_ptr_nonnull(strstr(error.message, "64"));
	waiters[WAITING_OF_ONE_MAX].owner = &others;
	ck_assert_int_eq(waiting_add(&waiting, &waiters[WAITING_OF_ONE_MAX], &error), 0);
}
END_TEST

START_TEST(what_can_never_fit)
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
	requests[0].spec.shape.w = 8200;
	ck_assert(!waiting_measure(world.device, requests, 1, &waiter));
	requests[0].spec.shape.w = 256;
	requests[0].spec.address = 1024;
	ck_assert(waiting_measure(world.device, requests, 1, &waiter));
	ck_assert_int_eq(waiter.from, 1024);
	ck_assert_int_eq(waiter.to, 1280);
	world_deinit(&world);
}
END_TEST

/* Each of them would fit, and so would their bytes. */
START_TEST(together_they_can_never_fit)
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
END_TEST

/* Without memory to try it, it may wait. */
START_TEST(a_trial_that_cannot_be_made_keeps_nobody_out)
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
END_TEST

static int alloc(struct world *world, struct session *session, int64_t w, int64_t address, enum tensors_turn turn,
		 struct tensor **tensor)
{
	struct device_request request = world_request(8, w);
	const char *name = "";

	request.spec.address = address;
	npumem_error_clear(&world->error);
	return tensors_alloc_in_turn(session, &request, &name, 1, turn, tensor, &world->error);
}

/* Free: 2048 bytes at 1024, 1024 at 4096. */
START_TEST(what_the_head_waits_for_is_kept)
{
	static const int64_t taken[][2] = {{0, 1024}, {3072, 1024}, {5120, 3072}};
	struct world world;
	struct session one;
	struct tensor *tensor;
	struct waiter head = waiter_of(1, NULL);

	world_init(&world);
	ck_assert_int_eq(session_init(&one, &world.service, 1001, 1, NULL), 0);
	for (unsigned i = 0; i < 3; i++)
		ck_assert_int_eq(alloc(&world, &one, taken[i][1], taken[i][0], TENSORS_AT_ONCE, &tensor), 0);
	waiting_add(&world.service.waiting, &head, NULL);
	ck_assert_int_eq(alloc(&world, &one, 2048, NPUMEM_ANY, TENSORS_AT_ONCE, &tensor),
			 NPUMEM_RESOURCE_EXHAUSTED);
	ck_assert_ptr_nonnull(strstr(world.error.message, "kept for the 1 allocations"));
	ck_assert(tensors_lacked_room(&world.error));
	world_check(&world);
	ck_assert_int_eq(world_n_tensors(&world), 3);
	ck_assert_int_eq(alloc(&world, &one, 512, NPUMEM_ANY, TENSORS_LAST, &tensor), NPUMEM_RESOURCE_EXHAUSTED);
	ck_assert_int_eq(alloc(&world, &one, 512, NPUMEM_ANY, TENSORS_AT_ONCE, &tensor), 0);
	ck_assert_int_eq(tensor->place.offset, 4096);
	head.from = 4700;
	head.to = 4800;
	ck_assert_int_eq(alloc(&world, &one, 512, NPUMEM_ANY, TENSORS_AT_ONCE, &tensor),
			 NPUMEM_RESOURCE_EXHAUSTED);
	ck_assert_int_eq(alloc(&world, &one, 2048, NPUMEM_ANY, TENSORS_HEAD, &tensor), 0);
	waiting_remove(&world.service.waiting, &head);
	session_deinit(&one);
	world_deinit(&world);
}
END_TEST

Suite *suite_waiting(void)
{
	Suite *suite = suite_create("service/waiting");
	TCase *tcase = tcase_create("all");

	tcase_add_test(tcase, each_uid_has_one_in_each_turn);
	tcase_add_test(tcase, who_was_just_served_does_not_pass_who_waits);
	tcase_add_test(tcase, nobody_passes_the_head);
	tcase_add_test(tcase, deadlines);
	tcase_add_test(tcase, one_owner_may_not_fill_the_line);
	tcase_add_test(tcase, what_can_never_fit);
	tcase_add_test(tcase, together_they_can_never_fit);
	tcase_add_test(tcase, a_trial_that_cannot_be_made_keeps_nobody_out);
	tcase_add_test(tcase, what_the_head_waits_for_is_kept);
	suite_add_tcase(suite, tcase);
	return suite;
}
