/* A session that outlives its connection: what the next daemon is told, and what the caller is not. */
#include <sys/stat.h>

#include "client/lib/connection/engine/engine.h"
#include "tests/unit/client/lib/one_door.h"

static void fill(int64_t value, struct told *told)
{
	ck_assert_int_eq(npumem_fill_async(door.peer.npumem, 1, value, told_callback, told, NULL, NULL), 0);
}

/* The next request is a fill of `value`. Returns its id. */
static uint64_t expect_fill(int64_t value, bool again, uint64_t below)
{
	Npumem__V1__Request *request = door_request(&door);
	uint64_t id = request->id;
	ck_assert_int_eq(request->call_case, NPUMEM__V1__REQUEST__CALL_FILL);
	ck_assert_int_eq(request->fill->integer, value);
	ck_assert_int_eq(request->again, again);
	ck_assert_uint_eq(request->answered_below, below);
	npumem__v1__request__free_unpacked(request, NULL);
	return id;
}

static void expect_done(uint64_t id, struct told *told)
{
	ck_assert_int_eq(told->times, 0);
	peer_done(&door.peer, id, (int64_t)id);
	ck_assert_int_eq(door_process(&door), 0);
	ck_assert_int_eq(told->times, 1);
	ck_assert_int_eq(told->status, 0);
	ck_assert_int_eq(told->macs, (int64_t)id);
}

static void expect_over(struct told *told, const char *why)
{
	struct npumem_error error = {0};
	for (int waited = 0; !npumem_process(door.peer.npumem, &error); waited++) {
		struct pollfd pollfd = {.fd = npumem_fd(door.peer.npumem), .events = POLLIN};
		ck_assert_int_lt(waited, DOOR_PATIENCE_MS);
		if (!poll(&pollfd, 1, 0))
			skip_ms(npumem_timeout(door.peer.npumem));
	}
	ck_assert_int_eq(error.status, NPUMEM_UNAVAILABLE);
	ck_assert_msg(strstr(error.message, why) != NULL, "\"%s\" does not say \"%s\"", error.message, why);
	ck_assert_int_eq(told->times, 1);
	ck_assert_int_eq(told->status, NPUMEM_UNAVAILABLE);
	ck_assert_str_eq(told->message, error.message);
	ck_assert_int_eq(npumem_stat(door.peer.npumem, NULL, NULL), NPUMEM_UNAVAILABLE);
}

TEST(what_was_not_answered_is_sent_again)
{
	struct told told[4] = {{0}};
	/* The first request is that for the token. */
	for (unsigned i = 0; i < 3; i++)
		fill(i, &told[i]);
	for (unsigned i = 0; i < 3; i++)
		ck_assert_uint_eq(expect_fill(i, false, 2), i + 2);
	expect_done(3, &told[1]);
	door_cut(&door);
	ck_assert_int_eq(door_process(&door), 0);
	ck_assert_uint_eq(npumem_in_flight(door.peer.npumem), 2);
	/* Sent while there is nobody: not a second time. */
	fill(3, &told[3]);
	door_let_in(&door);
	ck_assert_uint_eq(expect_fill(0, true, 2), 2);
	ck_assert_uint_eq(expect_fill(2, true, 2), 4);
	ck_assert_uint_eq(expect_fill(3, false, 2), 5);
	expect_done(5, &told[3]);
	expect_done(2, &told[0]);
	expect_done(4, &told[2]);
	fill(4, &told[0]);
	told[0].times = 0;
	/* 6 was the one with the token. */
	expect_done(expect_fill(4, false, 7), &told[0]);
}

/* Reads of a few bytes and of many, which go where they belong as they come. */
enum { FEW = 20, MANY = 20000 };

static uint8_t *done_frame(uint64_t id, uint8_t *data, size_t bytes, size_t *n)
{
	Npumem__V1__Done done = NPUMEM__V1__DONE__INIT;
	done.data = (ProtobufCBinaryData){bytes, data};
	Npumem__V1__Response response = {MESSAGE(response), .id = id,
					 .result_case = NPUMEM__V1__RESPONSE__RESULT_DONE, .done = &done};
	return peer_frame(&response, n);
}

/* Answers to `ids`, of which the connection gets the first `cut` bytes. Returns whether that was not all. */
static bool answer_reads(const uint64_t ids[2], size_t cut)
{
	static uint8_t data[MANY];
	size_t n[2], at = 0;
	for (unsigned i = 0; i < MANY; i++)
		data[i] = (uint8_t)(i * 7);
	for (unsigned i = 0; i < 2; i++) {
		uint8_t *frame = done_frame(ids[i], data, i ? MANY : FEW, &n[i]);
		size_t left = cut - at < n[i] ? cut - at : n[i];
		peer_write(&door.peer, frame, left);
		at += left;
		free(frame);
	}
	return cut < n[0] + n[1];
}

TEST(a_cut_at_every_byte_of_the_answers)
{
	static uint8_t few[FEW], many[MANY];
	bool was_cut = true;
	/* Of many bytes in a row not each, but those where something begins. */
	for (size_t cut = 0; was_cut; cut += cut > 80 ? 997 : 1) {
		struct told told[2] = {{0}};
		uint64_t ids[2];
		memset(few, 0, FEW);
		memset(many, 0, MANY);
		npumem_read_part_async(door.peer.npumem, 1, 0, FEW, few, FEW, told_callback, &told[0], NULL, NULL);
		npumem_read_part_async(door.peer.npumem, 1, 0, MANY, many, MANY, told_callback, &told[1], NULL,
				       NULL);
		for (unsigned times = 0; times < 3; times++) {
			for (unsigned i = 0; i < 2; i++) {
				if (told[i].times)
					continue;
				Npumem__V1__Request *request = door_request(&door);
				ck_assert_int_eq(request->call_case, NPUMEM__V1__REQUEST__CALL_READ);
				ck_assert_int_eq(request->read->count, i ? MANY : FEW);
				ck_assert_int_eq(request->again, times > 0);
				ids[i] = request->id;
				npumem__v1__request__free_unpacked(request, NULL);
			}
			if (times == 2 || told[0].times)
				break;
			/* Twice at the same place. */
			was_cut = answer_reads(ids, cut);
			if (!was_cut)
				break;
			door_process(&door);
			door_cut(&door);
			ck_assert_int_eq(door_process(&door), 0);
			door_let_in(&door);
		}
		if (was_cut && told[0].times) {
			size_t n;
			uint8_t *frame, data[MANY];
			for (unsigned i = 0; i < MANY; i++)
				data[i] = (uint8_t)(i * 7);
			frame = done_frame(ids[1], data, MANY, &n);
			peer_write(&door.peer, frame, n);
			free(frame);
		} else if (was_cut) {
			answer_reads(ids, SIZE_MAX);
		}
		for (unsigned i = 0; i < 3; i++)
			ck_assert_int_eq(door_process(&door), 0);
		for (unsigned i = 0; i < 2; i++)
			ck_assert(told[i].times == 1 && told[i].status == 0);
		for (unsigned i = 0; i < MANY; i++)
			ck_assert(many[i] == (uint8_t)(i * 7) && (i >= FEW || few[i] == many[i]));
	}
}

TEST(a_cut_at_every_byte_of_being_let_in)
{
	size_t n = 100;
	Npumem__V1__Resumed resumed = {
		MESSAGE(resumed),
		.token = (ProtobufCBinaryData){strlen(DOOR_TOKEN), (uint8_t *)(uintptr_t)DOOR_TOKEN},
		.resume_seconds = 30};
	Npumem__V1__Response response = {MESSAGE(response), .result_case = NPUMEM__V1__RESPONSE__RESULT_RESUMED,
					 .resumed = &resumed};
	for (size_t cut = 0; cut < n; cut++) {
		struct told told = {.times = 0};
		fill(5, &told);
		ck_assert_int_eq(door_process(&door), 0);
		door_cut(&door);
		door_accept(&door);
		/* Or before it has even asked. */
		response.id = cut ? door_knock(&door, true) : 0;
		uint8_t *frame = peer_frame(&response, &n);
		peer_write(&door.peer, frame, cut);
		free(frame);
		ck_assert_int_eq(door_process(&door), 0);
		door_cut(&door);
		door_let_in(&door);
		/* While it sends again. */
		door_cut(&door);
		door_let_in(&door);
		Npumem__V1__Request *request = door_request(&door);
		ck_assert(request->again && request->fill && request->fill->integer == 5);
		expect_done(request->id, &told);
		npumem__v1__request__free_unpacked(request, NULL);
	}
}

/* ---- who does not go on ---- */

static void not_let_in(int status, const char *why, const char *told_why)
{
	struct told told = {.times = 0};
	fill(5, &told);
	door_cut(&door);
	door_accept(&door);
	peer_refuse(&door.peer, door_knock(&door, true), status, why);
	expect_over(&told, told_why);
}

TEST(a_daemon_without_this_session)
{
	not_let_in(NPUMEM_NOT_FOUND, "no session waits for this token",
		   "the daemon was restarted without this session");
}

TEST(a_daemon_that_does_not_know_how)
{
	not_let_in(NPUMEM_UNIMPLEMENTED, "unknown call 57", "does not go on with this session: unknown call 57");
}

/* A daemon that keeps nothing, that knows nothing of it, and a caller who does not want it: as if there were none.
 */
TEST(no_token)
{
	for (unsigned how = 0; how < 5; how++) {
		struct told told[2] = {{0}};
		door_again(how == 3 ? NPUMEM_NO_RESUME : 0);
		fill(5, &told[0]);
		uint64_t asked = how == 3 ? 0 : door_knock(&door, false);
		expect_fill(5, false, how == 3 ? 0 : 2);
		if (how == 0)
			door_resumed(&door, asked, "", 0);
		else if (how == 1)
			peer_refuse(&door.peer, asked, NPUMEM_UNIMPLEMENTED, "unknown call 57");
		else if (how == 2)
			door_resumed(&door, asked, DOOR_TOKEN, 0);
		ck_assert_int_eq(door_process(&door), 0);
		if (how < 4) {
			fill(6, &told[1]);
			expect_fill(6, false, 0);
			expect_done(how == 3 ? 2 : 3, &told[1]);
		}
		door_cut(&door);
		expect_over(&told[0], "the daemon closed the connection");
	}
}

TEST(nobody_comes)
{
	for (unsigned how = 0; how < 4; how++) {
		struct told told = {.times = 0};
		door_again(how % 2 ? 300 : 40);
		door_resumed(&door, door_knock(&door, false), DOOR_TOKEN, 30);
		ck_assert_int_eq(door_process(&door), 0);
		fill(5, &told);
		if (how == 0) { /* nobody is there */
			close(door.listener);
			door.listener = -1;
		}
		/* 1: takes the connection, and never answers; 2: leaves it in the queue */
		door_cut(&door);
		if (how == 1)
			door_accept(&door);
		for (unsigned i = 0; how == 3 && i < 3; i++) { /* hangs up each time */
			door_accept(&door);
			door_cut(&door);
		}
		expect_over(&told, "no daemon at /tmp/npumem-door-");
	}
}

TEST(somebody_else)
{
	static const char *const whys[] = {"is not a message", "cannot be read", "before it went on",
					   "makes no sense", "makes no sense"};
	for (unsigned how = 0; how < 5; how++) {
		struct told told = {.times = 0};
		door_end(&door);
		door_open(&door);
		fill(5, &told);
		uint64_t id = expect_fill(5, false, 2);
		door_cut(&door);
		door_accept(&door);
		uint64_t knock = door_knock(&door, true);
		if (how == 0)
			peer_write(&door.peer, "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", 11);
		else if (how == 1)
			peer_write(&door.peer, "\x03\xff\xff\xff", 4);
		else if (how == 2)
			peer_done(&door.peer, id, 3);
		else if (how == 3)
			peer_done(&door.peer, knock, 3);
		else
			door_resumed(&door, knock, "", 30);
		expect_over(&told, whys[how]);
	}
}

/* What another uid puts in the daemon's place is told nothing. Root may listen for anybody, so as root another is
 * asked to listen, and else the daemon is said to have been another's. */
TEST(who_listens_is_another)
{
	struct told told = {.times = 0};
	door_again(300);
	door_resumed(&door, door_knock(&door, false), DOOR_TOKEN, 30);
	ck_assert_int_eq(door_process(&door), 0);
	fill(5, &told);
	close(door.listener);
	door_cut(&door);
	unlink(door.name.sun_path);
	if (geteuid()) {
		door.peer.npumem->resume.peer = geteuid() + 1;
		door_listen(&door);
	} else {
		ck_assert_int_eq(chmod(door.directory, 0777), 0);
		ck_assert_int_eq(seteuid(1001), 0);
		door_listen(&door);
		ck_assert_int_eq(seteuid(0), 0);
	}
	ck_assert_int_eq(door_process(&door), 0);
	door_accept(&door);
	char byte;
	ck_assert_int_eq((int)recv(door.peer.fd, &byte, 1, 0), 0);
	expect_over(&told, "who listens there is not uid");
}

/* Each daemon that gets this request ends. */
TEST(a_request_that_no_daemon_survives)
{
	struct told told = {.times = 0};
	unsigned times = 0;
	fill(5, &told);
	for (; !told.times && times < 100; times++) {
		expect_fill(5, times > 0, 2);
		door_cut(&door);
		if (!door_process(&door))
			door_let_in(&door);
	}
	ck_assert_uint_lt(times, 100);
	expect_over(&told, "the daemon closed the connection");
}

/* ---- a daemon that goes down in an orderly way ---- */

TEST(what_is_refused_on_the_way_down)
{
	struct told told[2] = {{0}};
	fill(1, &told[0]);
	fill(2, &told[1]);
	ck_assert_int_eq(door_process(&door), 0);
	peer_goes_down(&door.peer, 2);
	ck_assert_int_eq(door_process(&door), 0);
	expect_done(3, &told[1]);
	ck_assert_int_eq(told[0].times, 0);
	peer_refuse(&door.peer, 0, NPUMEM_UNAVAILABLE, "the daemon is going down");
	door_cut(&door);
	door_accept(&door);
	/* The one that it was with is not yet gone. */
	peer_refuse(&door.peer, door_knock(&door, true), NPUMEM_UNAVAILABLE, "it still ends");
	ck_assert_int_eq(door_process(&door), 0);
	door_cut(&door);
	door_let_in(&door);
	ck_assert_uint_eq(expect_fill(1, true, 2), 2);
	expect_done(2, &told[0]);
}

TEST(a_daemon_that_says_it_ends_and_does_not)
{
	struct told told = {.times = 0};
	door_again(40);
	door_resumed(&door, door_knock(&door, false), DOOR_TOKEN, 30);
	fill(1, &told);
	ck_assert_int_eq(door_process(&door), 0);
	peer_goes_down(&door.peer, 2);
	expect_over(&told, "is going down, and does not end");
}

/* It is an answer like any other, at once, and the connection goes on. */
TEST(what_is_unavailable_from_a_daemon_that_stays)
{
	struct told told[2] = {{0}};
	fill(1, &told[0]);
	fill(2, &told[1]);
	ck_assert_int_eq(door_process(&door), 0);
	peer_refuse(&door.peer, 2, NPUMEM_UNAVAILABLE, "another one has it");
	ck_assert_int_eq(door_process(&door), 0);
	ck_assert_int_eq(told[0].times, 1);
	ck_assert_int_eq(told[0].status, NPUMEM_UNAVAILABLE);
	ck_assert_str_eq(told[0].message, "another one has it");
	ck_assert_uint_eq(expect_fill(1, false, 2), 2);
	ck_assert_uint_eq(expect_fill(2, false, 2), 3);
	expect_done(3, &told[1]);
	ck_assert_int_eq(npumem_timeout(door.peer.npumem), -1);
}

/* What the daemon ends the connection for would be so again. */
TEST(an_end_that_is_meant)
{
	struct told told = {.times = 0};
	fill(1, &told);
	ck_assert_int_eq(door_process(&door), 0);
	peer_refuse(&door.peer, 0, NPUMEM_RESOURCE_EXHAUSTED, "answers are not read");
	door_cut(&door);
	expect_over(&told, "answers are not read");
}
