/* Subscribing, and standing in line for room: what comes between other answers. */
#include "tests/unit/client/lib/failing.h"
#include "tests/unit/client/lib/script.h"

struct seen {
	unsigned n;
	struct npumem_event last;
};

static void see(void *context, const struct npumem_event *event)
{
	struct seen *seen = context;
	seen->n++;
	seen->last = *event;
}

static void send_event(const struct peer *peer, const char *kind, uint64_t handle)
{
	Npumem__V1__Event event = {MESSAGE(event),   .kind = (char *)(uintptr_t)kind,
				   .handle = handle, .name = (char *)(uintptr_t) "x",
				   .bytes = 128,     .lost = 2};
	Npumem__V1__Response response = {MESSAGE(response), .result_case = NPUMEM__V1__RESPONSE__RESULT_EVENT,
					 .event = &event};
	peer_answer(peer, &response);
}

static void answer_subscribed(const struct peer *peer, uint64_t n)
{
	Npumem__V1__Subscribed subscribed = NPUMEM__V1__SUBSCRIBED__INIT;
	PEER_ANSWER(peer, n, subscribed, SUBSCRIBED, &subscribed);
}

/* ---- subscribing ---- */

/* The first with an event before its answer and one behind it; the second is refused. */
static void answer_twice(const struct peer *peer, uint64_t n, const void *ctx)
{
	(void)ctx;
	if (n == 2) {
		peer_refuse(peer, n, NPUMEM_INVALID, "no such kind");
		return;
	}
	send_event(peer, "allocated", 7);
	if (n == 3)
		peer_done(peer, n, 0);
	else
		answer_subscribed(peer, n);
	if (n == 1)
		send_event(peer, "freed", 8);
}

TEST(events_come_with_other_answers)
{
	static const char *const kinds[] = {"allocated", "freed"};
	struct script script;
	struct seen first = {.n = 0}, second = {.n = 0};
	struct npumem_error error;
	script_open(&script, &memory_libc, answer_twice, NULL);
	ck_assert_int_eq(npumem_subscribe(script.peer.npumem, kinds, 2, see, &first, NULL), 0);
	while (first.n < 2)
		ck_assert_int_eq(npumem_process(script.peer.npumem, NULL), 0);
	ck_assert_str_eq(first.last.kind, "freed");
	ck_assert_uint_eq(first.last.handle, 8);
	ck_assert_str_eq(first.last.name, "x");
	ck_assert_uint_eq(first.last.bytes, 128);
	ck_assert_uint_eq(first.last.lost, 2);
	/* One that is refused leaves things as they were. */
	ck_assert_int_eq(npumem_subscribe(script.peer.npumem, (const char *const[]){"?"}, 1, see, &second, &error),
			 NPUMEM_INVALID);
	ck_assert_str_eq(error.message, "no such kind");
	ck_assert_int_eq(npumem_fill(script.peer.npumem, 1, 2, NULL), 0);
	ck_assert_uint_eq(first.n, 3);
	ck_assert_uint_eq(second.n, 0);
	/* To nobody: what still comes is dropped. */
	ck_assert_int_eq(npumem_subscribe(script.peer.npumem, NULL, 0, NULL, NULL, NULL), 0);
	ck_assert_uint_eq(first.n, 3);
	script_end(&script);
	ck_assert_uint_eq(script.requests[0]->subscribe->n_kinds, 2);
	ck_assert_str_eq(script.requests[0]->subscribe->kinds[1], "freed");
	ck_assert_uint_eq(script.requests[3]->subscribe->n_kinds, 0);
	script_close(&script);
}

/* ---- standing in line ---- */

static void answer_line(const struct peer *peer, uint64_t n, const void *ctx)
{
	(void)ctx;
	if (n == 1)
		peer_refuse(peer, n, NPUMEM_DEADLINE_EXCEEDED, "waited 250 ms: 128 bytes per NPU are missing");
	else
		peer_allocated(peer, n, 2);
}

TEST(waiting_for_room)
{
	struct script script;
	struct npumem_allocation allocations[2] = {NPUMEM_ALLOCATION_INIT, NPUMEM_ALLOCATION_INIT};
	const struct npumem_tensor *tensors[2];
	struct npumem_error error;
	struct told told = {.times = 0};
	allocations[0].name = "a";
	allocations[1].name = "b";
	script_open(&script, &memory_libc, answer_line, NULL);
	ck_assert_int_eq(npumem_alloc_wait(script.peer.npumem, allocations, 2, 250, tensors, &error),
			 NPUMEM_DEADLINE_EXCEEDED);
	ck_assert(strstr(error.message, "128 bytes per NPU are missing"));
	ck_assert_int_eq(npumem_alloc_wait(script.peer.npumem, allocations, 2, UINT32_MAX, tensors, &error), 0);
	ck_assert_uint_eq(tensors[1]->handle, 101);
	ck_assert_int_eq(npumem_alloc(script.peer.npumem, allocations, 2, tensors, NULL), 0);
	ck_assert_int_eq(
		npumem_alloc_wait_async(script.peer.npumem, allocations, 2, 7, told_tensors, &told, NULL, NULL),
		0);
	ck_assert_int_eq(npumem_flush(script.peer.npumem, NULL), 0);
	ck_assert_uint_eq(told.n_tensors, 2);
	script_end(&script);
	ck_assert_uint_eq(script.requests[0]->alloc->wait_ms, 250);
	ck_assert_uint_eq(script.requests[1]->alloc->wait_ms, UINT32_MAX);
	ck_assert_uint_eq(script.requests[2]->alloc->wait_ms, 0);
	ck_assert_uint_eq(script.requests[3]->alloc->wait_ms, 7);
	ck_assert_str_eq(script.requests[3]->alloc->tensors[1]->name, "b");
	script_close(&script);
}

/* ---- without memory ---- */

static void answer_any(const struct peer *peer, uint64_t n, const void *ctx)
{
	(void)ctx;
	if (n == 1) {
		send_event(peer, "allocated", 7);
		answer_subscribed(peer, n);
	} else {
		peer_allocated(peer, n, 20);
	}
}

static int all_of_them(struct npumem *npumem, struct seen *seen)
{
	static const char *const kinds[] = {"allocated"};
	struct npumem_allocation allocations[20];
	const struct npumem_tensor *tensors[20];
	for (unsigned i = 0; i < 20; i++)
		allocations[i] = (struct npumem_allocation)NPUMEM_ALLOCATION_INIT;
	int status = npumem_subscribe(npumem, kinds, 1, see, seen, NULL);
	return status ? status : npumem_alloc_wait(npumem, allocations, 20, 10, tensors, NULL);
}

TEST(every_allocation_may_fail)
{
	int status = NPUMEM_UNAVAILABLE;
	for (unsigned i = 1; status; i++) {
		struct failing failing = {.fail_at = i};
		const struct memory memory = {failing_resize, &failing};
		struct seen seen = {.n = 0};
		struct script script;
		script_open(&script, &memory, answer_any, NULL);
		if (script.peer.npumem)
			status = all_of_them(script.peer.npumem, &seen);
		ck_assert(!status || status == NPUMEM_RESOURCE_EXHAUSTED || status == NPUMEM_UNAVAILABLE);
		ck_assert(status || (failing.calls < i && seen.n == 1));
		script_close(&script);
		ck_assert_int_eq(failing.live, 0);
		ck_assert_uint_lt(i, 1000);
	}
}
