/* Anything in any order: requests of several kinds, cancelled, let go and late, against a peer that reads and
 * writes a few bytes at a time and answers in random order, and (with a session that outlives its connection)
 * hangs up at any time. Whatever happens, each callback that is to be called is called once, arrays that were read
 * are right, what was written arrives as it was, and memory that was given back is not touched (the sanitizers'
 * part). */
#include <stdlib.h>

#include "tests/unit/client/lib/door.h"
#include "tests/unit/client/lib/failing.h"

enum { OPEN_MOST = 40, READ_BYTES = 30000, WRITE_BYTES = 9000, ROOM = 4 << 20, CUTS_LEAST = 12 };

struct one {
	struct world *world;
	struct npumem_request *request; /* NULL: free */
	uint8_t *data;
	bool is_read, is_over;
	unsigned times;
};

struct world {
	struct door door; /* its peer alone where nobody hangs up */
	bool may_cut, has_token;
	uint64_t last_id; /* of this connection */
	uint32_t state;
	struct one ones[OPEN_MOST];
	unsigned answered, dropped, wrong, n_cuts;
	/* The peer's side: bytes that came, requests that wait, bytes to go. */
	uint8_t *in, *out;
	size_t n_in, n_out;
	Npumem__V1__Request *waiting[4 * OPEN_MOST];
	unsigned n_waiting;
};

static uint32_t random_next(struct world *world)
{
	world->state ^= world->state << 13;
	world->state ^= world->state >> 17;
	return world->state ^= world->state << 5;
}

static void give_back(struct one *one)
{
	/* The sanitizers see whoever still looks at it. */
	free(one->data);
	*one = (struct one){.world = one->world};
}

static struct one *pick(struct world *world, bool is_used)
{
	for (unsigned i = 0, at = random_next(world); i < OPEN_MOST; i++) {
		struct one *one = &world->ones[(at + i) % OPEN_MOST];
		if ((one->request != NULL) == is_used)
			return one;
	}
	return NULL;
}

static void on_answer(void *context, const struct npumem_answer *answer)
{
	struct one *one = context;
	struct world *world = one->world;
	world->answered++;
	if (++one->times > 1 ||
	    (answer->status && answer->status != NPUMEM_CANCELLED && answer->status != NPUMEM_DEADLINE_EXCEEDED))
		world->wrong++;
	for (unsigned i = 0; one->is_read && !answer->status && i < READ_BYTES; i++)
		world->wrong += one->data[i] != (uint8_t)(i * 3);
	give_back(one);
	struct one *other = random_next(world) % 8 ? NULL : pick(world, true);
	if (other) {
		npumem_let_go(other->request);
		world->dropped++;
		give_back(other);
	}
}

static void send_one(struct world *world, struct npumem *npumem)
{
	struct one *one = pick(world, false);
	int status;
	if (!one)
		return;
	switch (random_next(world) % 3) {
	case 0:
		status = npumem_fill_async(npumem, 1, 2, on_answer, one, &one->request, NULL);
		break;
	case 1:
		one->is_read = true;
		one->data = malloc(READ_BYTES);
		status = npumem_read_part_async(npumem, 1, 0, READ_BYTES, one->data, READ_BYTES, on_answer, one,
						&one->request, NULL);
		break;
	default:
		one->data = malloc(WRITE_BYTES);
		memset(one->data, 0x5a, WRITE_BYTES);
		status = npumem_write_part_async(npumem, 1, 0, one->data, WRITE_BYTES, on_answer, one,
						 &one->request, NULL);
	}
	ck_assert_int_eq(status, 0);
}

/* ---- the peer ---- */

static void peer_answers(struct world *world)
{
	unsigned at = random_next(world) % world->n_waiting;
	Npumem__V1__Request *request = world->waiting[at];
	Npumem__V1__Done done = NPUMEM__V1__DONE__INIT;
	Npumem__V1__Cancelled cancelled = NPUMEM__V1__CANCELLED__INIT;
	static uint8_t data[READ_BYTES];
	if (world->n_out > ROOM - 2 * READ_BYTES)
		return;
	world->waiting[at] = world->waiting[--world->n_waiting];
	Npumem__V1__Response response = {MESSAGE(response), .id = request->id,
					 .result_case = NPUMEM__V1__RESPONSE__RESULT_DONE, .done = &done};
	if (request->call_case == NPUMEM__V1__REQUEST__CALL_CANCEL) {
		response.result_case = NPUMEM__V1__RESPONSE__RESULT_CANCELLED;
		response.cancelled = &cancelled;
	} else if (random_next(world) % 8 == 0) {
		response.result_case = NPUMEM__V1__RESPONSE__RESULT__NOT_SET;
		response.status = NPUMEM__V1__STATUS__CANCELLED;
	} else if (request->call_case == NPUMEM__V1__REQUEST__CALL_READ) {
		for (unsigned i = 0; i < READ_BYTES; i++)
			data[i] = (uint8_t)(i * 3);
		done.data = (ProtobufCBinaryData){READ_BYTES, data};
	}
	size_t n;
	uint8_t *frame = peer_frame(&response, &n);
	memcpy(world->out + world->n_out, frame, n);
	world->n_out += n;
	free(frame);
	npumem__v1__request__free_unpacked(request, NULL);
}

/* The first of each connection, and answered before all others. */
static void take_token(struct world *world, Npumem__V1__Request *request)
{
	ck_assert_uint_eq(request->resume->token.len != 0, world->has_token);
	ck_assert_uint_eq(world->n_waiting + world->n_out, 0);
	door_resumed(&world->door, request->id, DOOR_TOKEN, 30);
	world->has_token = true;
	npumem__v1__request__free_unpacked(request, NULL);
}

static void peer_takes(struct world *world)
{
	size_t header, bytes;
	while (world->n_waiting < 4 * OPEN_MOST &&
	       frame_parse(world->in, world->n_in, FRAME_BYTES_MAX, &header, &bytes) == FRAME_COMPLETE) {
		Npumem__V1__Request *request = npumem__v1__request__unpack(NULL, bytes, world->in + header);
		ck_assert_ptr_nonnull(request);
		world->n_in -= header + bytes;
		if (request->call_case == NPUMEM__V1__REQUEST__CALL_RESUME) {
			memmove(world->in, world->in + header + bytes, world->n_in);
			take_token(world, request);
			continue;
		}
		/* In the order sent, also again. */
		ck_assert_uint_gt(request->id, world->last_id);
		world->last_id = request->id;
		if (request->call_case == NPUMEM__V1__REQUEST__CALL_WRITE) {
			const ProtobufCBinaryData *data = &request->write->data;
			for (size_t i = 0; i < data->len; i++)
				world->wrong += data->data[i] != 0x5a;
			world->wrong += data->len != WRITE_BYTES;
		}
		world->waiting[world->n_waiting++] = request;
		memmove(world->in, world->in + header + bytes, world->n_in);
	}
}

static void forget(struct world *world)
{
	while (world->n_waiting)
		npumem__v1__request__free_unpacked(world->waiting[--world->n_waiting], NULL);
	world->n_in = world->n_out = world->last_id = 0;
}

/* Hangs up, or takes the next connection. */
static void peer_changes(struct world *world)
{
	if (world->door.peer.fd < 0) {
		/* Looking for a daemon takes milliseconds. */
		skip_ms(2);
		world->door.peer.fd = accept(world->door.listener, NULL, NULL);
	} else if (world->may_cut && world->has_token && random_next(world) % 8 == 0) {
		door_cut(&world->door);
		forget(world);
		world->n_cuts++;
	}
}

static void peer_moves(struct world *world, size_t most)
{
	if (world->door.peer.fd < 0)
		return;
	size_t room = ROOM - world->n_in;
	ssize_t n = recv(world->door.peer.fd, world->in + world->n_in, most < room ? most : room, MSG_DONTWAIT);
	world->n_in += n > 0 ? (size_t)n : 0;
	peer_takes(world);
	n = send(world->door.peer.fd, world->out, most < world->n_out ? most : world->n_out,
		 MSG_DONTWAIT | MSG_NOSIGNAL);
	if (n > 0) {
		world->n_out -= (size_t)n;
		memmove(world->out, world->out + n, world->n_out);
	}
}

/* ---- together ---- */

static void step(struct world *world)
{
	struct npumem *npumem = world->door.peer.npumem;
	struct one *one;
	switch (random_next(world) % 13) {
	case 0:
	case 1:
	case 2:
		send_one(world, npumem);
		break;
	case 3:
		one = pick(world, true);
		if (one)
			npumem_cancel(one->request);
		break;
	case 4:
		one = random_next(world) % 4 ? NULL : pick(world, true);
		if (one) {
			npumem_let_go(one->request);
			world->dropped++;
			give_back(one);
		}
		break;
	case 5:
		npumem_set_timeout(npumem, random_next(world) % 20 ? 0 : 1);
		break;
	case 6:
	case 7:
	case 8:
		ck_assert_int_eq(npumem_process(npumem, NULL), 0);
		break;
	case 9:
		if (world->n_waiting)
			peer_answers(world);
		break;
	case 10:
		peer_changes(world);
		break;
	default:
		peer_moves(world, 1 + random_next(world) % 20000);
	}
}

TEST(anything_in_any_order)
{
	for (uint32_t seed = 1; seed <= 16; seed++) {
		struct failing failing = {.fail_at = 0};
		const struct memory memory = {failing_resize, &failing};
		static struct world world;
		world = (struct world){.state = seed * 2654435761u, .may_cut = seed % 4 > 1};
		if (world.may_cut)
			door_open_with(&world.door, &memory, 0);
		else
			world.door = (struct door){.peer = peer_open_with(&memory), .listener = -1};
		world.in = malloc(ROOM);
		world.out = malloc(ROOM);
		for (unsigned i = 0; i < OPEN_MOST; i++)
			world.ones[i].world = &world;
		for (unsigned i = 0; i < 4000; i++)
			step(&world);
		/* All the rest is answered, or (every other time) learns that the connection is closed. */
		for (unsigned i = 0; seed % 2 && (npumem_in_flight(world.door.peer.npumem) || world.n_waiting);
		     i++) {
			ck_assert_uint_lt(i, 100000);
			ck_assert_int_eq(npumem_process(world.door.peer.npumem, NULL), 0);
			if (world.door.peer.fd < 0)
				peer_changes(&world);
			peer_moves(&world, 100000);
			if (world.n_waiting)
				peer_answers(&world);
		}
		npumem_close(world.door.peer.npumem);
		world.door.peer.npumem = NULL;
		ck_assert(world.n_cuts >= CUTS_LEAST || !world.may_cut);
		ck_assert_ptr_null(pick(&world, true));
		ck_assert_uint_eq(world.wrong, 0);
		ck_assert_uint_gt(world.answered, 50);
		ck_assert_uint_gt(world.dropped, 20);
		ck_assert_int_eq(failing.live, 0);
		forget(&world);
		free(world.in);
		free(world.out);
		door_close(&world.door);
	}
}
