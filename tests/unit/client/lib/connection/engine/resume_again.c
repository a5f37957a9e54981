/* What a daemon that goes on with a session is told first, and what of the caller's stays its own meanwhile. */
#define _GNU_SOURCE /* SCM_RIGHTS' macros */
#include <sys/epoll.h>
#include <sys/stat.h>

#include "client/lib/connection/clock.h"
#include "tests/unit/client/lib/one_door.h"

/* A frame is cut no further than its first byte, with which an fd comes. */
static int take_fd(const struct peer *peer)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control;
	char byte;
	struct iovec iovec = {&byte, 1};
	struct msghdr message = {.msg_iov = &iovec, .msg_iovlen = 1, .msg_control = control.bytes};
	int fd = -1;
	message.msg_controllen = sizeof(control.bytes);
	ck_assert_int_eq((int)recvmsg(peer->fd, &message, MSG_PEEK), 1);
	struct cmsghdr *header = CMSG_FIRSTHDR(&message);
	if (header)
		memcpy(&fd, CMSG_DATA(header), sizeof(int));
	return fd;
}

/* The next request is a share of the memory at `base`, as segment `id` (0: a new one). Returns its id. */
static uint64_t expect_share(uint64_t segment, bool again, const void *base)
{
	struct pollfd pollfd = {.fd = door.peer.fd, .events = POLLIN};
	struct stat stat;
	char bytes[8];
	door_process(&door);
	ck_assert_int_eq(poll(&pollfd, 1, DOOR_PATIENCE_MS), 1);
	int fd = take_fd(&door.peer);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(fstat(fd, &stat), 0);
	ck_assert_int_eq((int)stat.st_size, 4096);
	ck_assert(!base || (pread(fd, bytes, 8, 0) == 8 && !memcmp(bytes, base, 8)));
	close(fd);
	Npumem__V1__Request *request = peer_request(&door.peer);
	uint64_t id = request->id;
	ck_assert_int_eq(request->call_case, NPUMEM__V1__REQUEST__CALL_SHARE);
	ck_assert_uint_eq(request->share->segment, segment);
	ck_assert_int_eq(request->again, again);
	npumem__v1__request__free_unpacked(request, NULL);
	return id;
}

static void answer_share(uint64_t id, uint64_t segment)
{
	Npumem__V1__Shared shared = {MESSAGE(shared), .segment = segment, .bytes = 4096};
	PEER_ANSWER(&door.peer, id, shared, SHARED, &shared);
}

/* Answers the next request, which is of this kind, with an empty result. */
static void expect_and_answer(Npumem__V1__Request__CallCase call, bool again)
{
	Npumem__V1__Response response = NPUMEM__V1__RESPONSE__INIT;
	Npumem__V1__Subscribed subscribed = NPUMEM__V1__SUBSCRIBED__INIT;
	Npumem__V1__Unshared unshared = NPUMEM__V1__UNSHARED__INIT;
	Npumem__V1__Request *request = door_request(&door);
	ck_assert_int_eq(request->call_case, call);
	ck_assert_int_eq(request->again, again);
	response.id = request->id;
	if (call == NPUMEM__V1__REQUEST__CALL_UNSHARE) {
		response.result_case = NPUMEM__V1__RESPONSE__RESULT_UNSHARED;
		response.unshared = &unshared;
	} else {
		ck_assert_uint_eq(request->subscribe->n_kinds, 2);
		ck_assert_str_eq(request->subscribe->kinds[1], "freed");
		response.result_case = NPUMEM__V1__RESPONSE__RESULT_SUBSCRIBED;
		response.subscribed = &subscribed;
	}
	npumem__v1__request__free_unpacked(request, NULL);
	peer_answer(&door.peer, &response);
	ck_assert_int_eq(door_process(&door), 0);
}

static void keep_segment(void *context, const struct npumem_answer *answer)
{
	ck_assert_int_eq(answer->status, 0);
	npumem_keep(answer->segment);
	*(const struct npumem_segment **)context = answer->segment;
}

TEST(segments_keep_their_ids)
{
	const struct npumem_segment *segments[3] = {NULL};
	for (unsigned i = 0; i < 3; i++)
		ck_assert_int_eq(npumem_segment_create_async(door.peer.npumem, 4096, keep_segment, &segments[i],
							     NULL, NULL),
				 0);
	/* The third is not answered: it is asked for as it was. */
	for (unsigned i = 0; i < 2; i++)
		answer_share(expect_share(0, false, NULL), 50 + i);
	expect_share(0, false, NULL);
	ck_assert_int_eq(door_process(&door), 0);
	ck_assert(segments[0] && segments[1] && !segments[2]);
	memcpy(segments[0]->base, "segment0", 8);
	memcpy(segments[1]->base, "segment1", 8);
	/* The first one is no longer the caller's, but what was asked of it before may need it still. */
	npumem_segment_close_async(door.peer.npumem, segments[0], NULL, NULL, NULL, NULL);
	ck_assert_int_eq(door_process(&door), 0);
	door_cut(&door);
	door_let_in(&door);
	answer_share(expect_share(50, false, "segment0"), 50);
	answer_share(expect_share(51, false, "segment1"), 51);
	answer_share(expect_share(0, true, NULL), 52);
	expect_and_answer(NPUMEM__V1__REQUEST__CALL_UNSHARE, true);
	ck_assert_ptr_nonnull(segments[2]);
	ck_assert_uint_eq(segments[2]->id, 52);
	ck_assert_uint_eq(npumem_in_flight(door.peer.npumem), 0);
	door_cut(&door);
	door_let_in(&door);
	uint64_t first = expect_share(52, false, NULL);
	expect_share(51, false, "segment1");
	/* One that the daemon does not take back is lost to the caller. */
	peer_refuse(&door.peer, first, NPUMEM_RESOURCE_EXHAUSTED, "too much memory");
	struct npumem_error error;
	ck_assert_int_eq(npumem_process(door.peer.npumem, &error), NPUMEM_UNAVAILABLE);
	ck_assert_ptr_nonnull(strstr(error.message, "not taken back what the session had: too much memory"));
}

static void count_event(void *context, const struct npumem_event *event)
{
	unsigned *count = context;
	ck_assert_str_eq(event->kind, "freed");
	++*count;
}

static void send_event(void)
{
	Npumem__V1__Event event = NPUMEM__V1__EVENT__INIT;
	event.kind = (char *)(uintptr_t) "freed";
	Npumem__V1__Response response = {MESSAGE(response), .result_case = NPUMEM__V1__RESPONSE__RESULT_EVENT,
					 .event = &event};
	peer_answer(&door.peer, &response);
	ck_assert_int_eq(door_process(&door), 0);
}

TEST(events_go_on)
{
	static const char *const kinds[] = {"allocated", "freed"};
	struct told told = {.times = 0};
	unsigned n_events = 0;
	npumem_subscribe_async(door.peer.npumem, kinds, 2, count_event, &n_events, told_callback, &told, NULL,
			       NULL);
	ck_assert_int_eq(door_process(&door), 0);
	door_cut(&door);
	door_let_in(&door);
	expect_and_answer(NPUMEM__V1__REQUEST__CALL_SUBSCRIBE, true);
	ck_assert_int_eq(told.times, 1);
	for (unsigned i = 1; i < 4; i++) {
		door_cut(&door);
		door_let_in(&door);
		expect_and_answer(NPUMEM__V1__REQUEST__CALL_SUBSCRIBE, false);
		send_event();
		ck_assert_uint_eq(n_events, i);
	}
	ck_assert_int_eq(told.times, 1);
}

/* ---- what a write was lent ---- */

enum { WRITTEN = 9000 };

static void expect_write(uint8_t byte, bool again)
{
	Npumem__V1__Request *request = door_request(&door);
	ck_assert_int_eq(request->call_case, NPUMEM__V1__REQUEST__CALL_WRITE);
	ck_assert_int_eq(request->again, again);
	ck_assert_uint_eq(request->write->data.len, WRITTEN);
	for (unsigned i = 0; i < WRITTEN; i++)
		ck_assert_uint_eq(request->write->data.data[i], byte);
	npumem__v1__request__free_unpacked(request, NULL);
}

TEST(writes)
{
	struct told told[2] = {{0}};
	struct npumem_request *request;
	uint8_t *data = malloc(WRITTEN), *other = malloc(WRITTEN);
	memset(data, 1, WRITTEN);
	memset(other, 2, WRITTEN);
	npumem_write_part_async(door.peer.npumem, 1, 0, data, WRITTEN, told_callback, &told[0], &request, NULL);
	npumem_write_part_async(door.peer.npumem, 1, 0, other, WRITTEN, told_callback, &told[1], NULL, NULL);
	expect_write(1, false);
	door_cut(&door);
	ck_assert_int_eq(door_process(&door), 0);
	/* Of what was let go nothing is looked at any more; and it is done all the same. */
	npumem_let_go(request);
	memset(data, 9, WRITTEN);
	free(data);
	door_let_in(&door);
	expect_write(1, true);
	expect_write(2, true);
	door_cut(&door);
	door_let_in(&door);
	ck_assert_int_eq(door_process(&door), 0);
	/* Answered before it has been sent. */
	peer_done(&door.peer, 2, 1);
	ck_assert_int_eq(door_process(&door), 0);
	peer_done(&door.peer, 3, 1);
	ck_assert_int_eq(door_process(&door), 0);
	ck_assert(told[0].times == 0 && told[1].times == 1);
	free(other);
}

/* More than a socket takes at once. */
TEST(a_cut_in_the_middle_of_a_write)
{
	size_t bytes = 3 << 20;
	struct npumem_tensor tensor = {.handle = 1};
	uint8_t *data = malloc(bytes);
	struct told told = {.times = 0};
	memset(data, 0x5a, bytes);
	tensor.place = (struct npumem_place){
		.dtype = NPUMEM_INT8, .shape = {1, 1, 1, (int64_t)bytes}, .last_w = (int64_t)bytes};
	npumem_write_async(door.peer.npumem, &tensor, data, bytes, told_callback, &told, NULL, NULL);
	for (unsigned i = 0; i < 3; i++) {
		ck_assert_int_eq(door_process(&door), 0);
		door_cut(&door);
		door_let_in(&door);
	}
	npumem_set_timeout(door.peer.npumem, 0);
	size_t n = 0, header = 0, message = 0, at = 0;
	uint8_t *got = malloc(bytes + 1000);
	while (at < bytes) {
		ck_assert_int_eq(door_process(&door), 0);
		ssize_t k = recv(door.peer.fd, got + n, bytes + 1000 - n, MSG_DONTWAIT);
		n += k > 0 ? (size_t)k : 0;
		while (frame_parse(got, n, FRAME_BYTES_MAX, &header, &message) == FRAME_COMPLETE) {
			Npumem__V1__Request *request = npumem__v1__request__unpack(NULL, message, got + header);
			ck_assert(request->again && request->write->first == (int64_t)at);
			const uint8_t *chunk = request->write->data.data;
			ck_assert(chunk[0] == 0x5a && !memcmp(chunk, chunk + 1, request->write->data.len - 1));
			at += request->write->data.len;
			peer_done(&door.peer, request->id, 1);
			npumem__v1__request__free_unpacked(request, NULL);
			n -= header + message;
			memmove(got, got + header + message, n);
		}
	}
	ck_assert_int_eq(door_process(&door), 0);
	ck_assert(told.times == 1 && told.status == 0);
	free(got);
	free(data);
}

/* ---- the caller's own time ---- */

TEST(a_deadline_while_nobody_is_there)
{
	struct told told = {.times = 0};
	npumem_set_timeout(door.peer.npumem, 30);
	npumem_fill_async(door.peer.npumem, 1, 2, told_callback, &told, NULL, NULL);
	ck_assert_int_eq(door_process(&door), 0);
	door_cut(&door);
	ck_assert_int_eq(door_process(&door), 0);
	close(door.listener);
	/* A call that waits, too. */
	ck_assert_int_eq(npumem_fill(door.peer.npumem, 1, 3, NULL), NPUMEM_DEADLINE_EXCEEDED);
	ck_assert_int_eq(told.status, NPUMEM_DEADLINE_EXCEEDED);
	npumem_set_timeout(door.peer.npumem, 0);
	door_listen(&door);
	door_let_in(&door);
	/* Both were sent or were to be; then each is taken back, in the order that it was. */
	static const Npumem__V1__Request__CallCase calls[] = {
		NPUMEM__V1__REQUEST__CALL_FILL, NPUMEM__V1__REQUEST__CALL_FILL, NPUMEM__V1__REQUEST__CALL_CANCEL,
		NPUMEM__V1__REQUEST__CALL_CANCEL};
	for (unsigned i = 0; i < 4; i++) {
		Npumem__V1__Request *request = door_request(&door);
		ck_assert_int_eq(request->call_case, calls[i]);
		ck_assert_int_eq(request->again, i == 0);
		npumem__v1__request__free_unpacked(request, NULL);
	}
}

static unsigned wait_in(int set, int ms)
{
	struct epoll_event event;
	return epoll_wait(set, &event, 1, ms) == 1;
}

/* One that was told of the fd once, and never again. */
TEST(in_an_event_loop)
{
	struct epoll_event event = {.events = EPOLLIN | EPOLLOUT};
	struct told told[2] = {{0}};
	int set = epoll_create1(EPOLL_CLOEXEC), fd = npumem_fd(door.peer.npumem);
	ck_assert_int_eq(epoll_ctl(set, EPOLL_CTL_ADD, fd, &event), 0);
	ck_assert(!wait_in(set, 0));
	npumem_fill_async(door.peer.npumem, 1, 2, told_callback, &told[0], NULL, NULL);
	ck_assert(npumem_wants_write(door.peer.npumem) && wait_in(set, 0));
	ck_assert_int_eq(door_process(&door), 0);
	ck_assert(!npumem_wants_write(door.peer.npumem) && !wait_in(set, 0));
	door_cut(&door);
	ck_assert(wait_in(set, 0));
	ck_assert_int_eq(door_process(&door), 0);
	/* Nobody is there: it sleeps until it is time to look, also where it does not ask when that is. */
	close(door.listener);
	unsigned turns = 0;
	for (int64_t until = clock_now() + 60000000; clock_now() < until; turns++) {
		int ms = npumem_timeout(door.peer.npumem);
		ck_assert(ms >= 0 && ms <= 50);
		ck_assert(wait_in(set, DOOR_PATIENCE_MS));
		ck_assert_int_eq(door_process(&door), 0);
	}
	ck_assert(turns >= 1 && turns < 20);
	door_listen(&door);
	npumem_fill_async(door.peer.npumem, 1, 3, told_callback, &told[1], NULL, NULL);
	ck_assert(!npumem_wants_write(door.peer.npumem));
	door_accept(&door);
	ck_assert(npumem_timeout(door.peer.npumem) > 1000 && !wait_in(set, 0));
	door_resumed(&door, door_knock(&door, true), DOOR_TOKEN, 30);
	ck_assert(wait_in(set, 0));
	ck_assert_int_eq(door_process(&door), 0);
	ck_assert_int_eq(npumem_timeout(door.peer.npumem), -1);
	peer_done(&door.peer, 2, 1);
	peer_done(&door.peer, 3, 1);
	ck_assert(wait_in(set, 0));
	ck_assert_int_eq(door_process(&door), 0);
	ck_assert(told[0].times == 1 && told[1].times == 1);
	ck_assert_int_eq(npumem_fd(door.peer.npumem), fd);
	close(set);
}

/* Who ends a daemon is told so when it ends. */
TEST(the_end_that_one_asked_for)
{
	Npumem__V1__ShuttingDown shutting_down = NPUMEM__V1__SHUTTING_DOWN__INIT;
	struct told told = {.times = 0};
	npumem_shutdown_async(door.peer.npumem, told_callback, &told, NULL, NULL);
	PEER_ANSWER(&door.peer, 2, shutting_down, SHUTTING_DOWN, &shutting_down);
	ck_assert_int_eq(door_process(&door), 0);
	ck_assert_int_eq(told.times, 1);
	door_cut(&door);
	ck_assert_int_eq(door_process(&door), NPUMEM_UNAVAILABLE);
}
