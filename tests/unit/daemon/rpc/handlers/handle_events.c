/* Who may follow, and when progress is looked for: not at each request, and not where nobody follows. */
#include "daemon/rpc/handlers/operations/progress.h"

#include "daemon/service/observed/events.h"
#include "tests/unit/daemon/rpc/crowd.h"

static uint64_t now_ns, alarm_ns;

static uint64_t test_clock(void)
{
	return now_ns;
}

static void set_alarm(void *ctx, uint64_t at_ns)
{
	(void)ctx;
	alarm_ns = at_ns;
}

static void begin(void)
{
	now_ns = 1000000000;
	alarm_ns = UINT64_MAX;
	crowd.rpc->now_ns = test_clock;
	crowd.rpc->set_alarm = set_alarm;
	crowd_alloc(0, "x", LONG_W);
}

static uint64_t subscribe(unsigned from, char *kind)
{
	Npumem__V1__SubscribeRequest request = {MESSAGE(subscribe_request), .n_kinds = kind != NULL,
						.kinds = &kind};
	return CROWD_SEND(from, subscribe, SUBSCRIBE, &request);
}

static uint64_t submit(unsigned from)
{
	static const struct crowd_op ops[] = {{.kind = 'f', .first = "x"}, {.kind = 'f', .first = "x"}};
	uint64_t id = crowd_list(from, ops, 2);
	ck_assert_int_eq(crowd_status(from, id), -1);
	return id;
}

/* The event that came, which is then forgotten: whether there was one. */
static bool told(unsigned to, uint64_t id)
{
	struct reply_of *event = &crowd.peers[to].replies[0];
	if (!event->turn)
		return false;
	ck_assert_str_eq(event->response->event->kind, "progress");
	ck_assert_uint_eq(event->response->event->request_id, id);
	npumem__v1__response__free_unpacked(event->response, NULL);
	*event = (struct reply_of){0};
	return true;
}

static void ring(uint64_t ns)
{
	now_ns += ns;
	alarm_ns = UINT64_MAX;
	rpc_tick(crowd.rpc);
}

TEST(progress_is_looked_for_where_somebody_follows)
{
	begin();
	crowd_become(2, 1002);
	uint64_t id = submit(0);
	ck_assert_uint_eq(alarm_ns, UINT64_MAX);
	subscribe(0, "freed");
	ck_assert_uint_eq(alarm_ns, UINT64_MAX);
	/* What runs already is found at once; for another uid there is nothing to look for. */
	subscribe(2, "progress");
	ring(0);
	ck_assert_uint_eq(alarm_ns, UINT64_MAX);
	subscribe(0, "progress");
	ck_assert_uint_le(alarm_ns, now_ns);
	ring(0);
	ck_assert_uint_eq(alarm_ns, now_ns + 100000000);
	ring(99999999);
	ck_assert(!told(0, id));
	ring(1);
	ck_assert(told(0, id));
	ck_assert(!told(2, id));
	ck_assert_uint_eq(alarm_ns, now_ns + 100000000);
	crowd_finish_all();
	ring(100000000);
	ck_assert(!told(0, id));
	ck_assert_uint_eq(alarm_ns, UINT64_MAX);
	/* One that is followed from its beginning. */
	id = submit(0);
	ck_assert_uint_eq(alarm_ns, now_ns + 100000000);
	ring(100000000);
	ck_assert(told(0, id));
}

/* Whose it is says who hears of it, and how the tensors are called there. */
TEST(progress_is_told_to_who_may_see_it)
{
	begin();
	crowd_become(2, 0);
	subscribe(1, "progress");
	subscribe(2, "progress");
	uint64_t id = submit(0);
	ck_assert_uint_eq(alarm_ns, now_ns + 100000000);
	ring(100000000);
	const Npumem__V1__Event *event = crowd.peers[1].replies[0].response->event;
	ck_assert_str_eq(event->message, "submit x");
	ck_assert_uint_eq(event->uid, 1001);
	ck_assert_uint_eq(event->session, crowd.peers[0].session.id);
	ck_assert(told(1, id));
	ck_assert_str_eq(crowd.peers[2].replies[0].response->event->message, "submit 1001:x");
	ck_assert(told(2, id));
	crowd_finish_all();
	/* Its session may go in the middle. */
	submit(0);
	crowd_close(0);
	ring(100000000);
	crowd_finish_all();
	ring(100000000);
	ck_assert_ptr_null(crowd.rpc->followed);
}

/* However many run and follow, a look tells a bounded number, and those left over later. */
TEST(a_look_is_bounded)
{
	struct events_subscriber *followers[200];
	unsigned told = 0;
	begin();
	crowd.world.service.limits.ordinary.most[LIMITS_FOLLOWERS] = 1000;
	for (unsigned i = 0; i < 200; i++)
		followers[i] = events_subscribe(&crowd.world.service, &crowd.peers[1].session, &crowd.peers[1].rpc,
						1 << EVENTS_PROGRESS);
	for (unsigned i = 0; i < 3; i++) {
		char name[] = {'a', (char)('0' + i), 0};
		struct crowd_op ops[] = {{.kind = 'f', .first = name}, {.kind = 'f', .first = name}};
		crowd_alloc(0, name, LONG_W);
		crowd_list(0, ops, 2);
	}
	now_ns += 100000000;
	progress_report(crowd.rpc);
	for (unsigned i = 0; i < 200; i++)
		told += followers[i]->n;
	ck_assert_uint_eq(told, 400);
	ck_assert_uint_eq(crowd.rpc->report_ns, now_ns + 10000000);
	now_ns += 10000000;
	progress_report(crowd.rpc);
	for (unsigned i = 0; i < 200; i++) {
		ck_assert_uint_eq(followers[i]->n, 3);
		events_unsubscribe(&crowd.world.service, followers[i]);
	}
}

TEST(followers_are_counted)
{
	begin();
	struct limits_table *limits = &crowd.world.service.limits;
	limits->ordinary.most[LIMITS_FOLLOWERS] = 1;
	ck_assert_int_eq(crowd_status(0, subscribe(0, "freed")), 0);
	ck_assert_int_eq(crowd_status(0, subscribe(0, "sealed")), 0);
	ck_assert_int_eq(crowd_status(1, subscribe(1, "freed")), NPUMEM_RESOURCE_EXHAUSTED);
	ck_assert_int_eq(crowd_status(0, subscribe(0, NULL)), 0);
	ck_assert_uint_eq(limits->now[LIMITS_FOLLOWERS], 0);
	ck_assert_int_eq(crowd_status(1, subscribe(1, "freed")), 0);
	crowd_close(1);
	ck_assert_int_eq(crowd_status(2, subscribe(2, "freed")), 0);
}

static struct {
	uint64_t n, n_lost, n_empty;
} heard;

static void hear(void *ctx, struct buffer *out)
{
	size_t header, body;
	(void)ctx;
	for (size_t at = 0; at < out->used; at += header + body) {
		Npumem__V1__Response *response;
		ck_assert_int_eq(frame_parse(out->bytes + at, out->used - at, FRAME_BYTES_MAX, &header, &body),
				 FRAME_COMPLETE);
		response = npumem__v1__response__unpack(NULL, body, out->bytes + at + header);
		ck_assert_ptr_nonnull(response);
		if (response->result_case == NPUMEM__V1__RESPONSE__RESULT_EVENT) {
			heard.n++;
			heard.n_lost += response->event->lost;
		} else {
			heard.n_empty++;
		}
		npumem__v1__response__free_unpacked(response, NULL);
	}
	out->used = 0;
}

/* Host memory ends between two events, at each allocation of a send: the client is sent whole events only, and the
 * next one counts those that did not fit. */
TEST(an_event_without_host_memory_is_counted_as_lost)
{
	enum { EVENTS = 200 };
	for (size_t fail = 1; fail < 4; fail++) {
		for (int extra = 0; extra < EVENTS_MESSAGE_BYTES; extra += 9) {
			struct event event = {.kind = EVENTS_PROGRESS};
			struct events_subscriber *to;
			crowd_again();
			begin();
			subscribe(0, "progress");
			to = crowd.peers[0].rpc.subscriber;
			crowd.peers[0].rpc.deliver = hear;
			memset(&heard, 0, sizeof(heard));
			memset(event.message, 'm', (size_t)extra);
			for (unsigned i = 0; i < EVENTS; i++)
				events_put(to, &event);
			crowd.world.fail_at = crowd.world.n_allocs + fail;
			progress_send(crowd.rpc);
			crowd.world.fail_at = 0;
			ck_assert_uint_eq(heard.n_empty, 0);
			events_put(to, &event);
			now_ns += 1000000000;
			progress_send(crowd.rpc);
			ck_assert_uint_eq(heard.n_empty, 0);
			ck_assert_uint_eq(heard.n + heard.n_lost, EVENTS + 1);
			events_unsubscribe(&crowd.world.service, to);
			crowd.peers[0].rpc.subscriber = NULL;
			crowd.peers[0].rpc.deliver = crowd_deliver;
		}
	}
}
