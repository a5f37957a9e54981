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

FIXTURE_OBJECT(struct hall, hall, hall_init(&hall), hall_deinit(&hall))

TEST(names_and_kinds)
{
	for (int kind = 0; kind < EVENTS_N; kind++)
		ck_assert_int_eq(events_parse(events_name((enum events_kind)kind)), kind);
	ck_assert_int_eq(events_parse(""), -1);
	ck_assert_int_eq(events_parse("progres"), -1);
}

/* Takes the only event of a ring, which is of this tensor, with or without its name. */
static void take_of(struct events_subscriber *to, enum events_kind kind, const struct tensor *tensor,
		    bool is_known)
{
	struct event event;
	ck_assert(events_take(to, &event));
	ck_assert_int_eq(event.kind, kind);
	ck_assert_uint_eq(event.uid, 1001);
	ck_assert_uint_eq(event.bytes, (uint64_t)tensor_place(tensor).bytes_per_npu);
	ck_assert_uint_eq(event.time_ns, 7);
	ck_assert_uint_eq(event.handle, is_known ? tensor->handle : 0);
	ck_assert_uint_eq(event.pid, is_known ? 11 : 0);
	ck_assert_int_eq(!event.name[0], !is_known);
	ck_assert_str_eq(event.message, is_known && kind == EVENTS_RENAMED ? "before" : "");
	ck_assert(!events_take(to, &event));
}

static void emit(enum events_kind kind, const struct tensor *tensor)
{
	if (kind == EVENTS_RENAMED)
		events_renamed(&hall.world.service, tensor, &hall.mine, "before");
	else
		events_tensor(&hall.world.service, kind, tensor, &hall.mine, -1);
}

TEST(of_tensors_each_kind_is_for_the_uids_that_may_use_them)
{
	static const enum events_kind kinds[] = {EVENTS_ALLOCATED, EVENTS_FREED, EVENTS_SEALED,
						 EVENTS_RENAMED,   EVENTS_MOVED, EVENTS_DAMAGED};
	enum { MINE, STRANGER, ADMIN, SECOND, GRANTED, N };
	struct session second, granted;
	struct events_subscriber *to[N];
	struct event event;
	ck_assert_int_eq(session_init(&second, &hall.world.service, 1001, 14, NULL), 0);
	ck_assert_int_eq(session_init(&granted, &hall.world.service, 1003, 15, NULL), 0);
	struct tensor *named = world_tensor(&hall.world, &hall.mine, "x");
	struct tensor *unnamed = world_tensor(&hall.world, &hall.mine, "");
	ck_assert_int_eq(tensors_grant(&hall.mine, named, 1003, RECORD_READ, &hall.world.error), 0);
	to[MINE] = events_subscribe(&hall.world.service, &hall.mine, NULL, ALL);
	to[STRANGER] = events_subscribe(&hall.world.service, &hall.stranger, NULL, ALL);
	to[ADMIN] = events_subscribe(&hall.world.service, &hall.admin, NULL, ALL);
	to[SECOND] = events_subscribe(&hall.world.service, &second, NULL, ALL);
	to[GRANTED] = events_subscribe(&hall.world.service, &granted, NULL, ALL);
	for (unsigned i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		emit(kinds[i], named);
		ck_assert_msg(!events_take(to[STRANGER], &event), "%s", events_name(kinds[i]));
		take_of(to[MINE], kinds[i], named, true);
		take_of(to[ADMIN], kinds[i], named, true);
		take_of(to[SECOND], kinds[i], named, true);
		take_of(to[GRANTED], kinds[i], named, true);
		emit(kinds[i], unnamed);
		ck_assert(!events_take(to[STRANGER], &event) && !events_take(to[GRANTED], &event));
		take_of(to[MINE], kinds[i], unnamed, true);
		take_of(to[ADMIN], kinds[i], unnamed, true);
		take_of(to[SECOND], kinds[i], unnamed, false);
	}
	events_unsubscribe(&hall.world.service, to[SECOND]);
	events_unsubscribe(&hall.world.service, to[GRANTED]);
	session_deinit(&second);
	session_deinit(&granted);
}

TEST(refusals_are_for_their_own_uid)
{
	struct events_subscriber *to[3];
	struct event event;
	to[0] = events_subscribe(&hall.world.service, &hall.mine, NULL, ALL);
	to[1] = events_subscribe(&hall.world.service, &hall.stranger, NULL, ALL);
	to[2] = events_subscribe(&hall.world.service, &hall.admin, NULL, ALL);
	npumem_error_clear(&hall.world.error);
	npumem_error_set(&hall.world.error, NPUMEM_NOT_FOUND, "there is no tensor y");
	events_refused(&hall.mine, 3, &hall.world.error);
	for (unsigned i = 0; i < 3; i += 2) {
		ck_assert(events_take(to[i], &event));
		ck_assert_uint_eq(event.uid, 1001);
		ck_assert_str_eq(event.message, "there is no tensor y");
		ck_assert_uint_eq(event.request_id, 3);
	}
	ck_assert_msg(!events_take(to[1], &event), "what was refused to another uid, and whether, is that uid's");
}

TEST(only_the_kinds_that_were_asked_for)
{
	struct event event;
	struct events_subscriber *to = events_subscribe(&hall.world.service, &hall.mine, NULL,
							1 << EVENTS_SEALED | 1 << EVENTS_CLIENT_GONE);
	world_tensor(&hall.world, &hall.mine, "x");
	ck_assert(!events_take(to, &event));
	events_client_gone(&hall.stranger);
	ck_assert(!events_take(to, &event));
	events_client_gone(&hall.mine);
	ck_assert(events_take(to, &event));
	ck_assert_int_eq(event.kind, EVENTS_CLIENT_GONE);
	ck_assert_uint_eq(event.uid, 1001);
	ck_assert_uint_eq(event.pid, 11);
}

TEST(the_oldest_are_lost_and_counted_once)
{
	struct event event = {.kind = EVENTS_PROGRESS};
	struct events_subscriber *to = events_subscribe(&hall.world.service, &hall.mine, NULL, ALL);
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
}

static struct tensor *take(int64_t w)
{
	struct device_request request = world_request(8, w);
	struct tensor *tensor;
	const char *name = "";
	ck_assert_int_eq(tensors_alloc(&hall.mine, &request, &name, 1, &tensor, &hall.world.error), 0);
	return tensor;
}

TEST(low_space_is_told_once_until_there_was_enough)
{
	struct event event;
	struct events_subscriber *to =
		events_subscribe(&hall.world.service, &hall.mine, NULL, 1 << EVENTS_LOW_SPACE);
	take(7168); /* 1024 of 8192 left: 12.5 % */
	ck_assert(!events_take(to, &event));
	struct tensor *small = take(256);
	ck_assert(events_take(to, &event));
	ck_assert_uint_eq(event.bytes, 768);
	struct tensor *smaller = take(128);
	service_release(&hall.world.service, smaller);
	service_release(&hall.world.service, small);
	small = take(256);
	ck_assert_msg(!events_take(to, &event), "it came back over the low mark only");
	service_release(&hall.world.service, small);
	service_release(&hall.world.service, record_tensor(hall.mine.unnamed->first));
	take(8000);
	ck_assert(events_take(to, &event));
}

/* Each that has something stands in line once, in the order that it came, and leaves with its subscription. */
TEST(the_line)
{
	struct events_subscriber *to[4];
	struct event event = {.kind = EVENTS_PROGRESS};
	struct events *events = &hall.world.service.events;
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
}

/* Of one event there is one for all who are told the same, as long as one of them has it in its ring. */
TEST(what_is_told_alike_is_held_once)
{
	struct events_subscriber *to[4];
	struct event event;
	for (unsigned i = 0; i < 3; i++)
		to[i] = events_subscribe(&hall.world.service, i == 1 ? &hall.admin : &hall.mine, NULL, ALL);
	to[3] = events_subscribe(&hall.world.service, &hall.mine, NULL, 1 << EVENTS_SEALED);
	size_t n_alive = hall.world.n_alive;
	events_client_gone(&hall.mine);
	ck_assert_uint_eq(hall.world.n_alive, n_alive + 1);
	ck_assert(events_take(to[0], &event));
	ck_assert_uint_eq(event.uid, 1001);
	ck_assert_uint_eq(event.pid, 11);
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
}

TEST(one_without_host_memory_is_lost)
{
	struct event event;
	struct events_subscriber *to = events_subscribe(&hall.world.service, &hall.mine, NULL, ALL);
	hall.world.fail_at = hall.world.n_allocs + 1;
	events_client_gone(&hall.mine);
	ck_assert(!events_take(to, &event));
	events_client_gone(&hall.mine);
	ck_assert(events_take(to, &event));
	ck_assert_uint_eq(event.lost, 1);
	ck_assert_uint_eq(event.uid, 1001);
}
