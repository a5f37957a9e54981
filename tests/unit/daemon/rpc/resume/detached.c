/* Sessions that stay when their connection ends: whose, for how long, and who has them back. */
#include "daemon/rpc/resume/detached.h"
#include "daemon/rpc/rpc.h"

#include <inttypes.h>
#include <time.h>

#include "daemon/service/kept/persist.h"
#include "daemon/service/observed/recorder.h"
#include "tests/support/loop_turns.h"
#include "tests/unit/daemon/service/lasting.h"

enum { SECONDS = 30, LATER = 7 };

static const uint64_t NS_PER_SECOND = 1000000000;
static uint64_t clock_ns;

struct end {
	struct session session;
	struct rpc_peer peer;
	unsigned n_drained;
};

struct scene {
	struct lasting kept;
	struct rpc *rpc;
	struct end ends[4];
};

static uint64_t now_ns(void)
{
	return clock_ns;
}

static void drained(void *ctx)
{
	struct end *end = ctx;
	end->n_drained++;
	session_deinit(&end->session);
}

static void scene_init(struct scene *scene)
{
	clock_ns = 1000 * NS_PER_SECOND;
	memset(scene, 0, sizeof(*scene));
	lasting_init(&scene->kept);
	scene->kept.world.service.persist.resume_seconds = SECONDS;
	scene->rpc = malloc(sizeof(*scene->rpc));
	rpc_init(scene->rpc, &scene->kept.world.service, &scene->kept.world.heap);
	scene->rpc->now_ns = now_ns;
	scene->rpc->keeps_sessions = true;
}

static void scene_deinit(struct scene *scene)
{
	rpc_deinit(scene->rpc);
	free(scene->rpc);
	lasting_deinit(&scene->kept);
}

FIXTURE_OBJECT(struct scene, scene, scene_init(&scene), scene_deinit(&scene))

/* A connection whose session is fresh. */
static struct end *connect_as(unsigned i, uint32_t uid)
{
	struct end *end = &scene.ends[i];
	memset(end, 0, sizeof(*end));
	ck_assert_int_eq(session_init(&end->session, &scene.kept.world.service, uid, 1, NULL), 0);
	end->peer = (struct rpc_peer){.session = &end->session, .drained = drained, .ctx = end};
	end->session.peer = &end->peer;
	return end;
}

/* One that has a token and the unnamed tensor that is returned, and whose connection has ended; *token has the
 * token. */
static struct tensor *leave_behind(uint8_t *token)
{
	struct end *end = connect_as(0, 1001);
	ck_assert_int_eq(persist_session_begin(&end->session, false, &scene.kept.world.error), 0);
	memcpy(token, end->session.token, PERSIST_TOKEN_BYTES);
	struct tensor *tensor = world_tensor(&scene.kept.world, &end->session, "");
	rpc_peer_close(scene.rpc, &end->peer);
	ck_assert_uint_eq(end->n_drained, 1);
	ck_assert_ptr_nonnull(scene.rpc->detached);
	return tensor;
}

static int return_by(struct end *end, const uint8_t *token, size_t bytes)
{
	npumem_error_clear(&scene.kept.world.error);
	return detached_return(scene.rpc, &end->session, token, bytes, &scene.kept.world.error);
}

TEST(only_who_has_a_token_is_waited_for)
{
	struct end *end = connect_as(0, 1001);
	world_tensor(&scene.kept.world, &end->session, "");
	rpc_peer_close(scene.rpc, &end->peer);
	ck_assert_uint_eq(end->n_drained, 1);
	ck_assert_ptr_null(scene.rpc->detached);
	ck_assert_ptr_null(scene.kept.world.service.sessions);
	ck_assert_int_eq(world_n_tensors(&scene.kept.world), 0);
}

/* While the daemon goes on, a connection's end is its session's, but for one that lingers. */
/* The connection's session ends, and the recording is of the session that waits for the client. */
TEST(a_recording_goes_on_with_its_session)
{
	struct service *service = &scene.kept.world.service;
	struct end *end = connect_as(0, 500);
	ck_assert_int_eq(persist_session_begin(&end->session, true, &scene.kept.world.error), 0);
	recorder_begin(&service->recorder, &end->session);
	rpc_peer_close(scene.rpc, &end->peer);
	ck_assert_uint_eq(end->n_drained, 1);
	ck_assert_ptr_nonnull(scene.rpc->detached);
	ck_assert_ptr_eq(service->recorder.owner, service->sessions);
}

TEST(only_who_lingers_is_waited_for_by_a_daemon_that_stays)
{
	scene.rpc->keeps_sessions = false;
	for (unsigned i = 0; i < 2; i++) {
		struct end *end = connect_as(i, 1001);
		bool lingers = i == 1;
		ck_assert_int_eq(persist_session_begin(&end->session, lingers, &scene.kept.world.error), 0);
		rpc_peer_close(scene.rpc, &end->peer);
		ck_assert_uint_eq(end->n_drained, 1);
		ck_assert_int_eq(scene.rpc->detached != NULL, lingers);
	}
}

/* While its tensors are freed, which may take long. */
TEST(what_is_ending_does_not_come_back)
{
	uint8_t token[PERSIST_TOKEN_BYTES];
	struct end *end = connect_as(0, 1001);
	scene.rpc->keeps_sessions = false;
	ck_assert_int_eq(persist_session_begin(&end->session, false, &scene.kept.world.error), 0);
	memcpy(token, end->session.token, sizeof(token));
	world_tensor(&scene.kept.world, &end->session, "");
	loop_turns_begin(scene.rpc);
	rpc_peer_close(scene.rpc, &end->peer);
	loop_turns_one(scene.rpc);
	ck_assert_uint_eq(end->n_drained, 0);
	ck_assert_int_eq(return_by(connect_as(1, 1001), token, sizeof(token)), NPUMEM_NOT_FOUND);
	rpc_peer_close(scene.rpc, &scene.ends[1].peer);
	loop_turns_end(scene.rpc);
	ck_assert_uint_eq(end->n_drained, 1);
}

TEST(of_a_uid_not_more_linger_than_may_be_connected)
{
	enum { MOST = 2 };
	scene.rpc->keeps_sessions = false;
	ck_assert_int_eq(limits_set_own(&scene.kept.world.service.limits, 1001, LIMITS_SESSIONS, MOST), 0);
	for (unsigned i = 0; i <= MOST + 1; i++) {
		struct end *end = connect_as(i, i > MOST ? 1002 : 1001);
		ck_assert_int_eq(persist_session_begin(&end->session, true, &scene.kept.world.error), 0);
		world_tensor(&scene.kept.world, &end->session, "");
		rpc_peer_close(scene.rpc, &end->peer);
		ck_assert_uint_eq(end->n_drained, 1);
		/* The one too many has ended, and its tensor with it; another uid has its own room. */
		ck_assert_int_eq(world_n_tensors(&scene.kept.world), i < MOST ? i + 1 : i);
	}
}

TEST(it_ends_in_its_time_and_not_before)
{
	uint8_t token[PERSIST_TOKEN_BYTES];
	leave_behind(token);
	ck_assert_uint_eq(detached_due(scene.rpc), clock_ns + SECONDS * NS_PER_SECOND);
	clock_ns += SECONDS * NS_PER_SECOND - 1;
	rpc_tick(scene.rpc);
	ck_assert_ptr_nonnull(scene.rpc->detached);
	ck_assert_int_eq(world_n_tensors(&scene.kept.world), 1);
	clock_ns++;
	rpc_tick(scene.rpc);
	ck_assert_ptr_null(scene.rpc->detached);
	ck_assert_uint_eq(detached_due(scene.rpc), UINT64_MAX);
	ck_assert_int_eq(world_n_tensors(&scene.kept.world), 0);
	ck_assert_int_eq(return_by(connect_as(1, 1001), token, sizeof(token)), NPUMEM_NOT_FOUND);
	rpc_peer_close(scene.rpc, &scene.ends[1].peer);
}

TEST(what_came_back_is_waited_for_no_more)
{
	uint8_t token[PERSIST_TOKEN_BYTES];
	struct tensor *tensor = leave_behind(token);
	clock_ns += LATER * NS_PER_SECOND;
	struct end *end = connect_as(1, 1001);
	ck_assert_int_eq(return_by(end, token, sizeof(token)), 0);
	ck_assert_ptr_eq(scene.kept.world.service.sessions, &end->session);
	ck_assert_ptr_null(end->session.next);
	ck_assert_ptr_null(scene.rpc->detached);
	ck_assert_uint_eq(detached_due(scene.rpc), UINT64_MAX);
	clock_ns += 2 * SECONDS * NS_PER_SECOND;
	rpc_tick(scene.rpc);
	ck_assert_ptr_eq(device_find(scene.kept.world.device, tensor->handle), tensor);
	ck_assert(end->session.has_token);
	/* Nor does another one get it. */
	ck_assert_int_eq(return_by(connect_as(2, 1001), token, sizeof(token)), NPUMEM_UNAVAILABLE);
	rpc_peer_close(scene.rpc, &scene.ends[2].peer);
}

TEST(only_the_whole_token_of_the_same_uid_is_good)
{
	uint8_t token[PERSIST_TOKEN_BYTES + 1] = {0};
	leave_behind(token);
	struct end *end = connect_as(1, 1002);
	ck_assert_int_eq(return_by(end, token, PERSIST_TOKEN_BYTES), NPUMEM_NOT_FOUND);
	rpc_peer_close(scene.rpc, &end->peer);
	end = connect_as(2, 1001);
	ck_assert_int_eq(return_by(end, token, PERSIST_TOKEN_BYTES - 1), NPUMEM_NOT_FOUND);
	ck_assert_int_eq(return_by(end, token, PERSIST_TOKEN_BYTES + 1), NPUMEM_NOT_FOUND);
	for (unsigned i = 0; i < PERSIST_TOKEN_BYTES; i++) {
		token[i] ^= 0x80;
		ck_assert_int_eq(return_by(end, token, PERSIST_TOKEN_BYTES), NPUMEM_NOT_FOUND);
		token[i] ^= 0x80;
	}
	ck_assert_ptr_nonnull(scene.rpc->detached);
	ck_assert(session_is_fresh(&end->session));
	ck_assert_int_eq(return_by(end, token, PERSIST_TOKEN_BYTES), 0);
}

enum { MANY = 16000, TRIES = 200 };

static uint64_t cpu_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * NS_PER_SECOND + (uint64_t)now.tv_nsec;
}

/* Tokens that are all different. */
static int spread(void *to, size_t bytes)
{
	static uint32_t state;
	for (size_t i = 0; i < bytes; i++) {
		state = state * 1664525 + 1013904223;
		((uint8_t *)to)[i] = (uint8_t)(state >> 24);
	}
	return 0;
}

static uint64_t ns_of_wrong_tokens(struct end *end, uint8_t *token)
{
	uint64_t began_ns = cpu_ns();
	for (unsigned i = 0; i < TRIES; i++) {
		token[i % PERSIST_TOKEN_BYTES] ^= 1;
		ck_assert_int_eq(return_by(end, token, PERSIST_TOKEN_BYTES), NPUMEM_NOT_FOUND);
		token[i % PERSIST_TOKEN_BYTES] ^= 1;
	}
	return cpu_ns() - began_ns;
}

/* Each try would walk all sessions otherwise: any client may send wrong tokens, as many as it likes. */
TEST(a_lookup_does_not_depend_on_how_many_sessions_there_are)
{
	uint8_t token[PERSIST_TOKEN_BYTES];
	struct session *many = calloc(MANY, sizeof(*many));
	scene.kept.world.service.persist.random = spread;
	leave_behind(token);
	struct end *end = connect_as(1, 1001);
	uint64_t few_ns = ns_of_wrong_tokens(end, token);
	for (unsigned i = 0; i < MANY; i++) {
		ck_assert_int_eq(session_init(&many[i], &scene.kept.world.service, 2000 + i % 100, 1, NULL), 0);
		ck_assert_int_eq(persist_session_begin(&many[i], false, &scene.kept.world.error), 0);
	}
	uint64_t many_ns = ns_of_wrong_tokens(end, token);
	ck_assert_msg(many_ns < 20 * few_ns, "%" PRIu64 " ns, and with many sessions %" PRIu64, few_ns, many_ns);
	ck_assert_int_eq(return_by(end, token, PERSIST_TOKEN_BYTES), 0);
	for (unsigned i = 0; i < MANY; i++) {
		ck_assert_ptr_eq(
			persist_session_find(&scene.kept.world.service.persist, many[i].uid, many[i].token),
			&many[i]);
		session_deinit(&many[i]);
	}
	free(many);
	rpc_peer_close(scene.rpc, &end->peer);
}
