/* Who hears what, the ring of a subscriber that does not read, and low space. */
#include "daemon/service/observed/events.h"

#include "tests/unit/daemon/service/world.h"

enum { ALL = (1 << EVENTS_N) - 1 };

struct hall {
	struct world world;
	struct session mine, stranger, admin;
};

static uint64_t clock_7(void)
{
	return 7;
}

static void hall_init(struct hall *hall)
{
	world_init(&hall->world);
	hall->world.service.events.now_ns = clock_7;
	ck_assert_int_eq(session_init(&hall->mine, &hall->world.service, 1001, 11, NULL), 0);
	ck_assert_int_eq(session_init(&hall->stranger, &hall->world.service, 1002, 12, NULL), 0);
	ck_assert_int_eq(session_init(&hall->admin, &hall->world.service, 500, 13, NULL), 0);
}

static void hall_deinit(struct hall *hall)
{
	while (hall->world.service.events.subscribers)
		events_unsubscribe(&hall->world.service, hall->world.service.events.subscribers);
	session_deinit(&hall->mine);
	session_deinit(&hall->stranger);
	session_deinit(&hall->admin);
	world_deinit(&hall->world);
}

START_TEST(names_and_kinds)
{
	for (int kind = 0; kind < EVENTS_N; kind++)
		ck_assert_int_eq(events_parse(events_name((enum events_kind)kind)), kind);
	ck_assert_int_eq(events_parse(""), -1);
	ck_assert_int_eq(events_parse("progres"), -1);
}
END_TEST

START_TEST(of_what_one_may_not_use_only_uid_and_bytes)
{
	struct hall hall;
	struct events_subscriber *to[3];
	struct tensor *tensor;
	struct event event;

	hall_init(&hall);
	to[0] = events_subscribe(&hall.world.service, &hall.mine, NULL, ALL);
	to[1] = events_subscribe(&hall.world.service, &hall.stranger, NULL, ALL);
	to[2] = events_subscribe(&hall.world.service, &hall.admin, NULL, ALL);
	tensor = world_tensor(&hall.world, &hall.mine, "x");
	for (unsigned i = 0; i < 3; i++) {
		ck_assert(events_take(to[i], &event));
		ck_assert_int_eq(event.kind, EVENTS_ALLOCATED);
		ck_assert_uint_eq(event.uid, 1001);
		ck_assert_uint_eq(event.bytes, (uint64_t)tensor->place.bytes_per_npu);
		ck_assert_uint_eq(event.time_ns, 7);
		ck_assert_uint_eq(event.handle, i == 1 ? 0 : tensor->handle);
		ck_assert_uint_eq(event.pid, i == 1 ? 0 : 11);
		ck_assert_uint_eq(event.session, i == 1 ? 0 : hall.mine.id);
		ck_assert_str_eq(event.name, i == 0 ? "x" : i == 1 ? "" : event.name);
		ck_assert(!events_take(to[i], &event));
	}
	npumem_error_clear(&hall.world.error);
	npumem_error_set(&hall.world.error, NPUMEM_NOT_FOUND, "there is no tensor y");
	events_refused(&hall.mine, 3, &hall.world.error);
	for (unsigned i = 0; i < 3; i++) {
		ck_assert(events_take(to[i], &event));
		ck_assert_uint_eq(event.uid, 1001);
		ck_assert_str_eq(event.message, i == 1 ? "" : "there is no tensor y");
		ck_assert_uint_eq(event.request_id, i == 1 ? 0 : 3);
	}
	hall_deinit(&hall);
}
END_TEST

START_TEST(only_the_kinds_that_were_asked_for)
{
	struct hall hall;
	struct events_subscriber *to;
	struct event event;

	hall_init(&hall);
	to = events_subscribe(&hall.world.service, &hall.mine, NULL, 1 << EVENTS_SEALED | 1 << EVENTS_CLIENT_GONE);
	world_tensor(&hall.world, &hall.mine, "x");
	ck_assert(!events_take(to, &event));
	events_client_gone(&hall.stranger);
	ck_assert(events_take(to, &event));
	ck_assert_int_eq(event.kind, EVENTS_CLIENT_GONE);
	ck_assert_uint_eq(event.uid, 1002);
	ck_assert_uint_eq(event.pid, 0);
	hall_deinit(&hall);
}
END_TEST

START_TEST(the_oldest_are_lost_and_counted_once)
{
	struct hall hall;
	struct events_subscriber *to;
	struct event event = {.kind = EVENTS_PROGRESS};

	hall_init(&hall);
	to = events_subscribe(&hall.world.service, &hall.mine, NULL, ALL);
	for (event.done = 1; event.done <= EVENTS_RING + 5; event.done++)
		events_put(to, &event);
	ck_assert(events_take(to, &event));
	ck_assert_uint_eq(event.lost, 5);
	ck_assert_uint_eq(event.done, 6);
	for (unsigned i = 1; i < EVENTS_RING; i++) {
		ck_assert(events_take(to, &event));
		ck_assert_uint_eq(event.lost, 0);
		ck_assert_uint_eq(event.done, 6 + i);
	}
	ck_assert(!events_take(to, &event));
	hall_deinit(&hall);
}
END_TEST

static struct tensor *take(struct hall *hall, int64_t w)
{
	struct device_request request = world_request(8, w);
	struct tensor *tensor;
	const char *name = "";

	ck_assert_int_eq(tensors_alloc(&hall->mine, &request, &name, 1, &tensor, &hall->world.error), 0);
	return tensor;
}

START_TEST(low_space_is_told_once_until_there_was_enough)
{
	struct hall hall;
	struct events_subscriber *to;
	struct tensor *small, *smaller;
	struct event event;

	hall_init(&hall);
	to = events_subscribe(&hall.world.service, &hall.mine, NULL, 1 << EVENTS_LOW_SPACE);
	take(&hall, 7168); /* 1024 of 8192 left: 12.5 % */
	ck_assert(!events_take(to, &event));
	small = take(&hall, 256);
	ck_assert(events_take(to, &event));
	ck_assert_uint_eq(event.bytes, 768);
	smaller = take(&hall, 128);
	service_release(&hall.world.service, smaller);
	service_release(&hall.world.service, small);
	small = take(&hall, 256);
	ck_assert_msg(!events_take(to, &event), "it came back over the low mark only");
	service_release(&hall.world.service, small);
	service_release(&hall.world.service, hall.mine.unnamed->first->tensor);
	take(&hall, 8000);
	ck_assert(events_take(to, &event));
	hall_deinit(&hall);
}
END_TEST

/* Each that has something stands in line once, in the order that it came, and leaves with its subscription. */
START_TEST(the_line)
{
	struct hall hall;
	struct events_subscriber *to[4];
	struct event event = {.kind = EVENTS_PROGRESS};
	struct events *events;

	hall_init(&hall);
	events = &hall.world.service.events;
	for (unsigned i = 0; i < 4; i++)
		to[i] = events_subscribe(&hall.world.service, &hall.mine, NULL, ALL);
	ck_assert_ptr_null(events_next_ready(events));
	for (unsigned i = 4; i-- > 0;)
		events_put(to[i], &event);
	events_put(to[3], &event);
	events_unsubscribe(&hall.world.service, to[1]);
	ck_assert_ptr_eq(events_next_ready(events), to[3]);
	events_put(to[3], &event);
	ck_assert_ptr_eq(events_next_ready(events), to[2]);
	events_unsubscribe(&hall.world.service, to[3]);
	ck_assert_ptr_eq(events_next_ready(events), to[0]);
	ck_assert_ptr_null(events_next_ready(events));
	hall_deinit(&hall);
}
END_TEST

/* Of one event there is one for all who are told the same, as long as one of them has it in its ring. */
START_TEST(what_is_told_alike_is_held_once)
{
	struct hall hall;
	struct events_subscriber *to[4];
	struct event event;
	size_t n_alive;

	hall_init(&hall);
	for (unsigned i = 0; i < 3; i++)
		to[i] = events_subscribe(&hall.world.service, &hall.stranger, NULL, ALL);
	to[3] = events_subscribe(&hall.world.service, &hall.mine, NULL, 1 << EVENTS_SEALED);
	n_alive = hall.world.n_alive;
	events_client_gone(&hall.mine);
	ck_assert_uint_eq(hall.world.n_alive, n_alive + 1);
	ck_assert(events_take(to[0], &event));
	ck_assert_uint_eq(event.uid, 1001);
	ck_assert_uint_eq(event.pid, 0);
	events_unsubscribe(&hall.world.service, to[1]);
	ck_assert_uint_eq(hall.world.n_alive, n_alive);
	ck_assert(events_take(to[2], &event));
	ck_assert_uint_eq(event.uid, 1001);
	ck_assert_uint_eq(hall.world.n_alive, n_alive - 1);
	/* Rings that overflow drop what they share, in whatever order they are read. */
	for (unsigned i = 0; i < EVENTS_RING + 9; i++) {
		events_client_gone(&hall.mine);
		if (i % 3 == 0)
			ck_assert(events_take(to[2], &event));
	}
	ck_assert(events_take(to[0], &event));
	ck_assert_uint_eq(event.lost, 9);
	while (events_take(to[0], &event) || events_take(to[2], &event))
		;
	ck_assert_uint_eq(hall.world.n_alive, n_alive - 1);
	hall_deinit(&hall);
}
END_TEST

START_TEST(one_without_host_memory_is_lost)
{
	struct hall hall;
	struct events_subscriber *to;
	struct event event;

	hall_init(&hall);
	to = events_subscribe(&hall.world.service, &hall.mine, NULL, ALL);
	hall.world.fail_at = hall.world.n_allocs + 1;
	events_client_gone(&hall.stranger);
	ck_assert(!events_take(to, &event));
	events_client_gone(&hall.stranger);
	ck_assert(events_take(to, &event));
	ck_assert_uint_eq(event.lost, 1);
	ck_assert_uint_eq(event.uid, 1002);
	hall_deinit(&hall);
}
END_TEST

Suite *suite_events(void)
{
	Suite *suite = suite_create("service/observed/events");
	TCase *tcase = tcase_create("all");

	tcase_add_test(tcase, the_line);
	tcase_add_test(tcase, names_and_kinds);
	tcase_add_test(tcase, of_what_one_may_not_use_only_uid_and_bytes);
	tcase_add_test(tcase, only_the_kinds_that_were_asked_for);
	tcase_add_test(tcase, the_oldest_are_lost_and_counted_once);
	tcase_add_test(tcase, low_space_is_told_once_until_there_was_enough);
	tcase_add_test(tcase, what_is_told_alike_is_held_once);
	tcase_add_test(tcase, one_without_host_memory_is_lost);
	suite_add_tcase(suite, tcase);
	return suite;
}
