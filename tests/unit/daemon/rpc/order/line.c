/* Allocations that wait, with two peers and a clock of the test's: who is served when, and every other way to end.
 */
#include "daemon/rpc/calls/perform.h"

#include <stdio.h>

#include "tests/support/loop_turns.h"
#include "tests/support/test.h"
#include "tests/unit/daemon/rpc/talk.h"

enum { ANSWERS_MAX = 16 };

static uint64_t now_ns;
static uint64_t step_ns; /* that passes with each reading of the clock */

static uint64_t test_clock(void)
{
	return now_ns += step_ns;
}

struct line {
	struct talk talk;
	struct rpc_peer peers[2]; /* of the uids 1001 and 1002 */
	struct {
		uint64_t id;
		int status;
		char message[256];
	} answers[ANSWERS_MAX];
	unsigned n;
	uint64_t alarm_ns;
};

static void take_frames(struct line *line, const uint8_t *bytes, size_t n)
{
	for (size_t at = 0; at < n;) {
		size_t header, body;
		Npumem__V1__Response *response;

		ck_assert_int_eq(frame_parse(bytes + at, n - at, FRAME_BYTES_MAX, &header, &body), FRAME_COMPLETE);
		response = npumem__v1__response__unpack(NULL, body, bytes + at + header);
		ck_assert_ptr_nonnull(response);
		ck_assert_uint_lt(line->n, ANSWERS_MAX);
		line->answers[line->n].id = response->id;
		snprintf(line->answers[line->n].message, sizeof(line->answers[0].message), "%s",
			 response->message);
		line->answers[line->n++].status = (int)response->status;
		npumem__v1__response__free_unpacked(response, NULL);
		at += header + body;
	}
}

static void deliver(void *ctx, struct buffer *reply)
{
	take_frames(ctx, reply->bytes, reply->used);
}

static void drained(void *ctx)
{
	(void)ctx;
}

static void set_alarm(void *ctx, uint64_t at_ns)
{
	((struct line *)ctx)->alarm_ns = at_ns;
}

/* From here on, what takes long goes on in another turn: after about five that are tried. */
static void begin_turns(struct line *line)
{
	loop_turns_begin(line->talk.rpc);
	step_ns = 20000;
}

static bool turn(struct line *line)
{
	return loop_turns_one(line->talk.rpc);
}

static unsigned end_turns(struct line *line)
{
	unsigned n = 0;

	while (turn(line))
		n++;
	step_ns = 0;
	return n;
}

static void line_init_as(struct line *line, const struct device_options *options)
{
	talk_init_as(&line->talk, options);
	now_ns = 1000000000;
	step_ns = 0;
	line->n = 0;
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

static void line_init(struct line *line)
{
	line_init_as(line, NULL);
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

static void send(struct line *line, unsigned peer, uint64_t id, Npumem__V1__Request *request)
{
	uint8_t message[512];
	int status;

	request->id = id;
	ck_assert_uint_le(npumem__v1__request__get_packed_size(request), sizeof(message));
	status = rpc_receive(line->talk.rpc, &line->peers[peer], message,
			     npumem__v1__request__pack(request, message));
	ck_assert(!status || line->talk.world.fail_at);
}

static void send_alloc(struct line *line, unsigned peer, uint64_t id, Npumem__V1__Allocation *allocation,
		       uint32_t wait_ms)
{
	Npumem__V1__Request request = NPUMEM__V1__REQUEST__INIT;
	Npumem__V1__Allocation *list = allocation;
	Npumem__V1__AllocRequest message = NPUMEM__V1__ALLOC_REQUEST__INIT;
	char name[32];

	snprintf(name, sizeof(name), "t%u", (unsigned)id);
	allocation->name = name;
	message.n_tensors = 1;
	message.tensors = &list;
	message.wait_ms = wait_ms;
	request.call_case = NPUMEM__V1__REQUEST__CALL_ALLOC;
	request.alloc = &message;
	send(line, peer, id, &request);
}

/* `w` bytes on each NPU. */
static void alloc(struct line *line, unsigned peer, uint64_t id, int64_t w, uint32_t wait_ms)
{
	struct talk_spec spec;
	Npumem__V1__Allocation allocation = NPUMEM__V1__ALLOCATION__INIT;

	allocation.spec = talk_spec(&spec, 8, w);
	send_alloc(line, peer, id, &allocation, wait_ms);
}

/* The same at an offset. */
static void alloc_at(struct line *line, unsigned peer, uint64_t id, int64_t offset, int64_t w, uint32_t wait_ms)
{
	struct talk_spec spec;
	Npumem__V1__Allocation allocation = NPUMEM__V1__ALLOCATION__INIT;

	allocation.spec = talk_spec(&spec, 8, w);
	allocation.spec->address_given_case = NPUMEM__V1__SPEC__ADDRESS_GIVEN_ADDRESS;
	allocation.spec->address = offset;
	send_alloc(line, peer, id, &allocation, wait_ms);
}

/* `n` bytes on the first NPU, `step` apart, maybe over others' that leave room between theirs. */
static void alloc_apart(struct line *line, unsigned peer, uint64_t id, int64_t n, int64_t step, uint32_t wait_ms)
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
	send_alloc(line, peer, id, &allocation, wait_ms);
}

static void free_tensor(struct line *line, unsigned peer, uint64_t id, const char *name)
{
	Npumem__V1__Request request = NPUMEM__V1__REQUEST__INIT;
	Npumem__V1__FreeRequest message = NPUMEM__V1__FREE_REQUEST__INIT;
	Npumem__V1__Ref ref = talk_ref(0, name), *list = &ref;

	message.n_tensors = 1;
	message.tensors = &list;
	request.call_case = NPUMEM__V1__REQUEST__CALL_FREE;
	request.free = &message;
	send(line, peer, id, &request);
}

static void cancel(struct line *line, unsigned peer, uint64_t id, uint64_t other)
{
	Npumem__V1__Request request = NPUMEM__V1__REQUEST__INIT;
	Npumem__V1__CancelRequest message = NPUMEM__V1__CANCEL_REQUEST__INIT;

	message.request_id = other;
	request.call_case = NPUMEM__V1__REQUEST__CALL_CANCEL;
	request.cancel = &message;
	send(line, peer, id, &request);
}

/* The alarm rings `ns` later. */
static void ring(struct line *line, uint64_t ns)
{
	now_ns += ns;
	line->alarm_ns = UINT64_MAX;
	rpc_tick(line->talk.rpc);
}

/* The next answer. */
#define answered(line, i, ID, STATUS)                                                                             \
	do {                                                                                                      \
		ck_assert_uint_gt((line)->n, i);                                                                  \
		ck_assert_uint_eq((line)->answers[i].id, ID);                                                     \
		ck_assert_msg((line)->answers[i].status == (STATUS), "%d: %s", (line)->answers[i].status,         \
			      (line)->answers[i].message);                                                        \
	} while (0)

TEST(a_waiter_is_served_when_something_is_freed)
{
	struct line line;

	line_init(&line);
	alloc(&line, 0, 1, 8192, 1000);
	answered(&line, 0, 1, 0);
	alloc(&line, 1, 2, 4096, 1000);
	ck_assert_uint_eq(line.n, 1);
	ck_assert_uint_eq(line.alarm_ns, now_ns + 1000000000);
	free_tensor(&line, 0, 3, "t1");
	ck_assert_uint_eq(line.n, 3);
	answered(&line, 0, 1, 0);
	answered(&line, 1, 3, 0);
	answered(&line, 2, 2, 0);
	ck_assert_uint_eq(line.alarm_ns, UINT64_MAX);
	line_deinit(&line);
}

TEST(a_small_one_waits_behind_a_large_one)
{
	struct line line;

	line_init(&line);
	alloc(&line, 1, 1, 4096, 0);
	alloc(&line, 1, 2, 2048, 0);
	alloc(&line, 0, 3, 6000, 1000);
	alloc(&line, 1, 4, 64, 1000);
	ck_assert_uint_eq(line.n, 2);
	/* An immediate one does not get it either. */
	alloc(&line, 1, 5, 64, 0);
	answered(&line, 2, 5, NPUMEM_RESOURCE_EXHAUSTED);
	free_tensor(&line, 1, 6, "t2");
	answered(&line, 3, 6, 0);
	ck_assert_uint_eq(line.n, 4);
	free_tensor(&line, 1, 7, "t1");
	answered(&line, 4, 7, 0);
	answered(&line, 5, 3, 0);
	answered(&line, 6, 4, 0);
	line_deinit(&line);
}

TEST(the_deadline_tells_what_was_missing)
{
	struct line line;

	line_init(&line);
	alloc(&line, 0, 1, 8192, 0);
	alloc(&line, 0, 2, 4096, 500);
	alloc(&line, 1, 3, 4096, 250);
	ring(&line, 250 * UINT64_C(1000000) - 1);
	ck_assert_uint_eq(line.n, 1);
	ring(&line, 1);
	answered(&line, 1, 3, NPUMEM_DEADLINE_EXCEEDED);
	ring(&line, 250 * UINT64_C(1000000));
	answered(&line, 2, 2, NPUMEM_DEADLINE_EXCEEDED);
	ck_assert_ptr_nonnull(
		strstr(line.answers[2].message, "waited 500 ms: no room for 4096 bytes on each NPU"));
	line_deinit(&line);
}

TEST(what_can_never_be_is_refused_at_once)
{
	struct line line;

	line_init(&line);
	alloc(&line, 0, 1, 100, 1000);
	alloc(&line, 0, 2, 8200, 1000);
	ck_assert_uint_eq(line.n, 2);
	ck_assert_int_ne(line.answers[1].status, 0);
	alloc(&line, 0, 1, 100, 1000);
	answered(&line, 2, 1, NPUMEM_ALREADY_EXISTS);
	line_deinit(&line);
}

/* Each of two would have room in an empty device, and both have not. */
TEST(what_can_never_be_together_is_refused_at_once)
{
	Npumem__V1__Request request = NPUMEM__V1__REQUEST__INIT;
	Npumem__V1__AllocRequest message = NPUMEM__V1__ALLOC_REQUEST__INIT;
	Npumem__V1__Allocation allocations[2], *list[2] = {&allocations[0], &allocations[1]};
	struct talk_spec specs[2];
	struct line line;

	line_init(&line);
	for (unsigned i = 0; i < 2; i++) {
		npumem__v1__allocation__init(&allocations[i]);
		allocations[i].spec = talk_spec(&specs[i], 8, 5000);
	}
	message.n_tensors = 2;
	message.tensors = list;
	message.wait_ms = 1000;
	request.call_case = NPUMEM__V1__REQUEST__CALL_ALLOC;
	request.alloc = &message;
	send(&line, 0, 1, &request);
	answered(&line, 0, 1, NPUMEM_RESOURCE_EXHAUSTED);
	ck_assert_ptr_nonnull(strstr(line.answers[0].message, "not even an empty device"));
	line_deinit(&line);
}

TEST(waiting_ends_by_cancel_and_with_its_peer)
{
	struct line line;

	line_init(&line);
	alloc(&line, 0, 1, 8192, 0);
	alloc(&line, 1, 2, 4096, 500);
	alloc(&line, 1, 3, 4096, 500);
	cancel(&line, 0, 4, 2);
	answered(&line, 1, 4, 0); /* not found: it is another peer's */
	ck_assert_uint_eq(line.n, 2);
	cancel(&line, 1, 5, 2);
	/* In the test's order: what is delivered first. */
	answered(&line, 2, 2, NPUMEM_CANCELLED);
	answered(&line, 3, 5, 0);
	rpc_peer_close(line.talk.rpc, &line.peers[1]);
	ck_assert_uint_eq(line.n, 4);
	ck_assert_uint_eq(line.alarm_ns, UINT64_MAX);
	free_tensor(&line, 0, 6, "t1");
	ck_assert_int_eq(world_n_tensors(&line.talk.world), 0);
	line_deinit(&line);
}

TEST(who_has_it_itself_holds_up_its_own_alone)
{
	struct line line;

	line_init(&line);
	alloc(&line, 0, 1, 4096, 0);
	alloc(&line, 0, 2, 6000, 60000);
	alloc(&line, 0, 3, 64, 60000);
	alloc(&line, 0, 4, 64, 0);
	answered(&line, 1, 4, NPUMEM_RESOURCE_EXHAUSTED);
	alloc(&line, 1, 5, 64, 60000);
	answered(&line, 2, 5, 0);
	alloc(&line, 1, 6, 2048, 0);
	answered(&line, 3, 6, 0);
	free_tensor(&line, 1, 7, "t5");
	free_tensor(&line, 1, 8, "t6");
	free_tensor(&line, 0, 9, "t1");
	answered(&line, 7, 2, 0);
	answered(&line, 8, 3, 0);
	line_deinit(&line);
}

TEST(going_down_ends_the_line)
{
	struct line line;

	line_init(&line);
	alloc(&line, 0, 1, 8192, 0);
	alloc(&line, 1, 2, 4096, 500);
	rpc_peer_end_waiting(line.talk.rpc, &line.peers[1]);
	answered(&line, 1, 2, NPUMEM_UNAVAILABLE);
	line_deinit(&line);
}

TEST(host_memory_may_run_out_in_line)
{
	struct line line;

	for (size_t i = 1; i < 40; i++) {
		line_init(&line);
		alloc(&line, 0, 1, 8192, 0);
		line.talk.world.fail_at = line.talk.world.n_allocs + i;
		alloc(&line, 1, 2, 4096, 500);
		free_tensor(&line, 0, 3, "t1");
		/* Where the answer to `free` had no memory nothing was freed, and the other waits on. */
		ck_assert_uint_ge(line.n, 1);
		line.talk.world.fail_at = 0;
		line_deinit(&line);
	}
}

/* The clock begins in the middle of a window in which all may hold room back. */
TEST(who_asks_for_more_than_its_share_keeps_nobody_out_for_long)
{
	struct line line;

	line_init(&line);
	alloc(&line, 1, 1, 1024, 0);
	alloc(&line, 0, 2, 8192, 60000);
	alloc(&line, 1, 3, 128, 0);
	answered(&line, 1, 3, NPUMEM_RESOURCE_EXHAUSTED);
	alloc(&line, 1, 4, 128, 60000);
	ck_assert_uint_eq(line.n, 2);
	ck_assert_uint_eq(line.alarm_ns, WAITING_WINDOW_NS);
	ring(&line, WAITING_WINDOW_NS - now_ns);
	answered(&line, 2, 4, 0);
	alloc(&line, 1, 5, 128, 0);
	answered(&line, 3, 5, 0);
	alloc(&line, 1, 6, 128, 60000);
	answered(&line, 4, 6, 0);
	ring(&line, WAITING_WINDOW_NS);
	alloc(&line, 1, 7, 128, 0);
	answered(&line, 5, 7, NPUMEM_RESOURCE_EXHAUSTED);
	line_deinit(&line);
}

/* Small ones that live for half a second come again and again. */
TEST(a_large_one_has_its_turn_beside_small_ones)
{
	struct line line;
	unsigned held[5] = {0}, n_granted = 0, n_refused = 0;
	char name[32];

	line_init(&line);
	alloc(&line, 1, 900, 128, 0);
	alloc(&line, 0, 901, 8192, 60000);
	now_ns = WAITING_WINDOW_NS;
	for (unsigned id = 1; id <= 40; id++) { /* two windows */
		unsigned *slot = &held[id % 5];

		line.n = 0;
		if (id == 5)
			free_tensor(&line, 1, 902, "t900");
		snprintf(name, sizeof(name), "t%u", *slot);
		if (*slot)
			free_tensor(&line, 1, 903, name);
		*slot = 0;
		if (line.n && line.answers[line.n - 1].id == 901)
			break;
		line.n = 0;
		alloc(&line, 1, id, 128, 0);
		if (line.answers[0].status)
			n_refused++;
		else
			n_granted++;
		*slot = line.answers[0].status ? 0 : id;
		ring(&line, 100000000);
	}
	ck_assert_uint_eq(line.answers[line.n - 1].id, 901);
	ck_assert_int_eq(line.answers[line.n - 1].status, 0);
	ck_assert_uint_ge(n_granted, 20);
	ck_assert_uint_gt(n_refused, 0);
	line_deinit(&line);
}

TEST(a_long_line_is_tried_in_parts)
{
	enum { N = 20 };
	struct line line;

	line_init(&line);
	alloc_at(&line, 0, 1, 5120, 1024, 0);
	alloc_at(&line, 0, 200, 2048, 128, 0);
	/* What the first tensor is in the way of, behind its first byte. */
	for (unsigned id = 2; id < 1 + N; id++)
		alloc_at(&line, 0, id, 4096, 2048, 60000);
	alloc_at(&line, 0, 1 + N, 1024, 2048, 60000);
	ring(&line, WAITING_WINDOW_NS - now_ns);
	ck_assert_uint_eq(line.n, 2);
	begin_turns(&line);
	free_tensor(&line, 0, 201, "t200");
	ck_assert_uint_eq(line.n, 3);
	ck_assert(!fair_queue_is_empty(&line.talk.rpc->service->queue));
	/* What else happens does not hasten it. */
	for (unsigned id = 100; id < 110; id++)
		alloc(&line, 1, id, 64, 0);
	ck_assert_uint_eq(line.n, 13);
	ck_assert(!fair_queue_is_empty(&line.talk.rpc->service->queue));
	ck_assert_uint_gt(end_turns(&line), 2);
	answered(&line, 13, 1 + N, 0);
	line_deinit(&line);
}

TEST(many_deadlines_at_once_are_seen_to_in_parts)
{
	enum { N = 20 };
	struct line line;
	unsigned n_refused = 0;

	line_init(&line);
	alloc(&line, 0, 1, 8192, 0);
	for (unsigned id = 2; id < 2 + N; id++)
		alloc(&line, 0, id, 8192, 10);
	begin_turns(&line);
	now_ns += 10000000;
	while (n_refused < N) {
		line.n = 0;
		ring(&line, 0);
		ck_assert_uint_ge(line.n, 1);
		ck_assert_uint_lt(line.n, N / 2);
		for (unsigned i = 0; i < line.n; i++)
			ck_assert_int_eq(line.answers[i].status, NPUMEM_DEADLINE_EXCEEDED);
		n_refused += line.n;
		/* The rest is due at once. */
		ck_assert(n_refused == N || line.alarm_ns <= now_ns);
	}
	end_turns(&line);
	line_deinit(&line);
}

/* On an NPU every second byte of which is t1's, but for the end, which is t2's, t3 is in line: no three bytes
 * apart are free, which takes many turns to find out. */
static void begin_search(struct line *line)
{
	enum { BYTES = 1 << 20, END = 1 << 12 };
	const struct device_options options = {
		.geometry = {.n_npus = 8, .npu_bytes = BYTES, .n_banks = 8, .eu_bytes = 128}};

	line_init_as(line, &options);
	alloc_apart(line, 0, 1, (BYTES - END) / 2, 2, 0);
	alloc(line, 0, 2, END, 0);
	alloc_apart(line, 1, 3, BYTES / 4, 3, 1000);
	ck_assert_uint_eq(line->n, 2);
	ck_assert_uint_eq(line->talk.world.service.waiting.n, 1);
	begin_turns(line);
	free_tensor(line, 0, 4, "t2");
	answered(line, 2, 4, 0);
	ck_assert_uint_eq(line->n, 3);
	ck_assert(!fair_queue_is_empty(&line->talk.rpc->service->queue));
}

TEST(a_search_for_one_in_line_goes_on_in_turns)
{
	struct line line;

	begin_search(&line);
	/* Others are served between, but none takes what it may get. */
	alloc(&line, 0, 5, 64, 0);
	turn(&line);
	answered(&line, 3, 5, NPUMEM_RESOURCE_EXHAUSTED);
	alloc(&line, 0, 6, 64, 1000);
	ck_assert_uint_gt(end_turns(&line), 3);
	ck_assert_uint_eq(line.n, 4);
	ck_assert_uint_eq(line.talk.world.service.waiting.n, 2);
	/* It has its place in line, before who came later. */
	free_tensor(&line, 0, 7, "t1");
	end_turns(&line);
	answered(&line, 4, 7, 0);
	answered(&line, 5, 3, 0);
	answered(&line, 6, 6, 0);
	line_deinit(&line);
}

/* Its handle can be guessed, and it has no owner yet. */
TEST(what_is_being_placed_is_not_found)
{
	enum { GENERATIONS = 8, SLOTS = 32 };
	struct line line;

	begin_search(&line);
	for (uint64_t generation = 0; generation < GENERATIONS; generation++)
		for (uint64_t slot = 1; slot <= SLOTS; slot++) {
			const struct tensor *tensor =
				device_find(line.talk.world.service.device, generation << 32 | slot);

			ck_assert(!tensor || tensor->owner);
		}
	end_turns(&line);
	line_deinit(&line);
}

TEST(what_is_freed_while_one_in_line_is_searched_for_counts)
{
	struct line line;

	begin_search(&line);
	free_tensor(&line, 0, 5, "t1");
	end_turns(&line);
	answered(&line, 3, 5, 0);
	answered(&line, 4, 3, 0);
	line_deinit(&line);
}

TEST(a_search_for_one_in_line_ends_with_it)
{
	struct line line;

	begin_search(&line);
	cancel(&line, 1, 5, 3);
	answered(&line, 3, 5, 0);
	ck_assert_uint_eq(line.n, 4);
	/* Its own, and those of the line. */
	ck_assert_uint_le(end_turns(&line), 3);
	answered(&line, 4, 3, NPUMEM_CANCELLED);
	ck_assert_uint_eq(line.talk.world.service.waiting.n, 0);
	line_deinit(&line);

	begin_search(&line);
	rpc_peer_end_waiting(line.talk.rpc, &line.peers[1]);
	end_turns(&line);
	answered(&line, 3, 3, NPUMEM_CANCELLED);
	line_deinit(&line);

	begin_search(&line);
	rpc_peer_close(line.talk.rpc, &line.peers[1]);
	end_turns(&line);
	ck_assert_uint_eq(line.n, 3);
	ck_assert_uint_eq(line.talk.world.service.waiting.n, 0);
	line_deinit(&line);
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
	struct line line;
	struct fair_work other = {.run = run_other};
	struct rpc *rpc;

	begin_search(&line);
	rpc = line.talk.rpc;
	n_others = 0;
	fair_queue_add(&rpc->service->queue, &line.talk.stranger.user->loop, &other);
	for (unsigned i = 0; i < 100 && line.talk.stranger.user->searching; i++)
		turn(&line);
	ck_assert_ptr_null(line.talk.stranger.user->searching);
	ck_assert_uint_ge(n_others, 2);
	fair_queue_remove(&other);
	end_turns(&line);
	line_deinit(&line);
}

/* Else frees that go on, of anybody, would begin a search after the other, and no deadline of its own is seen to.
 */
TEST(no_search_begins_behind_its_deadline)
{
	struct line line;

	begin_search(&line);
	free_tensor(&line, 0, 5, "t1");
	answered(&line, 3, 5, 0);
	now_ns += 2000 * UINT64_C(1000000);
	uint64_t n_searches = line.talk.rpc->service->waiting.n_searches;
	alloc_apart(&line, 0, 6, (1 << 20) / 2 - (1 << 11), 2, 0);
	answered(&line, 4, 6, 0);
	end_turns(&line);
	ck_assert_uint_eq(line.talk.rpc->service->waiting.n_searches, n_searches);
	ring(&line, 0);
	answered(&line, 5, 3, NPUMEM_DEADLINE_EXCEEDED);
	line_deinit(&line);
}

/* Bob's is not held up by it in this window, and its deadline not by the search. */
TEST(others_in_line_go_on_beside_a_search)
{
	struct line line;

	begin_search(&line);
	alloc(&line, 0, 5, 1 << 20, 10);
	ck_assert_uint_eq(line.n, 3);
	ring(&line, 20 * UINT64_C(1000000));
	answered(&line, 3, 5, NPUMEM_DEADLINE_EXCEEDED);
	ck_assert_ptr_nonnull(line.talk.stranger.user->searching);
	end_turns(&line);
	line_deinit(&line);
}

TEST(a_deadline_waits_for_the_search)
{
	struct line line;

	begin_search(&line);
	ring(&line, 2000 * UINT64_C(1000000));
	ck_assert_uint_eq(line.n, 3);
	end_turns(&line);
	ck_assert_uint_eq(line.n, 3);
	ck_assert_uint_le(line.alarm_ns, now_ns);
	ring(&line, 0);
	answered(&line, 3, 3, NPUMEM_DEADLINE_EXCEEDED);
	line_deinit(&line);
}
