/* Requests that are cancelled, let go, late, or whose callbacks close the connection; data that are lent and
 * received directly. Against a peer that answers when the test says so, or never. */
#include <poll.h>
#include <time.h>

#include "tests/unit/client/lib/failing.h"
#include "tests/unit/client/lib/one_peer.h"

static int fill(struct told *told, struct npumem_request **request)
{
	return npumem_fill_async(peer.npumem, 1, 2, told_callback, told, request, NULL);
}

static void answer_cancelled(uint64_t id, bool found)
{
	Npumem__V1__Cancelled cancelled = NPUMEM__V1__CANCELLED__INIT;
	cancelled.found = found;
	PEER_ANSWER(&peer, id, cancelled, CANCELLED, &cancelled);
}

static void expect_cancel(uint64_t of)
{
	Npumem__V1__Request *request = peer_request(&peer);
	ck_assert_int_eq(request->call_case, NPUMEM__V1__REQUEST__CALL_CANCEL);
	ck_assert_uint_eq(request->cancel->request_id, of);
	npumem__v1__request__free_unpacked(request, NULL);
}

static void drop_request(void)
{
	npumem__v1__request__free_unpacked(peer_request(&peer), NULL);
}

/* ---- taking back ---- */

TEST(what_is_cancelled_is_told_so)
{
	struct told told[2] = {{0}};
	struct npumem_request *requests[2];
	for (unsigned i = 0; i < 2; i++)
		ck_assert_int_eq(fill(&told[i], &requests[i]), 0);
	ck_assert_uint_eq(npumem_request_id(requests[1]), 2);
	npumem_cancel(requests[0]);
	npumem_cancel(requests[0]); /* is asked for once */
	npumem_cancel(requests[1]);
	ck_assert_uint_eq(npumem_in_flight(peer.npumem), 2);
	ck_assert_int_eq(npumem_process(peer.npumem, NULL), 0);
	drop_request();
	drop_request();
	expect_cancel(1);
	expect_cancel(2);
	ck_assert_int_eq(told[0].times, 0);
	peer_refuse(&peer, 1, NPUMEM_CANCELLED, "was cancelled");
	answer_cancelled(3, true);
	answer_cancelled(4, false);
	peer_done(&peer, 2, 5); /* it could no longer be stopped */
	ck_assert_int_eq(npumem_flush(peer.npumem, NULL), 0);
	ck_assert_int_eq(told[0].status, NPUMEM_CANCELLED);
	ck_assert_int_eq(told[1].status, 0);
	ck_assert_int_eq(told[1].macs, 5);
	npumem_cancel(NULL);
	npumem_let_go(NULL);
}

TEST(what_is_let_go_is_told_nobody)
{
	struct told told[3] = {{0}};
	struct npumem_request *requests[3];
	for (unsigned i = 0; i < 3; i++)
		ck_assert_int_eq(fill(&told[i], &requests[i]), 0);
	npumem_let_go(requests[0]);
	npumem_let_go(requests[2]);
	ck_assert_uint_eq(npumem_in_flight(peer.npumem), 1);
	peer_done(&peer, 1, 1);
	peer_refuse(&peer, 3, NPUMEM_NOT_FOUND, "none");
	peer_done(&peer, 2, 2);
	ck_assert_int_eq(npumem_flush(peer.npumem, NULL), 0);
	ck_assert_int_eq(told[0].times + told[2].times, 0);
	ck_assert_int_eq(told[1].macs, 2);
	/* One that waits for nothing any more does not keep the connection from being told its end. */
	ck_assert_int_eq(fill(&told[0], &requests[0]), 0);
	npumem_let_go(requests[0]);
	npumem_close(peer.npumem);
	peer.npumem = NULL;
	ck_assert_int_eq(told[0].times, 0);
}

struct others {
	struct peer *peer;
	struct npumem_request *own, *cancelled, *gone;
	unsigned times;
};

static void in_callback(void *context, const struct npumem_answer *answer)
{
	struct others *others = context;
	ck_assert_int_eq(answer->status, 0);
	npumem_cancel(others->cancelled);
	npumem_let_go(others->gone);
	/* Its own is over. */
	npumem_cancel(others->own);
	npumem_let_go(others->own);
	others->times++;
}

TEST(callbacks_cancel_and_let_go_of_others)
{
	struct others others = {.peer = &peer};
	struct told told[2] = {{0}};
	ck_assert_int_eq(npumem_fill_async(peer.npumem, 1, 2, in_callback, &others, &others.own, NULL), 0);
	ck_assert_int_eq(fill(&told[0], &others.cancelled), 0);
	ck_assert_int_eq(fill(&told[1], &others.gone), 0);
	/* All three answers are there already; the third is then for nobody. */
	peer_done(&peer, 1, 0);
	peer_refuse(&peer, 2, NPUMEM_CANCELLED, "was cancelled");
	peer_done(&peer, 3, 0);
	ck_assert_int_eq(npumem_process(peer.npumem, NULL), 0);
	ck_assert_uint_eq(others.times, 1);
	ck_assert_int_eq(told[0].status, NPUMEM_CANCELLED);
	ck_assert_int_eq(told[1].times, 0);
}

/* ---- time ---- */

static int64_t now_ms(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

TEST(a_peer_that_never_answers)
{
	struct npumem_error error;
	npumem_set_timeout(peer.npumem, 30);
	int64_t before = now_ms();
	ck_assert_int_eq(npumem_fill(peer.npumem, 1, 2, &error), NPUMEM_DEADLINE_EXCEEDED);
	ck_assert_int_ge(now_ms() - before, 30);
	ck_assert_ptr_nonnull(strstr(error.message, "within the 30 ms"));
	/* It was taken back, and the connection goes on: late answers are for nobody. */
	npumem_set_timeout(peer.npumem, 0);
	ck_assert_uint_eq(npumem_in_flight(peer.npumem), 0);
	peer_done(&peer, 1, 1);
	answer_cancelled(2, true);
	peer_done(&peer, 3, 7);
	const struct npumem_done *done;
	ck_assert_int_eq(npumem_copy(peer.npumem, 1, 2, &done, NULL), 0);
	ck_assert_int_eq(done->macs, 7);
	drop_request();
	expect_cancel(1);
}

/* As likely as not where it is looked for an answer rather than waited: that it is over must end both. */
TEST(a_deadline_that_passes_while_it_spins)
{
	ck_assert_int_eq(setenv("NPUMEM_SPIN_US", "1000", 1), 0);
	npumem_set_timeout(peer.npumem, 1);
	for (unsigned i = 0; i < 20; i++)
		ck_assert_int_eq(npumem_fill(peer.npumem, 1, 2, NULL), NPUMEM_DEADLINE_EXCEEDED);
}

TEST(in_an_event_loop)
{
	struct told told[3] = {{0}};
	ck_assert_int_eq(npumem_timeout(peer.npumem), -1);
	npumem_set_timeout(peer.npumem, 60000);
	ck_assert_int_eq(fill(&told[0], NULL), 0);
	int left = npumem_timeout(peer.npumem);
	ck_assert(left > 50000 && left <= 60000);
	/* Those that are sent later may be due sooner. */
	npumem_set_timeout(peer.npumem, 20);
	ck_assert_int_eq(fill(&told[1], NULL), 0);
	npumem_set_timeout(peer.npumem, 0);
	ck_assert_int_eq(fill(&told[2], NULL), 0);
	for (int64_t until = now_ms() + 20000; !told[1].times && now_ms() < until;) {
		struct pollfd pollfd = {.fd = npumem_fd(peer.npumem), .events = POLLIN};
		poll(&pollfd, 1, npumem_timeout(peer.npumem));
		ck_assert_int_eq(npumem_process(peer.npumem, NULL), 0);
	}
	ck_assert_int_eq(told[1].status, NPUMEM_DEADLINE_EXCEEDED);
	ck_assert_int_eq(told[0].times + told[2].times, 0);
	ck_assert_int_gt(npumem_timeout(peer.npumem), 30000);
	peer_close(&peer);
}

/* The next one, which the connection still has to send; its data are at most 1 MiB. */
static Npumem__V1__Request *drawn_request(void)
{
	struct pollfd pollfd = {.fd = peer.fd, .events = POLLIN};
	size_t n = 0, header = 0, message = 0;
	uint8_t *got = malloc((1 << 20) + 100);
	while (!header || n < header + message) {
		ck_assert_int_eq(npumem_process(peer.npumem, NULL), 0);
		poll(&pollfd, 1, 10000);
		ssize_t k = recv(peer.fd, got + n, header ? header + message - n : 1, MSG_DONTWAIT);
		n += k > 0 ? (size_t)k : 0;
		frame_parse(got, n, FRAME_BYTES_MAX, &header, &message);
	}
	Npumem__V1__Request *request = npumem__v1__request__unpack(NULL, message, got + header);
	free(got);
	return request;
}

/* A peer that does not even read: what the caller wrote is its own again all the same. */
TEST(a_peer_that_never_reads)
{
	size_t bytes = 4 << 20;
	struct npumem_tensor tensor = {.handle = 1};
	Npumem__V1__Request *request;
	int64_t first = 0;
	uint8_t *data = malloc(bytes);
	memset(data, 0x5a, bytes);
	tensor.place = (struct npumem_place){
		.dtype = NPUMEM_INT8, .shape = {1, 1, 1, (int64_t)bytes}, .last_w = (int64_t)bytes};
	npumem_set_timeout(peer.npumem, 30);
	ck_assert_int_eq(npumem_write(peer.npumem, &tensor, data, bytes, NULL), NPUMEM_DEADLINE_EXCEEDED);
	memset(data, 0xee, bytes);
	free(data);
	/* Once it reads it gets what was meant, as far as that was under way: all of it, but on a slow machine. */
	npumem_set_timeout(peer.npumem, 0);
	while ((request = drawn_request())->call_case == NPUMEM__V1__REQUEST__CALL_WRITE) {
		ck_assert_int_eq(request->write->first, first);
		ck_assert_uint_eq(request->write->data.len, 1 << 20);
		const uint8_t *bytes_got = request->write->data.data;
		ck_assert(bytes_got[0] == 0x5a && !memcmp(bytes_got, bytes_got + 1, (1 << 20) - 1));
		first += 1 << 20;
		npumem__v1__request__free_unpacked(request, NULL);
	}
	ck_assert_int_eq(request->call_case, NPUMEM__V1__REQUEST__CALL_CANCEL);
	ck_assert_int_gt(first, 0);
	npumem__v1__request__free_unpacked(request, NULL);
}

/* ---- closing from within ---- */

struct closer {
	struct npumem *npumem;
	unsigned times, cancelled;
};

static void close_in_callback(void *context, const struct npumem_answer *answer)
{
	struct closer *closer = context;
	closer->times++;
	closer->cancelled += answer->status == NPUMEM_CANCELLED;
	npumem_close(closer->npumem);
	/* Not before this returns. */
	ck_assert_int_ge(npumem_fd(closer->npumem), 0);
	if (answer->done)
		ck_assert_int_eq(answer->done->macs, 3);
}

TEST(a_callback_closes)
{
	for (unsigned how = 0; how < 3; how++) {
		struct failing failing = {.fail_at = 0};
		const struct memory memory = {failing_resize, &failing};
		peer_close(&peer);
		peer = peer_open_with(&memory);
		struct closer closer = {.npumem = peer.npumem};
		struct npumem_error error;
		for (unsigned i = 0; i < 5; i++)
			ck_assert_int_eq(
				npumem_fill_async(peer.npumem, 1, 2, close_in_callback, &closer, NULL, NULL), 0);
		peer_done(&peer, 1, 3);
		peer_done(&peer, 2, 3);
		int status = how == 0	? npumem_process(peer.npumem, &error)
			     : how == 1 ? npumem_flush(peer.npumem, &error)
					: npumem_info(peer.npumem, NULL, &error);
		ck_assert_int_eq(status, NPUMEM_CANCELLED);
		ck_assert_int_eq(error.status, NPUMEM_CANCELLED);
		ck_assert_uint_eq(closer.times, 5);
		ck_assert_uint_eq(closer.cancelled, 4);
		ck_assert_int_eq(failing.live, 0);
		peer.npumem = NULL;
	}
}

/* The answer that is waited for comes, and right behind it one whose callback closes: its result is gone, too. */
TEST(a_result_of_a_closed_connection)
{
	struct closer closer = {.npumem = peer.npumem};
	const struct npumem_done *done = (const void *)&closer;
	ck_assert_int_eq(npumem_fill_async(peer.npumem, 1, 2, close_in_callback, &closer, NULL, NULL), 0);
	peer_done(&peer, 2, 9);
	peer_done(&peer, 1, 3);
	ck_assert_int_eq(npumem_copy(peer.npumem, 1, 2, &done, NULL), NPUMEM_CANCELLED);
	ck_assert_ptr_null(done);
	peer.npumem = NULL;
}

static void close_on_event(void *context, const struct npumem_event *event)
{
	struct closer *closer = context;
	ck_assert_str_eq(event->kind, "freed");
	closer->times++;
	npumem_close(closer->npumem);
}

TEST(an_event_closes_and_so_does_the_end)
{
	Npumem__V1__Event event = NPUMEM__V1__EVENT__INIT;
	struct closer closer = {.npumem = peer.npumem};
	event.kind = (char *)(uintptr_t) "freed";
	Npumem__V1__Response response = {MESSAGE(response), .result_case = NPUMEM__V1__RESPONSE__RESULT_EVENT,
					 .event = &event};
	ck_assert_int_eq(
		npumem_subscribe_async(peer.npumem, NULL, 0, close_on_event, &closer, NULL, NULL, NULL, NULL), 0);
	peer_answer(&peer, &response);
	peer_answer(&peer, &response);
	ck_assert_int_eq(npumem_process(peer.npumem, NULL), NPUMEM_CANCELLED);
	ck_assert_uint_eq(closer.times, 1);
	peer.npumem = NULL;
	/* One that learns that the connection broke closes it. */
	peer_again();
	closer = (struct closer){.npumem = peer.npumem};
	ck_assert_int_eq(npumem_fill_async(peer.npumem, 1, 2, close_in_callback, &closer, NULL, NULL), 0);
	close(peer.fd);
	peer = (struct peer){.fd = -1};
	ck_assert_int_ne(npumem_flush(closer.npumem, NULL), 0);
	ck_assert_uint_eq(closer.times, 1);
}

static void close_late(void *context, const struct npumem_answer *answer)
{
	ck_assert_int_eq(answer->status, NPUMEM_DEADLINE_EXCEEDED);
	close_in_callback(context, answer);
}

TEST(a_late_callback_closes)
{
	struct closer closer = {.npumem = peer.npumem};
	npumem_set_timeout(peer.npumem, 5);
	ck_assert_int_eq(npumem_fill_async(peer.npumem, 1, 2, close_late, &closer, NULL, NULL), 0);
	ck_assert_int_eq(npumem_flush(peer.npumem, NULL), NPUMEM_CANCELLED);
	ck_assert_uint_eq(closer.times, 1);
	peer.npumem = NULL;
}

/* ---- results ---- */

static void keep(void *context, const struct npumem_answer *answer)
{
	*(const struct npumem_tensor **)context = answer->tensors->list[1];
	npumem_keep(answer->tensors->list[1]);
}

TEST(a_result_is_kept)
{
	struct npumem_allocation allocations[2] = {NPUMEM_ALLOCATION_INIT, NPUMEM_ALLOCATION_INIT};
	const struct npumem_tensor *tensor, *both[2];
	struct told told = {.times = 0};
	peer_allocated(&peer, 1, 2);
	ck_assert_int_eq(npumem_alloc_async(peer.npumem, allocations, 2, keep, &tensor, NULL, NULL), 0);
	ck_assert_int_eq(npumem_flush(peer.npumem, NULL), 0);
	for (unsigned i = 2; i < 50; i++) {
		ck_assert_int_eq(fill(&told, NULL), 0);
		peer_done(&peer, i, 0);
		ck_assert_int_eq(npumem_flush(peer.npumem, NULL), 0);
	}
	ck_assert_uint_eq(tensor->handle, 101);
	npumem_release(tensor);
	/* Each of an array is a reference; what is not given back goes with the connection. */
	peer_allocated(&peer, 50, 2);
	ck_assert_int_eq(npumem_alloc(peer.npumem, allocations, 2, both, NULL), 0);
	npumem_release(both[0]);
	ck_assert_uint_eq(both[1]->handle, 101);
}

/* ---- data that arrive in pieces ---- */

static uint8_t *data_frame(uint64_t id, size_t data_bytes, size_t *n)
{
	uint8_t *data = malloc(data_bytes);
	for (size_t i = 0; i < data_bytes; i++)
		data[i] = (uint8_t)(i * 11 + id);
	Npumem__V1__Done done = {MESSAGE(done), .data = (ProtobufCBinaryData){data_bytes, data}, .macs = 42,
				 .end_ns = 99};
	Npumem__V1__Response response = {MESSAGE(response), .id = id,
					 .result_case = NPUMEM__V1__RESPONSE__RESULT_DONE, .done = &done};
	uint8_t *frame = peer_frame(&response, n);
	free(data);
	return frame;
}

/* Two answers, cut anywhere; what belongs to one array does not reach the other or what is around it. */
TEST(arrays_in_pieces)
{
	enum { BYTES = 20000, AROUND = 16 };
	uint8_t first[BYTES + AROUND], second[BYTES + AROUND];
	size_t n, n_second;
	uint8_t *frame = data_frame(1, BYTES, &n), *next = data_frame(2, BYTES, &n_second);
	frame = realloc(frame, n + n_second);
	memcpy(frame + n, next, n_second);
	n += n_second;
	for (size_t cut = 1; cut < n; cut += cut < 60 || n - cut < 40 ? 1 : 997) {
		peer_again();
		struct told told[2] = {{0}};
		memset(first, 0xaa, sizeof(first));
		memset(second, 0xaa, sizeof(second));
		ck_assert_int_eq(npumem_read_part_async(peer.npumem, 1, 0, BYTES, first, BYTES, told_callback,
							&told[0], NULL, NULL),
				 0);
		ck_assert_int_eq(npumem_read_part_async(peer.npumem, 1, 0, BYTES, second, BYTES, told_callback,
							&told[1], NULL, NULL),
				 0);
		peer_write(&peer, frame, cut);
		ck_assert_int_eq(npumem_process(peer.npumem, NULL), 0);
		peer_write(&peer, frame + cut, n - cut);
		ck_assert_int_eq(npumem_flush(peer.npumem, NULL), 0);
		bool same = true;
		for (size_t i = 0; i < BYTES; i++)
			same &= first[i] == (uint8_t)(i * 11 + 1) && second[i] == (uint8_t)(i * 11 + 2);
		for (size_t i = BYTES; i < BYTES + AROUND; i++)
			same &= first[i] == 0xaa && second[i] == 0xaa;
		ck_assert(same);
		ck_assert(told[0].macs == 42 && told[1].macs == 42);
	}
	free(frame);
	free(next);
}

/* The array may go while its data arrive. */
TEST(let_go_within_its_data)
{
	enum { BYTES = 1 << 20 };
	size_t n;
	uint8_t *frame = data_frame(1, BYTES, &n);
	for (size_t cut = 1; cut < n; cut += cut < 20 ? 1 : 299993) {
		peer_again();
		struct told told = {.times = 0};
		struct npumem_request *request;
		uint8_t *to = malloc(BYTES);
		ck_assert_int_eq(npumem_read_part_async(peer.npumem, 1, 0, BYTES, to, BYTES, told_callback, &told,
							&request, NULL),
				 0);
		for (size_t at = 0; at < cut;) {
			size_t part = cut - at < 100000 ? cut - at : 100000;
			peer_write(&peer, frame + at, part);
			ck_assert_int_eq(npumem_process(peer.npumem, NULL), 0);
			at += part;
		}
		npumem_let_go(request);
		free(to);
		for (size_t at = cut; at < n;) {
			size_t part = n - at < 100000 ? n - at : 100000;
			peer_write(&peer, frame + at, part);
			ck_assert_int_eq(npumem_process(peer.npumem, NULL), 0);
			at += part;
		}
		ck_assert_int_eq(told.times, 0);
		/* The next answer is read from where that one ended. */
		peer_done(&peer, 2, 6);
		ck_assert_int_eq(fill(&told, NULL), 0);
		ck_assert_int_eq(npumem_flush(peer.npumem, NULL), 0);
		ck_assert_int_eq(told.macs, 6);
	}
	free(frame);
}

/* More data than were asked for, fewer, and twice. */
TEST(data_that_do_not_fit)
{
	enum { BYTES = 20000 };
	static uint8_t to[BYTES];
	for (int more = -1; more <= 1; more += 2) {
		peer_again();
		struct npumem_error error;
		size_t n;
		uint8_t *frame = data_frame(1, BYTES + (size_t)more, &n);
		peer_write(&peer, frame, n);
		memset(to, 0, sizeof(to));
		ck_assert_int_eq(npumem_read_part(peer.npumem, 1, 0, BYTES, to, BYTES, NULL, &error),
				 NPUMEM_INVALID);
		ck_assert_uint_eq(to[1], 0);
		peer_done(&peer, 2, 0);
		ck_assert_int_eq(npumem_fill(peer.npumem, 1, 2, NULL), 0);
		free(frame);
	}
	/* Field 7 of the Done once more: id, done { data, data }. */
	uint8_t *frame = calloc(1, BYTES + 64);
	size_t n = frame_header(2 + 4 + 4 + BYTES + 3, frame);
	const uint8_t head[] = {8, 1, 114, 0xa7, 0x9c, 1, 58, 0xa0, 0x9c, 1}, tail[] = {58, 1, 9};
	memcpy(frame + n, head, sizeof(head));
	memcpy(frame + n + sizeof(head) + BYTES, tail, sizeof(tail));
	n += sizeof(head) + BYTES + sizeof(tail);
	struct told told = {.times = 0};
	ck_assert_int_eq(
		npumem_read_part_async(peer.npumem, 1, 0, BYTES, to, BYTES, told_callback, &told, NULL, NULL), 0);
	peer_write(&peer, frame, n - 1);
	ck_assert_int_eq(npumem_process(peer.npumem, NULL), 0);
	peer_write(&peer, frame + n - 1, 1);
	ck_assert_int_eq(npumem_flush(peer.npumem, NULL), NPUMEM_UNAVAILABLE);
	ck_assert_int_eq(told.status, NPUMEM_UNAVAILABLE);
	free(frame);
}

/* Letting go of a write whose rest cannot be copied ends the connection, and never sends other bytes instead. */
TEST(no_memory_to_let_a_write_go)
{
	struct failing failing = {.fail_at = 0};
	const struct memory memory = {failing_resize, &failing};
	peer_close(&peer);
	peer = peer_open_with(&memory);
	struct npumem_request *request;
	size_t bytes = 4 << 20;
	uint8_t *data = calloc(1, bytes);
	ck_assert_int_eq(npumem_write_part_async(peer.npumem, 1, 0, data, bytes, NULL, NULL, &request, NULL), 0);
	failing.fail_at = failing.calls + 1;
	npumem_let_go(request);
	free(data);
	ck_assert_int_eq(npumem_process(peer.npumem, NULL), NPUMEM_UNAVAILABLE);
	peer_close(&peer);
	ck_assert_int_eq(failing.live, 0);
}
