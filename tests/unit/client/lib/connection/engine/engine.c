#include <pthread.h>

#include "tests/unit/client/lib/one_peer.h"

static const struct npumem_operand operands[] = {{"in", 1}, {"weights", 2}, {"out", 3}};

static int send_run(struct told *told)
{
	return npumem_run_async(peer.npumem, "conv2d", operands, 3, NULL, 0, told_callback, told, NULL, NULL);
}

TEST(a_request_is_a_frame_with_its_id)
{
	struct told told = {.times = 0};
	struct npumem_param param = {.number = NPUMEM_PARAM_STRIDE, .n_values = 2, .values = {1, 2}};
	ck_assert_int_eq(
		npumem_run_async(peer.npumem, "conv2d", operands, 3, &param, 1, told_callback, &told, NULL, NULL),
		0);
	ck_assert_uint_eq(npumem_in_flight(peer.npumem), 1);
	ck_assert(npumem_wants_write(peer.npumem));
	ck_assert_int_eq(npumem_process(peer.npumem, NULL), 0);
	ck_assert(!npumem_wants_write(peer.npumem));
	Npumem__V1__Request *request = peer_request(&peer);
	ck_assert_uint_eq(request->id, 1);
	ck_assert_int_eq(request->call_case, NPUMEM__V1__REQUEST__CALL_RUN);
	ck_assert_int_eq(request->run->kernel, NPUMEM_KERNEL_CONV2D);
	ck_assert_uint_eq(request->run->n_operands, 3);
	ck_assert_str_eq(request->run->operands[2]->role, "out");
	ck_assert_uint_eq(request->run->operands[2]->tensor->handle, 3);
	ck_assert_int_eq(request->run->params[0]->values[1], 2);
	npumem__v1__request__free_unpacked(request, NULL);
	peer_done(&peer, 1, 42);
	ck_assert_int_eq(told.times, 0);
	ck_assert_int_eq(npumem_process(peer.npumem, NULL), 0);
	ck_assert_int_eq(told.times, 1);
	ck_assert_int_eq(told.macs, 42);
	ck_assert_uint_eq(npumem_in_flight(peer.npumem), 0);
}

TEST(answers_may_come_in_any_order)
{
	struct told told[150] = {{0}};
	for (unsigned i = 0; i < 150; i++)
		ck_assert_int_eq(send_run(&told[i]), 0);
	for (unsigned i = 150; i > 0; i--)
		peer_done(&peer, i, i);
	ck_assert_int_eq(npumem_flush(peer.npumem, NULL), 0);
	for (unsigned i = 0; i < 150; i++) {
		ck_assert_int_eq(told[i].times, 1);
		ck_assert_int_eq(told[i].macs, i + 1);
	}
}

/* Whatever ends a connection, every callback is called once, in the order sent, with the reason. */
static void expect_over(struct told *told, unsigned n, const char *why)
{
	struct npumem_error error = {0};
	int status = 0;
	for (unsigned i = 0; i < 3 && !status; i++)
		status = npumem_process(peer.npumem, &error);
	ck_assert_int_eq(status, NPUMEM_UNAVAILABLE);
	ck_assert_msg(strstr(error.message, why) != NULL, "\"%s\" does not say \"%s\"", error.message, why);
	for (unsigned i = 0; i < n; i++) {
		ck_assert_int_eq(told[i].times, 1);
		ck_assert_int_eq(told[i].status, NPUMEM_UNAVAILABLE);
		ck_assert(!i || told[i].order > told[i - 1].order);
		ck_assert_str_eq(told[i].message, error.message);
	}
	ck_assert_uint_eq(npumem_in_flight(peer.npumem), 0);
	ck_assert_int_eq(send_run(told), NPUMEM_UNAVAILABLE);
	ck_assert_int_eq(npumem_stat(peer.npumem, NULL, &error), NPUMEM_UNAVAILABLE);
	ck_assert_int_eq(told[0].times, 1);
}

TEST(a_close_is_told_to_all)
{
	struct told told[100] = {{0}};
	for (unsigned i = 0; i < 100; i++)
		ck_assert_int_eq(send_run(&told[i]), 0);
	ck_assert_int_eq(npumem_process(peer.npumem, NULL), 0);
	close(peer.fd);
	peer.fd = -1;
	expect_over(told, 100, "closed the connection");
}

TEST(the_daemons_reason_is_told)
{
	struct told told = {.times = 0};
	ck_assert_int_eq(send_run(&told), 0);
	peer_refuse(&peer, 0, NPUMEM_RESOURCE_EXHAUSTED, "too many sessions");
	close(peer.fd);
	peer.fd = -1;
	expect_over(&told, 1, "too many sessions");
}

TEST(a_truncated_answer_at_every_byte)
{
	size_t n;
	Npumem__V1__Done done = {MESSAGE(done), .warning = (char *)(uintptr_t) "some bytes were never written",
				 .macs = 123456789};
	Npumem__V1__Response response = {MESSAGE(response), .id = 1,
					 .result_case = NPUMEM__V1__RESPONSE__RESULT_DONE, .done = &done};
	uint8_t *frame = peer_frame(&response, &n);
	for (size_t cut = 1; cut < n; cut++) {
		peer_again();
		struct told told = {.times = 0};
		ck_assert_int_eq(send_run(&told), 0);
		peer_write(&peer, frame, cut);
		ck_assert_int_eq(npumem_process(peer.npumem, NULL), 0);
		ck_assert_int_eq(told.times, 0);
		close(peer.fd);
		peer.fd = -1;
		expect_over(&told, 1, "in the middle of an answer");
	}
	free(frame);
}

TEST(an_answer_byte_by_byte)
{
	Npumem__V1__Done done = NPUMEM__V1__DONE__INIT;
	struct told told = {.times = 0};
	size_t n;
	done.macs = 7;
	Npumem__V1__Response response = {MESSAGE(response), .id = 1,
					 .result_case = NPUMEM__V1__RESPONSE__RESULT_DONE, .done = &done};
	uint8_t *frame = peer_frame(&response, &n);
	ck_assert_int_eq(send_run(&told), 0);
	for (size_t i = 0; i < n; i++) {
		ck_assert_int_eq(told.times, 0);
		peer_write(&peer, frame + i, 1);
		ck_assert_int_eq(npumem_process(peer.npumem, NULL), 0);
	}
	ck_assert_int_eq(told.times, 1);
	ck_assert_int_eq(told.macs, 7);
	free(frame);
}

static void expect_garbage(const char *bytes, size_t n, const char *why)
{
	peer_again();
	struct told told = {.times = 0};
	ck_assert_int_eq(send_run(&told), 0);
	peer_write(&peer, bytes, n);
	expect_over(&told, 1, why);
}

TEST(garbage_is_unavailable)
{
	expect_garbage("\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", 11, "not a message");
	expect_garbage("\x81\x80\x80\x08zz", 6, "more than 16777216 bytes");
	expect_garbage("\x03\xff\xff\xff", 4, "cannot be read");
	expect_garbage("\x02\x0a\x7f", 3, "cannot be read");
	/* "H" announces 72 bytes. */
	expect_garbage("HTTP/1.1 400 Bad Request: this port is not what you think it is, go away now.....", 80,
		       "cannot be read");
}

TEST(an_id_never_sent)
{
	struct told told = {.times = 0};
	ck_assert_int_eq(send_run(&told), 0);
	peer_done(&peer, 77, 0);
	expect_over(&told, 1, "answered request 77");
}

TEST(an_id_answered_twice)
{
	struct told told[2] = {{0}};
	ck_assert_int_eq(send_run(&told[0]), 0);
	ck_assert_int_eq(send_run(&told[1]), 0);
	peer_done(&peer, 1, 1);
	peer_done(&peer, 1, 1);
	expect_over(&told[1], 1, "answered request 1");
	ck_assert_int_eq(told[0].times, 1);
	ck_assert_int_eq(told[0].status, 0);
}

TEST(an_answer_of_another_kind)
{
	struct told told = {.times = 0};
	ck_assert_int_eq(send_run(&told), 0);
	peer_allocated(&peer, 1, 1);
	expect_over(&told, 1, "makes no sense");
}

TEST(a_daemon_going_down)
{
	struct told told[2] = {{0}};
	ck_assert_int_eq(send_run(&told[0]), 0);
	ck_assert_int_eq(send_run(&told[1]), 0);
	peer_goes_down(&peer, 1);
	expect_over(told, 2, "going down");
}

TEST(events_and_unknown_statuses_do_no_harm)
{
	struct told told = {.times = 0};
	Npumem__V1__Event event = NPUMEM__V1__EVENT__INIT;
	event.kind = (char *)(uintptr_t) "from a later version";
	Npumem__V1__Response response = {MESSAGE(response), .result_case = NPUMEM__V1__RESPONSE__RESULT_EVENT,
					 .event = &event};
	ck_assert_int_eq(send_run(&told), 0);
	peer_answer(&peer, &response);
	peer_refuse(&peer, 1, 99, "");
	ck_assert_int_eq(npumem_process(peer.npumem, NULL), 0);
	ck_assert_int_eq(told.times, 1);
	ck_assert_int_eq(told.status, NPUMEM_INTERNAL);
	ck_assert_str_eq(told.message, "the daemon gave no reason (status 99)");
}

/* xorshift: the same bytes in every run. */
static uint32_t random_next(uint32_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 17;
	return *state ^= *state << 5;
}

TEST(damaged_answers_never_crash)
{
	struct peer_tensor tensors[6];
	Npumem__V1__Tensor *list[6];
	uint32_t state = 1;
	size_t n;
	for (unsigned i = 0; i < 6; i++) {
		peer_tensor_init(&tensors[i], i + 1);
		list[i] = &tensors[i].message;
	}
	Npumem__V1__Allocated allocated = {MESSAGE(allocated), .n_tensors = 6, .tensors = list};
	Npumem__V1__Response response = {MESSAGE(response), .id = 1,
					 .result_case = NPUMEM__V1__RESPONSE__RESULT_ALLOCATED,
					 .allocated = &allocated};
	uint8_t *frame = peer_frame(&response, &n);
	for (unsigned round = 0; round < 2000; round++) {
		struct npumem_allocation allocations[6];
		peer_again();
		struct told told = {.times = 0};
		uint8_t damaged[2048];
		for (unsigned i = 0; i < 6; i++)
			allocations[i] = (struct npumem_allocation)NPUMEM_ALLOCATION_INIT;
		ck_assert_uint_lt(n, sizeof(damaged));
		memcpy(damaged, frame, n);
		for (unsigned i = 0; i < 1 + round % 3; i++)
			damaged[random_next(&state) % n] = (uint8_t)random_next(&state);
		ck_assert_int_eq(npumem_alloc_async(peer.npumem, allocations, 6, told_tensors, &told, NULL, NULL),
				 0);
		peer_write(&peer, damaged, n);
		close(peer.fd);
		peer.fd = -1;
		for (unsigned i = 0; i < 4; i++)
			npumem_process(peer.npumem, NULL);
		ck_assert_int_eq(told.times, 1);
		ck_assert(told.status || told.n_tensors == 6);
	}
	free(frame);
}

/* ---- callbacks ---- */

struct chain {
	struct peer *peer;
	unsigned left;
	int inner; /* what waiting inside a callback gave */
};

static void chain_next(void *context, const struct npumem_answer *answer)
{
	struct chain *chain = context;
	ck_assert_int_eq(answer->status, 0);
	ck_assert_int_eq(npumem_process(chain->peer->npumem, NULL), NPUMEM_INVALID);
	chain->inner = npumem_info(chain->peer->npumem, NULL, NULL);
	if (chain->left--)
		ck_assert_int_eq(npumem_run_async(chain->peer->npumem, "conv2d", operands, 3, NULL, 0, chain_next,
						  chain, NULL, NULL),
				 0);
}

TEST(a_callback_may_send_but_not_wait)
{
	struct chain chain = {.peer = &peer, .left = 100};
	ck_assert_int_eq(
		npumem_run_async(peer.npumem, "conv2d", operands, 3, NULL, 0, chain_next, &chain, NULL, NULL), 0);
	for (unsigned i = 1; i <= 101; i++)
		peer_done(&peer, i, 0);
	ck_assert_int_eq(npumem_flush(peer.npumem, NULL), 0);
	ck_assert_uint_eq(npumem_in_flight(peer.npumem), 0);
	ck_assert_int_eq(chain.inner, NPUMEM_INVALID);
}

static void send_again(void *context, const struct npumem_answer *answer)
{
	(void)context;
	ck_assert_int_eq(answer->status, NPUMEM_CANCELLED);
	ck_assert_int_ne(
		npumem_run_async(peer.npumem, "conv2d", operands, 3, NULL, 0, send_again, &peer, NULL, NULL), 0);
}

TEST(closing_cancels_what_waits)
{
	for (unsigned i = 0; i < 3; i++)
		ck_assert_int_eq(npumem_run_async(peer.npumem, "conv2d", operands, 3, NULL, 0, send_again, &peer,
						  NULL, NULL),
				 0);
	peer_close(&peer);
	npumem_close(NULL);
}

/* ---- both directions full ---- */

/* Answers every read with a mebibyte before it looks at the next request: a daemon that does not read while it
 * cannot write. */
static void *slow_daemon(void *context)
{
	(void)context;
	static uint8_t data[1 << 20];
	memset(data, 0x5a, sizeof(data));
	for (unsigned i = 0; i < 64; i++) {
		Npumem__V1__Request *request = peer_request(&peer);
		Npumem__V1__Done done = NPUMEM__V1__DONE__INIT;
		if (request->call_case == NPUMEM__V1__REQUEST__CALL_READ) {
			done.data.data = data;
			done.data.len = sizeof(data);
		}
		PEER_ANSWER(&peer, request->id, done, DONE, &done);
		npumem__v1__request__free_unpacked(request, NULL);
	}
	return NULL;
}

TEST(full_buffers_do_not_deadlock)
{
	static struct told told[64];
	static uint8_t data[1 << 20], read[32][1 << 20];
	pthread_t thread;
	ck_assert_int_eq(pthread_create(&thread, NULL, slow_daemon, &peer), 0);
	for (unsigned i = 0; i < 64; i++) {
		int status = i % 2 ? npumem_write_part_async(peer.npumem, 1, 0, data, sizeof(data), told_callback,
							     &told[i], NULL, NULL)
				   : npumem_read_part_async(peer.npumem, 1, 0, sizeof(data), read[i / 2],
							    sizeof(data), told_callback, &told[i], NULL, NULL);
		ck_assert_int_eq(status, 0);
	}
	ck_assert_int_eq(npumem_flush(peer.npumem, NULL), 0);
	pthread_join(thread, NULL);
	for (unsigned i = 0; i < 64; i++) {
		ck_assert_int_eq(told[i].times, 1);
		ck_assert_int_eq(told[i].status, 0);
		ck_assert(read[i / 2][0] == 0x5a && read[i / 2][sizeof(data) - 1] == 0x5a);
	}
}

TEST(a_request_over_the_cap_is_refused_here)
{
	struct told told = {.times = 0};
	struct npumem_error error;
	size_t bytes = (size_t)16 << 20;
	void *data = calloc(1, bytes);
	ck_assert_ptr_nonnull(data);
	ck_assert_int_eq(
		npumem_write_part_async(peer.npumem, 1, 0, data, bytes, told_callback, &told, NULL, &error),
		NPUMEM_INVALID);
	ck_assert_ptr_nonnull(strstr(error.message, "16777216"));
	ck_assert_int_eq(told.times, 0);
	ck_assert_uint_eq(npumem_in_flight(peer.npumem), 0);
	free(data);
}
