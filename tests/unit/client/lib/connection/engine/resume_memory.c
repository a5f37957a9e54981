/* A session with all that a new daemon has to be told, where every allocation fails, one at a time and all from
 * one on: each callback is called once, and nothing is left. */
#include <dirent.h>

#include "client/lib/calls/calls.h"
#include "tests/unit/client/lib/door.h"
#include "tests/unit/client/lib/failing.h"

enum { WRITTEN = 9000, ASKED = 6, CUTS = 3, SWEEP_MOST = 400 };

struct sweep {
	struct door door;
	uint8_t in[1 << 16];
	size_t n_in;
	unsigned n_requests, n_cuts; /* of this connection; in all */
};

static unsigned open_fds(void)
{
	DIR *directory = opendir("/proc/self/fd");
	unsigned n = 0;
	while (readdir(directory))
		n++;
	closedir(directory);
	return n;
}

static void answer(struct sweep *sweep, const Npumem__V1__Request *request)
{
	static uint8_t data[WRITTEN];
	Npumem__V1__Shared shared = NPUMEM__V1__SHARED__INIT;
	Npumem__V1__Subscribed subscribed = NPUMEM__V1__SUBSCRIBED__INIT;
	Npumem__V1__Done done = NPUMEM__V1__DONE__INIT;
	Npumem__V1__Response response = {MESSAGE(response), .id = request->id,
					 .result_case = NPUMEM__V1__RESPONSE__RESULT_DONE, .done = &done};
	if (request->call_case == NPUMEM__V1__REQUEST__CALL_READ) {
		done.data = (ProtobufCBinaryData){WRITTEN, data};
	} else if (request->call_case == NPUMEM__V1__REQUEST__CALL_SHARE) {
		shared.segment = request->share->segment ? request->share->segment : 50;
		shared.bytes = 4096;
		response.result_case = NPUMEM__V1__RESPONSE__RESULT_SHARED;
		response.shared = &shared;
	} else if (request->call_case == NPUMEM__V1__REQUEST__CALL_SUBSCRIBE) {
		response.result_case = NPUMEM__V1__RESPONSE__RESULT_SUBSCRIBED;
		response.subscribed = &subscribed;
	}
	if (request->call_case == NPUMEM__V1__REQUEST__CALL_RESUME)
		door_resumed(&sweep->door, request->id, DOOR_TOKEN, 30);
	else
		peer_answer(&sweep->door.peer, &response);
}

/* The daemon's turn: takes a connection, answers what has come, and hangs up now and then. */
static void daemon_turn(struct sweep *sweep)
{
	struct peer *peer = &sweep->door.peer;
	size_t header, bytes;
	if (peer->fd < 0) {
		peer->fd = accept(sweep->door.listener, NULL, NULL);
		sweep->n_in = sweep->n_requests = 0;
	}
	ssize_t n = peer->fd < 0 ? 0
				 : recv(peer->fd, sweep->in + sweep->n_in, sizeof(sweep->in) - sweep->n_in,
					MSG_DONTWAIT);
	sweep->n_in += n > 0 ? (size_t)n : 0;
	while (peer->fd >= 0 &&
	       frame_parse(sweep->in, sweep->n_in, FRAME_BYTES_MAX, &header, &bytes) == FRAME_COMPLETE) {
		Npumem__V1__Request *request = npumem__v1__request__unpack(NULL, bytes, sweep->in + header);
		ck_assert_ptr_nonnull(request);
		sweep->n_in -= header + bytes;
		memmove(sweep->in, sweep->in + header + bytes, sweep->n_in);
		answer(sweep, request);
		npumem__v1__request__free_unpacked(request, NULL);
		if (++sweep->n_requests == 3 + sweep->n_cuts && sweep->n_cuts < CUTS) {
			sweep->n_cuts++;
			door_cut(&sweep->door);
		}
	}
}

static void on_event(void *context, const struct npumem_event *event)
{
	(void)context;
	(void)event;
}

/* Returns which callbacks are to come. */
static unsigned ask_all(struct npumem *npumem, struct told told[ASKED], uint8_t *data[3])
{
	static const char *const kinds[] = {"freed"};
	struct npumem_request *let_go = NULL;
	unsigned asked = 0;
	asked |= !npumem_segment_create_async(npumem, 4096, told_callback, &told[0], NULL, NULL);
	asked |= !npumem_subscribe_async(npumem, kinds, 1, on_event, NULL, told_callback, &told[1], NULL, NULL)
		 << 1;
	asked |= !npumem_write_part_async(npumem, 1, 0, data[0], WRITTEN, told_callback, &told[2], NULL, NULL)
		 << 2;
	npumem_write_part_async(npumem, 1, 0, data[1], WRITTEN, told_callback, &told[3], &let_go, NULL);
	asked |= !npumem_read_part_async(npumem, 1, 0, WRITTEN, data[2], WRITTEN, told_callback, &told[4], NULL,
					 NULL)
		 << 4;
	asked |= !npumem_fill_async(npumem, 1, 2, told_callback, &told[5], NULL, NULL) << 5;
	npumem_let_go(let_go);
	return asked;
}

/* Returns whether the memory had failed by the end. */
static bool run(unsigned fail_at, bool for_good, unsigned *n_over)
{
	struct failing failing = {.fail_at = fail_at, .for_good = for_good};
	const struct memory memory = {failing_resize, &failing};
	struct told told[ASKED] = {{0}};
	unsigned before = open_fds(), asked = 0;
	uint8_t *data[3];
	static struct sweep sweep;
	sweep = (struct sweep){.n_cuts = 0};
	for (unsigned i = 0; i < 3; i++)
		data[i] = calloc(1, WRITTEN);
	door_open_with(&sweep.door, &memory, 0);
	sweep.door.peer.may_break = true;
	struct npumem *npumem = sweep.door.peer.npumem;
	if (npumem)
		asked = ask_all(npumem, told, data);
	free(data[1]);
	bool is_over = !npumem;
	for (unsigned i = 0; !is_over && (npumem_in_flight(npumem) || sweep.n_cuts < CUTS); i++) {
		ck_assert_uint_lt(i, 5000);
		skip_ms(sweep.door.peer.fd < 0);
		is_over = npumem_process(npumem, NULL) != 0;
		daemon_turn(&sweep);
		/* So that it is cut as often as planned. */
		if (!is_over && sweep.n_cuts < CUTS && !npumem_in_flight(npumem))
			npumem_fill_async(npumem, 1, 2, NULL, NULL, NULL, NULL);
	}
	*n_over += is_over;
	npumem_close(npumem);
	sweep.door.peer.npumem = NULL;
	for (unsigned i = 0; i < ASKED; i++) {
		ck_assert_int_eq(told[i].times, asked >> i & 1);
		ck_assert(!told[i].times || !told[i].status || fail_at);
	}
	ck_assert_int_eq(failing.live, 0);
	door_close(&sweep.door);
	ck_assert_uint_eq(open_fds(), before);
	free(data[0]);
	free(data[2]);
	return fail_at && failing.calls >= fail_at;
}

TEST(every_allocation_fails)
{
	for (unsigned for_good = 0; for_good < 2; for_good++) {
		unsigned n_over = 0, i = 1;
		run(0, false, &n_over);
		ck_assert_uint_eq(n_over, 0);
		while (run(i, for_good, &n_over))
			ck_assert_uint_lt(i++, SWEEP_MOST);
		ck_assert_uint_gt(i, 30);
		/* Not each of them is the end of the connection. */
		ck_assert_uint_lt(n_over, i);
	}
}
