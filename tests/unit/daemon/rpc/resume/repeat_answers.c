/* When answers must be with the client before the next thing is done. */
#include "daemon/rpc/resume/repeat.h"

#include "daemon/rpc/rpc.h"
#include "daemon/service/kept/stale.h"
#include "tests/unit/daemon/rpc/talk.h"
#include "tests/unit/daemon/service/lasting.h"

struct scene {
	struct lasting kept;
	struct session session, other;
	struct rpc_peer peer;
	struct tensor *x, *y, *z;
	unsigned n_sent;
	bool is_full;
};

static bool send(void *ctx)
{
	struct scene *scene = ctx;
	scene->n_sent++;
	return !scene->is_full;
}

static void scene_init(struct scene *scene)
{
	memset(scene, 0, sizeof(*scene));
	lasting_init(&scene->kept);
	lasting_begin(&scene->kept, &scene->session);
	lasting_begin(&scene->kept, &scene->other);
	scene->peer = (struct rpc_peer){.session = &scene->session, .send = send, .ctx = scene};
	scene->session.peer = &scene->peer;
	repeat_note_answer(&scene->peer, 8);
	scene->x = world_tensor(&scene->kept.world, &scene->session, "x");
	scene->y = world_tensor(&scene->kept.world, &scene->session, "y");
	scene->z = world_tensor(&scene->kept.world, &scene->session, "z");
}

FIXTURE_OBJECT(struct scene, scene, scene_init(&scene), lasting_deinit(&scene.kept))

/* How often answers were sent before it. */
static unsigned sent_before(struct session *session, enum op_kind kind, struct tensor *tensor,
			    struct tensor *source)
{
	unsigned n = scene.n_sent;
	repeat_before_op(session, &(struct op){.kind = kind, .tensor = tensor, .source = source, .count = -1},
			 false);
	return scene.n_sent - n;
}

static unsigned sent_before_change(struct tensor *tensor)
{
	unsigned n = scene.n_sent;
	repeat_before_change(&scene.session, tensor);
	return scene.n_sent - n;
}

TEST(before_what_was_read_is_written)
{
	struct session *own = &scene.session, *other = &scene.other;
	ck_assert_uint_eq(sent_before(own, OP_FILL, scene.x, NULL), 0);
	ck_assert_uint_eq(sent_before(own, OP_FILL, scene.x, NULL), 0);
	ck_assert_uint_eq(sent_before(own, OP_READ, scene.x, NULL), 0);
	ck_assert_uint_eq(sent_before(own, OP_FILL, scene.y, NULL), 0);
	ck_assert_uint_eq(sent_before(own, OP_FILL, scene.x, NULL), 1);
	ck_assert_uint_eq(sent_before(own, OP_FILL, scene.x, NULL), 0);
	/* A copy reads what it takes. */
	ck_assert_uint_eq(sent_before(own, OP_COPY, scene.x, scene.y), 0);
	ck_assert_uint_eq(sent_before(own, OP_COPY, scene.y, scene.x), 1);
	/* What another one reads is that one's matter; what both have read stays both's. */
	ck_assert_uint_eq(sent_before(own, OP_FILL, scene.x, NULL), 1);
	ck_assert_uint_eq(sent_before(other, OP_READ, scene.x, NULL), 0);
	ck_assert_uint_eq(sent_before(own, OP_FILL, scene.x, NULL), 0);
	ck_assert_uint_eq(sent_before(own, OP_READ, scene.x, NULL), 0);
	ck_assert_uint_eq(sent_before(other, OP_FILL, scene.x, NULL), 0); /* it has no connection */
	ck_assert_uint_eq(sent_before(own, OP_FILL, scene.x, NULL), 1);
	/* Also where the other one was the last to read it. */
	ck_assert_uint_eq(sent_before(own, OP_READ, scene.z, NULL), 0);
	ck_assert_uint_eq(sent_before(other, OP_READ, scene.z, NULL), 0);
	ck_assert_uint_eq(sent_before(own, OP_FILL, scene.z, NULL), 1);
}

/* What it has found there must not be put there again. */
TEST(before_what_is_done_once)
{
	struct op op;
	op = (struct op){.kind = OP_FILL, .tensor = scene.x, .count = -1};
	repeat_before_op(&scene.session, &op, true);
	ck_assert_uint_eq(scene.n_sent, 0);
	ck_assert_uint_eq(sent_before(&scene.session, OP_FILL, scene.x, NULL), 0);
	repeat_before_op(&scene.session, &op, true);
	ck_assert_uint_eq(scene.n_sent, 1);
	op.tensor = scene.y;
	repeat_before_op(&scene.session, &op, true);
	ck_assert_uint_eq(scene.n_sent, 1);
}

TEST(before_what_was_used_ends)
{
	ck_assert_uint_eq(sent_before_change(scene.x), 0);
	sent_before(&scene.other, OP_FILL, scene.x, NULL);
	ck_assert_uint_eq(sent_before_change(scene.x), 0);
	sent_before(&scene.session, OP_FILL, scene.x, NULL);
	ck_assert_uint_eq(sent_before_change(scene.x), 1);
	ck_assert_uint_eq(sent_before_change(scene.y), 0);
}

/* What was answered and not sent, and nothing that is still under way. */
TEST(a_client_that_does_not_read_cannot_ask_again)
{
	const struct session *found = scene.kept.found;
	scene.is_full = true;
	repeat_note_answer(&scene.peer, 3);
	repeat_note_answer(&scene.peer, 9);
	sent_before(&scene.session, OP_READ, scene.x, NULL);
	ck_assert_uint_eq(sent_before(&scene.session, OP_FILL, scene.x, NULL), 1);
	ck_assert_uint_eq(scene.peer.unsent.n, 0);
	lasting_restart(&scene.kept);
	for (uint64_t id = 0; id < 12; id++) {
		ck_assert_int_eq(stale_has(&found[0], id), id == 3 || id == 8 || id == 9);
		ck_assert(!stale_has(&found[1], id));
	}
}

TEST(what_has_gone_is_none_of_it)
{
	scene.is_full = true;
	repeat_sent(&scene.peer);
	sent_before(&scene.session, OP_READ, scene.x, NULL);
	ck_assert_uint_eq(sent_before(&scene.session, OP_FILL, scene.x, NULL), 0);
	sent_before(&scene.session, OP_READ, scene.x, NULL);
	repeat_note_answer(&scene.peer, 10);
	repeat_sent(&scene.peer);
	ck_assert_uint_eq(sent_before(&scene.session, OP_FILL, scene.x, NULL), 0);
	ck_assert(!stale_has(&scene.session, 8) && !stale_has(&scene.session, 10));
}

/* Of what lingers only the client's word counts. */
TEST(what_is_sent_to_another_host)
{
	scene.session.lingers = true;
	repeat_note_answer(&scene.peer, 9);
	repeat_sent(&scene.peer);
	repeat_answered(&scene.peer, 9);
	sent_before(&scene.session, OP_READ, scene.x, NULL);
	ck_assert_uint_eq(sent_before(&scene.session, OP_FILL, scene.x, NULL), 0);
	ck_assert(stale_has(&scene.session, 9));
	ck_assert(!stale_has(&scene.session, 7) && !stale_has(&scene.session, 10));
}

TEST(without_a_token_nothing_is_sent_again)
{
	session_forget(&scene.session);
	sent_before(&scene.session, OP_READ, scene.x, NULL);
	ck_assert_uint_eq(sent_before(&scene.session, OP_FILL, scene.x, NULL), 0);
	ck_assert_uint_eq(sent_before_change(scene.x), 0);
}

static void deliver(void *ctx, struct buffer *reply)
{
	(void)ctx;
	reply->used = 0;
}

static void receive(struct rpc *rpc, Npumem__V1__Request *request)
{
	uint8_t message[256];
	ck_assert_uint_le(npumem__v1__request__get_packed_size(request), sizeof(message));
	ck_assert_int_eq(rpc_receive(rpc, &scene.peer, message, npumem__v1__request__pack(request, message)), 0);
}

/* With the requests of a client. */
TEST(what_a_read_answered_is_sent_before_a_fill)
{
	Npumem__V1__Ref ref = talk_ref(0, "x");
	Npumem__V1__FillRequest fill = {MESSAGE(fill_request), .tensor = &ref,
					.value_case = NPUMEM__V1__FILL_REQUEST__VALUE_INTEGER};
	Npumem__V1__ReadRequest read = {MESSAGE(read_request), .tensor = &ref, .count = 1};
	Npumem__V1__Request request = {MESSAGE(request), .id = 20, .call_case = NPUMEM__V1__REQUEST__CALL_FILL,
				       .fill = &fill};
	struct rpc *rpc = malloc(sizeof(*rpc));
	rpc_init(rpc, &scene.kept.world.service, &scene.kept.world.heap);
	scene.peer.deliver = deliver;
	receive(rpc, &request);
	repeat_sent(&scene.peer);
	request.id++;
	request.call_case = NPUMEM__V1__REQUEST__CALL_READ;
	request.read = &read;
	receive(rpc, &request);
	ck_assert_uint_eq(scene.n_sent, 0);
	request.id++;
	request.call_case = NPUMEM__V1__REQUEST__CALL_FILL;
	request.fill = &fill;
	receive(rpc, &request);
	ck_assert_uint_eq(scene.n_sent, 1);
	rpc_deinit(rpc);
	free(rpc);
}
