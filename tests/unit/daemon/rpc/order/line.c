/* Allocations that wait, with two peers and a clock of the test's: who is served when, and every other way to end.
 */
#include "daemon/rpc/calls/perform.h"

#include <stdio.h>

#include "tests/support/loop_turns.h"
#include "tests/unit/daemon/rpc/talk.h"

enum { ANSWERS_MAX = 48 };

static uint64_t now_ns;
static uint64_t step_ns; /* that passes with each reading of the clock */

static uint64_t test_clock(void)
{
	return now_ns += step_ns;
}

/* Two peers, of the uids 1001 and 1002. */
struct line {
	struct talk talk;
	struct rpc_peer peers[2];
	struct answer {
		uint64_t id;
		int status;
		char message[256];
	} answers[ANSWERS_MAX];
	unsigned n, n_heard; /* n_heard: what the test has looked at */
	uint64_t alarm_ns;
};

static void deliver(void *ctx, struct buffer *reply)
{
	struct line *to = ctx;
	for (size_t at = 0; at < reply->used;) {
		size_t header, body;
		struct answer *answer = &to->answers[to->n++];
		ck_assert_int_eq(frame_parse(reply->bytes + at, reply->used - at, FRAME_BYTES_MAX, &header, &body),
				 FRAME_COMPLETE);
		Npumem__V1__Response *response =
			npumem__v1__response__unpack(NULL, body, reply->bytes + at + header);
		ck_assert_ptr_nonnull(response);
		ck_assert_uint_le(to->n, ANSWERS_MAX);
		answer->id = response->id;
		answer->status = (int)response->status;
		snprintf(answer->message, sizeof(answer->message), "%s", response->message);
		npumem__v1__response__free_unpacked(response, NULL);
		at += header + body;
	}
}

static void drained(void *ctx)
{
	(void)ctx;
}

static void set_alarm(void *ctx, uint64_t at_ns)
{
	((struct line *)ctx)->alarm_ns = at_ns;
}

static void line_init(struct line *line, const struct device_options *options)
{
	talk_init_as(&line->talk, options);
	now_ns = 1000000000;
	step_ns = 0;
	line->n = line->n_heard = 0;
	line->alarm_ns = UINT64_MAX;
	line->talk.rpc->now_ns = test_clock;
	line->talk.world.service.events.now_ns = test_clock;
	line->talk.rpc->set_alarm = set_alarm;
	line->talk.rpc->ctx = line;
	for (unsigned i = 0; i < 2; i++)
		line->peers[i] = (struct rpc_peer){.session = i ? &line->talk.stranger : &line->talk.session,
						   .deliver = deliver,
						   .drained = drained,
						   .ctx = line};
}

static void line_deinit(struct line *line)
{
	for (unsigned i = 0; i < 2; i++)
		if (!line->peers[i].is_closing)
			rpc_peer_close(line->talk.rpc, &line->peers[i]);
	loop_turns_end(line->talk.rpc);
	ck_assert_ptr_null(line->talk.world.service.waiting.first);
	ck_assert_uint_eq(line->alarm_ns, UINT64_MAX);
	talk_deinit(&line->talk);
}

FIXTURE_OBJECT(struct line, line, line_init(&line, NULL), line_deinit(&line))

static void line_again(const struct device_options *options)
{
	line_deinit(&line);
	line_init(&line, options);
}

/* From here on, what takes long goes on in another turn: after about five that are tried. */
static void begin_turns(void)
{
	loop_turns_begin(line.talk.rpc);
	step_ns = 20000;
}

static unsigned end_turns(void)
{
	unsigned n = loop_turns_all(line.talk.rpc);
	step_ns = 0;
	return n;
}

/* The answers since it was called last, in their order: the requests' ids, behind each that was refused its
 * status. "3, 2 CANCELLED" */
static void heard(const char *expected)
{
	char text[4096] = "";
	size_t used = 0;
	for (; line.n_heard < line.n; line.n_heard++) {
		const struct answer *answer = &line.answers[line.n_heard];
		used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%llu%s%s", used ? ", " : "",
					 (unsigned long long)answer->id, answer->status ? " " : "",
					 answer->status ? npumem_status_name(answer->status) : "");
	}
	ck_assert_str_eq(text, expected);
}

/* The last answer has this in its message. */
static void says(const char *part)
{
	ck_assert_msg(strstr(line.answers[line.n - 1].message, part), "\"%s\" does not say \"%s\"",
		      line.answers[line.n - 1].message, part);
}

#define SEND(peer, id, member, CALL, message)                                                                     \
	send_request(peer, id,                                                                                    \
		     &(Npumem__V1__Request){PROTOBUF_C_MESSAGE_INIT(&npumem__v1__request__descriptor),            \
					    .call_case = NPUMEM__V1__REQUEST__CALL_##CALL, .member = (message)})

static void send_request(unsigned peer, uint64_t id, Npumem__V1__Request *request)
{
	uint8_t message[512];
	request->id = id;
	ck_assert_uint_le(npumem__v1__request__get_packed_size(request), sizeof(message));
	int status = rpc_receive(line.talk.rpc, &line.peers[peer], message,
				 npumem__v1__request__pack(request, message));
	ck_assert(!status || line.talk.world.fail_at);
}

static void send_alloc(unsigned peer, uint64_t id, Npumem__V1__Allocation *allocation, uint32_t wait_ms)
{
	char name[32];
	snprintf(name, sizeof(name), "t%u", (unsigned)id);
	allocation->name = name;
	Npumem__V1__AllocRequest message = {MESSAGE(alloc_request), .n_tensors = 1, .tensors = &allocation,
					    .wait_ms = wait_ms};
	SEND(peer, id, alloc, ALLOC, &message);
}

/* `w` bytes on each NPU. */
static void alloc(unsigned peer, uint64_t id, int64_t w, uint32_t wait_ms)
{
	struct talk_spec spec;
	Npumem__V1__Allocation allocation = NPUMEM__V1__ALLOCATION__INIT;
	allocation.spec = talk_spec(&spec, 8, w);
	send_alloc(peer, id, &allocation, wait_ms);
}

/* The same of the first peer at an offset. */
static void alloc_at(uint64_t id, int64_t offset, int64_t w, uint32_t wait_ms)
{
	struct talk_spec spec;
	Npumem__V1__Allocation allocation = NPUMEM__V1__ALLOCATION__INIT;
	allocation.spec = talk_spec(&spec, 8, w);
	allocation.spec->address_given_case = NPUMEM__V1__SPEC__ADDRESS_GIVEN_ADDRESS;
	allocation.spec->address = offset;
	send_alloc(0, id, &allocation, wait_ms);
}

/* `n` bytes on the first NPU, `step` apart, maybe over others' that leave room between theirs. */
static void alloc_apart(unsigned peer, uint64_t id, int64_t n, int64_t step, uint32_t wait_ms)
{
	struct talk_spec spec;
	Npumem__V1__Dims stride = NPUMEM__V1__DIMS__INIT;
	Npumem__V1__Allocation allocation = NPUMEM__V1__ALLOCATION__INIT;
	allocation.spec = talk_spec(&spec, 1, n);
	allocation.spec->layout = NPUMEM__V1__LAYOUT__STRIDED;
	stride.w = step;
	stride.n = stride.c = stride.h = step * n;
	allocation.spec->stride = &stride;
	allocation.reuse = NPUMEM__V1__REUSE__IF_SAFE;
	allocation.dma_only = true;
	send_alloc(peer, id, &allocation, wait_ms);
}

static void free_tensor(unsigned peer, uint64_t id, const char *name)
{
	Npumem__V1__Ref ref = talk_ref(0, name), *list = &ref;
	Npumem__V1__FreeRequest message = {MESSAGE(free_request), .n_tensors = 1, .tensors = &list};
	SEND(peer, id, free, FREE, &message);
}

static void cancel(unsigned peer, uint64_t id, uint64_t other)
{
	Npumem__V1__CancelRequest message = NPUMEM__V1__CANCEL_REQUEST__INIT;
	message.request_id = other;
	SEND(peer, id, cancel, CANCEL, &message);
}

/* The alarm rings `ns` later. */
static void ring(uint64_t ns)
{
	now_ns += ns;
	line.alarm_ns = UINT64_MAX;
	rpc_tick(line.talk.rpc);
}

TEST(a_waiter_is_served_when_something_is_freed)
{
	alloc(0, 1, 8192, 1000);
	alloc(1, 2, 4096, 1000);
	heard("1");
	ck_assert_uint_eq(line.alarm_ns, now_ns + 1000000000);
	free_tensor(0, 3, "t1");
	heard("3, 2");
	ck_assert_uint_eq(line.alarm_ns, UINT64_MAX);
}

TEST(a_small_one_waits_behind_a_large_one)
{
	alloc(1, 1, 4096, 0);
	alloc(1, 2, 2048, 0);
	alloc(0, 3, 6000, 1000);
	alloc(1, 4, 64, 1000);
	heard("1, 2");
	/* An immediate one does not get it either. */
	alloc(1, 5, 64, 0);
	free_tensor(1, 6, "t2");
	heard("5 RESOURCE_EXHAUSTED, 6");
	free_tensor(1, 7, "t1");
	heard("7, 3, 4");
}

TEST(the_deadline_tells_what_was_missing)
{
	alloc(0, 1, 8192, 0);
	alloc(0, 2, 4096, 500);
	alloc(1, 3, 4096, 250);
	ring(250 * UINT64_C(1000000) - 1);
	heard("1");
	ring(1);
	heard("3 DEADLINE_EXCEEDED");
	ring(250 * UINT64_C(1000000));
	heard("2 DEADLINE_EXCEEDED");
	says("waited 500 ms: no room for 4096 bytes on each NPU");
}

static void says_not(const char *part)
{
	ck_assert_ptr_null(strstr(line.answers[line.n - 1].message, part));
}

TEST(one_that_does_not_wait_is_refused_for_what_is_missing_now)
{
	alloc(0, 1, 8192, 0);
	alloc(1, 2, 64, 0);
	heard("1, 2 RESOURCE_EXHAUSTED");
	says_not("empty device");
}

TEST(what_can_never_be_is_refused_at_once)
{
	alloc(0, 1, 100, 1000);
	alloc(0, 2, 8200, 1000);
	alloc(0, 1, 100, 1000);
	heard("1, 2 INVALID, 1 ALREADY_EXISTS");
}

/* Each of two would have room in an empty device, and both have not. */
TEST(what_can_never_be_together_is_refused_at_once)
{
	Npumem__V1__Allocation allocations[2], *list[2] = {&allocations[0], &allocations[1]};
	struct talk_spec specs[2];
	for (unsigned i = 0; i < 2; i++) {
		npumem__v1__allocation__init(&allocations[i]);
		allocations[i].spec = talk_spec(&specs[i], 8, 5000);
	}
	Npumem__V1__AllocRequest message = {MESSAGE(alloc_request), .n_tensors = 2, .tensors = list,
					    .wait_ms = 1000};
	SEND(0, 1, alloc, ALLOC, &message);
	heard("1 RESOURCE_EXHAUSTED");
	says("not even an empty device");
}

TEST(waiting_ends_by_cancel_and_with_its_peer)
{
	alloc(0, 1, 8192, 0);
	alloc(1, 2, 4096, 500);
	alloc(1, 3, 4096, 500);
	cancel(0, 4, 2); /* finds nothing: it is another peer's */
	heard("1, 4");
	cancel(1, 5, 2);
	heard("2 CANCELLED, 5");
	rpc_peer_close(line.talk.rpc, &line.peers[1]);
	heard("");
	ck_assert_uint_eq(line.alarm_ns, UINT64_MAX);
	free_tensor(0, 6, "t1");
	ck_assert_int_eq(world_n_tensors(&line.talk.world), 0);
}

TEST(who_has_it_itself_holds_up_its_own_alone)
{
	alloc(0, 1, 4096, 0);
	alloc(0, 2, 6000, 60000);
	alloc(0, 3, 64, 60000);
	alloc(0, 4, 64, 0);
	alloc(1, 5, 64, 60000);
	alloc(1, 6, 2048, 0);
	heard("1, 4 RESOURCE_EXHAUSTED, 5, 6");
	free_tensor(1, 7, "t5");
	free_tensor(1, 8, "t6");
	free_tensor(0, 9, "t1");
	heard("7, 8, 9, 2, 3");
}

TEST(going_down_ends_the_line)
{
	alloc(0, 1, 8192, 0);
	alloc(1, 2, 4096, 500);
	rpc_peer_end_waiting(line.talk.rpc, &line.peers[1]);
	heard("1, 2 UNAVAILABLE");
}

TEST(host_memory_may_run_out_in_line)
{
	for (size_t i = 1; i < 40; i++) {
		line_again(NULL);
		alloc(0, 1, 8192, 0);
		line.talk.world.fail_at = line.talk.world.n_allocs + i;
		alloc(1, 2, 4096, 500);
		free_tensor(0, 3, "t1");
		/* Where the answer to `free` had no memory nothing was freed, and the other waits on. */
		ck_assert_uint_ge(line.n, 1);
		line.talk.world.fail_at = 0;
	}
}

/* The clock begins in the middle of a window in which room is kept. What is waited for is an equal share. */
TEST(nobody_is_kept_out_for_longer_than_a_window)
{
	alloc(1, 1, 4224, 0);
	alloc(0, 2, 4096, 60000);
	alloc(1, 3, 128, 0);
	alloc(1, 4, 128, 60000);
	heard("1, 3 RESOURCE_EXHAUSTED");
	ck_assert_uint_eq(line.alarm_ns, WAITING_WINDOW_NS);
	ring(WAITING_WINDOW_NS - now_ns);
	alloc(1, 5, 128, 0);
	alloc(1, 6, 128, 60000);
	heard("4, 5, 6");
	ring(WAITING_WINDOW_NS);
	alloc(1, 7, 128, 0);
	heard("7 RESOURCE_EXHAUSTED");
}

/* Small ones that live for half a second come again and again. */
TEST(a_large_one_has_its_turn_beside_small_ones)
{
	unsigned held[5] = {0}, n_granted = 0, n_refused = 0;
	char name[32];
	alloc(1, 900, 128, 0);
	alloc(0, 901, 8192, 60000);
	now_ns = WAITING_WINDOW_NS;
	for (unsigned id = 1; id <= 40; id++) { /* two windows */
		unsigned *slot = &held[id % 5];

		line.n = 0;
		if (id == 5)
			free_tensor(1, 902, "t900");
		snprintf(name, sizeof(name), "t%u", *slot);
		if (*slot)
			free_tensor(1, 903, name);
		*slot = 0;
		if (line.n && line.answers[line.n - 1].id == 901)
			break;
		line.n = 0;
		alloc(1, id, 128, 0);
		if (line.answers[0].status)
			n_refused++;
		else
			n_granted++;
		*slot = line.answers[0].status ? 0 : id;
		ring(100000000);
	}
	ck_assert_uint_eq(line.answers[line.n - 1].id, 901);
	ck_assert_int_eq(line.answers[line.n - 1].status, 0);
	ck_assert_uint_ge(n_granted, 20);
	ck_assert_uint_gt(n_refused, 0);
}

TEST(a_long_line_is_tried_in_parts)
{
	enum { N = 20 };
	alloc_at(1, 5120, 1024, 0);
	alloc_at(200, 2048, 128, 0);
	/* What the first tensor is in the way of, behind its first byte. */
	for (unsigned id = 2; id < 1 + N; id++)
		alloc_at(id, 4096, 2048, 60000);
	alloc_at(1 + N, 1024, 2048, 60000);
	ring(WAITING_WINDOW_NS - now_ns);
	heard("1, 200");
	begin_turns();
	free_tensor(0, 201, "t200");
	heard("201");
	ck_assert(!fair_queue_is_empty(&line.talk.rpc->service->queue));
	/* What else happens does not hasten it. */
	for (unsigned id = 100; id < 110; id++)
		alloc(1, id, 64, 0);
	ck_assert_uint_eq(line.n, 13);
	ck_assert(!fair_queue_is_empty(&line.talk.rpc->service->queue));
	line.n_heard = line.n;
	ck_assert_uint_gt(end_turns(), 2);
	heard("21");
}

TEST(many_deadlines_at_once_are_seen_to_in_parts)
{
	enum { N = 20 };
	unsigned n_refused = 0;
	alloc(0, 1, 8192, 0);
	for (unsigned id = 2; id < 2 + N; id++)
		alloc(0, id, 8192, 10);
	begin_turns();
	now_ns += 10000000;
	while (n_refused < N) {
		line.n = 0;
		ring(0);
		ck_assert_uint_ge(line.n, 1);
		ck_assert_uint_lt(line.n, N / 2);
		for (unsigned i = 0; i < line.n; i++)
			ck_assert_int_eq(line.answers[i].status, NPUMEM_DEADLINE_EXCEEDED);
		n_refused += line.n;
		/* The rest is due at once. */
		ck_assert(n_refused == N || line.alarm_ns <= now_ns);
	}
	end_turns();
}

enum { BYTES = 1 << 20, END = 1 << 12 };

/* Every second byte of an NPU is t1's, but for the end, which is t2's. */
static void fill_device(void)
{
	const struct device_options options = {
		.geometry = {.n_npus = 8, .npu_bytes = BYTES, .n_banks = 8, .eu_bytes = 128}};
	line_again(&options);
	alloc_apart(0, 1, (BYTES - END) / 2, 2, 0);
	alloc(0, 2, END, 0);
}

/* t3 is in line: no three bytes apart are free, which takes many turns to find out. */
static void begin_search(void)
{
	fill_device();
	alloc_apart(1, 3, BYTES / 4, 3, 1000);
	heard("1, 2");
	ck_assert_uint_eq(line.talk.world.service.waiting.n, 1);
	begin_turns();
	free_tensor(0, 4, "t2");
	heard("4");
	ck_assert(!fair_queue_is_empty(&line.talk.rpc->service->queue));
}

TEST(a_search_for_one_in_line_goes_on_in_turns)
{
	begin_search();
	/* Others are served between, but none takes what it may get. */
	alloc(0, 5, 64, 0);
	loop_turns_one(line.talk.rpc);
	heard("5 RESOURCE_EXHAUSTED");
	alloc(0, 6, 64, 1000);
	ck_assert_uint_gt(end_turns(), 3);
	heard("");
	ck_assert_uint_eq(line.talk.world.service.waiting.n, 2);
	/* It has its place in line, before who came later. */
	free_tensor(0, 7, "t1");
	end_turns();
	heard("7, 3, 6");
}

/* Its handle can be guessed, and it has no owner yet. */
TEST(what_is_being_placed_is_not_found)
{
	enum { GENERATIONS = 8, SLOTS = 32 };
	begin_search();
	for (uint64_t generation = 0; generation < GENERATIONS; generation++)
		for (uint64_t slot = 1; slot <= SLOTS; slot++) {
			const struct tensor *tensor =
				device_find(line.talk.world.service.device, generation << 32 | slot);
			ck_assert(!tensor || tensor->owner);
		}
	end_turns();
}

TEST(what_is_freed_while_one_in_line_is_searched_for_counts)
{
	begin_search();
	free_tensor(0, 5, "t1");
	end_turns();
	heard("5, 3");
}

TEST(a_search_for_one_in_line_ends_with_it)
{
	begin_search();
	cancel(1, 5, 3);
	heard("5");
	/* Its own, and those of the line. */
	ck_assert_uint_le(end_turns(), 3);
	heard("3 CANCELLED");
	ck_assert_uint_eq(line.talk.world.service.waiting.n, 0);

	begin_search();
	rpc_peer_end_waiting(line.talk.rpc, &line.peers[1]);
	end_turns();
	heard("3 CANCELLED");

	begin_search();
	rpc_peer_close(line.talk.rpc, &line.peers[1]);
	end_turns();
	heard("");
	ck_assert_uint_eq(line.talk.world.service.waiting.n, 0);
}

static unsigned n_others;

static void run_other(struct fair_work *work)
{
	struct fair_queue *queue = work->user->queue;
	n_others++;
	fair_queue_add(queue, work->user, work);
}

/* Its user's other requests may be thousands, and others in line may wait for it; nor do they all wait for it. */
TEST(a_search_for_one_in_line_takes_turns_with_its_users_others)
{
	struct fair_work other = {.run = run_other};
	begin_search();
	struct rpc *rpc = line.talk.rpc;
	n_others = 0;
	fair_queue_add(&rpc->service->queue, &line.talk.stranger.user->loop, &other);
	for (unsigned i = 0; i < 100 && line.talk.stranger.user->searching; i++)
		loop_turns_one(rpc);
	ck_assert_ptr_null(line.talk.stranger.user->searching);
	ck_assert_uint_ge(n_others, 2);
	fair_queue_remove(&other);
	end_turns();
}

/* Else frees that go on, of anybody, would begin a search after the other, and no deadline of its own is seen to.
 */
TEST(no_search_begins_behind_its_deadline)
{
	begin_search();
	free_tensor(0, 5, "t1");
	now_ns += 2000 * UINT64_C(1000000);
	uint64_t n_searches = line.talk.rpc->service->waiting.n_searches;
	alloc_apart(0, 6, (1 << 20) / 2 - (1 << 11), 2, 0);
	end_turns();
	heard("5, 6");
	ck_assert_uint_eq(line.talk.rpc->service->waiting.n_searches, n_searches);
	ring(0);
	heard("3 DEADLINE_EXCEEDED");
}

/* Bob's is not held up by it in this window, and its deadline not by the search. */
TEST(others_in_line_go_on_beside_a_search)
{
	begin_search();
	alloc(0, 5, 1 << 20, 10);
	heard("");
	ring(20 * UINT64_C(1000000));
	heard("5 DEADLINE_EXCEEDED");
	ck_assert_ptr_nonnull(line.talk.stranger.user->searching);
	end_turns();
}

/* For one tensor that fits in the END and one that takes many turns, as that of begin_search. */
static void alloc_two(unsigned peer, uint64_t id)
{
	Npumem__V1__Allocation allocations[2], *list[2] = {&allocations[0], &allocations[1]};
	Npumem__V1__Dims stride = NPUMEM__V1__DIMS__INIT;
	struct talk_spec specs[2];
	for (unsigned i = 0; i < 2; i++) {
		npumem__v1__allocation__init(&allocations[i]);
		allocations[i].spec = i ? talk_spec(&specs[1], 1, BYTES / 4) : talk_spec(&specs[0], 8, END / 2);
	}
	specs[1].spec.layout = NPUMEM__V1__LAYOUT__STRIDED;
	stride.w = 3;
	stride.n = stride.c = stride.h = BYTES;
	specs[1].spec.stride = &stride;
	allocations[1].reuse = NPUMEM__V1__REUSE__IF_SAFE;
	allocations[1].dma_only = true;
	Npumem__V1__AllocRequest message = {MESSAGE(alloc_request), .n_tensors = 2, .tensors = list,
					    .wait_ms = 60000};
	SEND(peer, id, alloc, ALLOC, &message);
}

/* Bob's search is the first in line that others make room for. */
TEST(a_search_keeps_the_room_that_it_claims_itself)
{
	fill_device();
	alloc_two(1, 3);
	begin_turns();
	free_tensor(0, 4, "t2");
	loop_turns_one(line.talk.rpc);
	loop_turns_one(line.talk.rpc);
	ck_assert_ptr_nonnull(line.talk.stranger.user->searching);
	free_tensor(0, 5, "t1");
	end_turns();
	heard("1, 2, 4, 5, 3");
}

/* Alice's own t1 is in the way of her search, so that it holds nobody up: it leaves the END to Bob's request,
 * which waits for more. */
TEST(a_search_that_gave_way_begins_again_when_nobody_else_claims_the_room)
{
	fill_device();
	alloc_two(0, 3);
	alloc(1, 4, 2 * END, 60000);
	begin_turns();
	free_tensor(0, 5, "t2");
	end_turns();
	ck_assert_ptr_null(line.talk.session.user->searching);
	begin_turns();
	cancel(1, 6, 4);
	ck_assert_ptr_nonnull(line.talk.session.user->searching);
	free_tensor(0, 7, "t1");
	end_turns();
	heard("1, 2, 5, 4 CANCELLED, 6, 7, 3");
}

TEST(a_deadline_waits_for_the_search)
{
	begin_search();
	ring(2000 * UINT64_C(1000000));
	end_turns();
	heard("");
	ck_assert_uint_le(line.alarm_ns, now_ns);
	ring(0);
	heard("3 DEADLINE_EXCEEDED");
}
