/* Invariant: `secret` is in the owner's tensors from the start and in nobody's message, unless a fuzzer has
 * guessed 16 bytes, and then nothing is said of them. */
#include "tests/fuzz/scene.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "daemon/rpc/rpc.h"
#include "daemon/service/segments.h"
#include "daemon/service/service.h"
#include "proto/npumem.pb-c.h"
#include "tests/fuzz/digest.h"
#include "tests/fuzz/fuzz.h"
#include "tests/random/daemon.h"

enum { N_NPUS = 8, NPU_BYTES = 8192, SECRET_BYTES = 16, SEGMENT_BYTES = 16384, STEPS_MAX = 100000 };

struct scene {
	struct daemon *daemon;
	bool threads, allows_all, is_asking, is_open[SCENE_PEERS];
	/* Of the message that is being sent. */
	enum scene_peer sender;
	unsigned n_answers;
	int status;
	bool has_run;		       /* a list that was refused on its way, after something of it was done */
	bool has_session[SCENE_PEERS]; /* or had one, that ends */
	bool has_left[SCENE_PEERS];    /* by itself */
	struct segments_source source;
	struct scene_state state; /* all zero: none */
	uint8_t *segments;
	bool is_taken[SCENE_PEERS];
};

static const uint32_t uids[SCENE_PEERS] = {1001, 1002, 1002, 1003, 0};
/* Words for a name are as good as bytes. */
static const uint8_t secret[SECRET_BYTES] = {0x5a, 0xc3, 0x17, 0xe9, 0x88, 0x2d, 0xf4, 0x61,
					     0x9b, 0x06, 0x73, 0xde, 0x45, 0xb2, 0x0c, 0xa7};
static const char secret_name[] = "zq-owners-own-zq";

static bool has_bytes(const uint8_t *bytes, size_t n, const void *what, size_t n_what)
{
	/* By hand, as libFuzzer learns from what memmem is given. */
	for (size_t i = 0; i + n_what <= n; i++) {
		size_t same = 0;

		while (same < n_what && bytes[i + same] == ((const uint8_t *)what)[same])
			same++;
		if (same == n_what)
			return true;
	}
	return false;
}

/* Four of it, at any place of the pattern, are what no answer has by chance; a name only as a whole. */
static bool has_secret(const uint8_t *bytes, size_t n)
{
	for (unsigned i = 0; i + 8 <= SECRET_BYTES; i += 4)
		if (has_bytes(bytes, n, secret + i, 8))
			return true;
	return has_bytes(bytes, n, secret_name, sizeof(secret_name) - 1);
}

/* ---- answers ---- */

/* What one may know nothing of is not there, and not forbidden; but of a dump's bytes it is said whose they are.
 */
static void check_hidden(const Npumem__V1__Response *response)
{
	static const char *const hidden[] = {"1001:a0", "1001:a1", "a tensor of uid 1001 "};

	if (response->status != NPUMEM__V1__STATUS__PERMISSION_DENIED ||
	    !strncmp(response->message, "offsets ", 8))
		return;
	for (unsigned i = 0; i < sizeof(hidden) / sizeof(hidden[0]); i++)
		if (strstr(response->message, hidden[i]))
			fuzz_fail("what is forbidden is there: %s", response->message);
}

static void check_answer(struct scene *scene, const Npumem__V1__Response *response)
{
	if (response->base.n_unknown_fields)
		fuzz_fail("an answer with a field that is none");
	if (response->status && !response->message[0])
		fuzz_fail("a refusal without a word");
	if (response->status == NPUMEM__V1__STATUS__INTERNAL)
		fuzz_fail("%s", response->message);
	if (getenv("NPUMEM_FUZZ_VERBOSE") && !scene->is_asking)
		fprintf(stderr, "answer %d: %d %s\n", (int)response->id, (int)response->status, response->message);
	scene->status = (int)response->status;
	scene->n_answers++;
	scene->has_run =
		response->result_case == NPUMEM__V1__RESPONSE__RESULT_SUBMITTED && response->submitted->n_done;
}

static void on_answered(void *ctx, unsigned peer, const uint8_t *message, size_t bytes)
{
	struct scene *scene = ctx;
	Npumem__V1__Response *response = npumem__v1__response__unpack(NULL, bytes, message);

	if (!response)
		fuzz_fail("an answer of %zu bytes that cannot be read", bytes);
	if (!scene->allows_all && peer != SCENE_OWNER && peer != SCENE_ADMIN) {
		if (has_secret(message, bytes))
			fuzz_fail("uid %" PRIu32 " was told what is uid %" PRIu32 "'s", uids[peer],
				  uids[SCENE_OWNER]);
		check_hidden(response);
	}
	if (response->result_case != NPUMEM__V1__RESPONSE__RESULT_EVENT)
		check_answer(scene, response);
	npumem__v1__response__free_unpacked(response, NULL);
}

/* ---- shared memory ---- */

/* One each, and that again and again. */
static int take_segment(void *ctx, struct segments_memory *memory, struct npumem_error *error)
{
	struct scene *scene = ctx;

	if (scene->is_taken[scene->sender])
		return npumem_error_set(error, NPUMEM_INVALID, "no memory came with it");
	scene->is_taken[scene->sender] = true;
	*memory = (struct segments_memory){.base = scene->segments + (size_t)scene->sender * SEGMENT_BYTES,
					   .bytes = SEGMENT_BYTES,
					   .writable = scene->sender != SCENE_OTHER_AGAIN};
	return 0;
}

static void release_segment(void *ctx, const struct segments_memory *memory)
{
	struct scene *scene = ctx;

	scene->is_taken[(size_t)(memory->base - scene->segments) / SEGMENT_BYTES] = false;
}

/* ---- the beginning ---- */

static void open_peer(struct scene *scene, enum scene_peer peer)
{
	struct session *session;

	scene->has_session[peer] = !daemon_open(scene->daemon, peer, uids[peer]);
	if (!scene->has_session[peer])
		return;
	session = daemon_session(scene->daemon, peer);
	session->segments_source = &scene->source;
	scene->is_open[peer] = true;
	scene->has_left[peer] = false;
}

static void ask(struct scene *scene, enum scene_peer peer, Npumem__V1__Request *request)
{
	uint8_t message[4096];
	size_t n;

	request->id = 1;
	n = npumem__v1__request__pack(request, message);
	scene->is_asking = true;
	scene_send(scene, peer, message, n);
	scene_settle(scene);
	scene->is_asking = false;
	if (scene->status)
		fuzz_fail("a request of the scene's own is refused: %d", scene->status);
}

#define ASK(scene, peer, call, CALL, message)                                                                     \
	ask(scene, peer,                                                                                          \
	    &(Npumem__V1__Request){PROTOBUF_C_MESSAGE_INIT(&npumem__v1__request__descriptor),                     \
				   .call_case = NPUMEM__V1__REQUEST__CALL_##CALL, .call = (message)})

struct made {
	const char *name;
	enum scene_peer of;
	Npumem__V1__Dtype dtype;
	int64_t n, c, h, w, address; /* address < 0: anywhere */
	Npumem__V1__Mode mode;
	Npumem__V1__Reuse reuse;
};

static void make(struct scene *scene, const struct made *made)
{
	Npumem__V1__AllocRequest request = NPUMEM__V1__ALLOC_REQUEST__INIT;
	Npumem__V1__Allocation allocation = NPUMEM__V1__ALLOCATION__INIT, *list = &allocation;
	Npumem__V1__Spec spec = NPUMEM__V1__SPEC__INIT;
	Npumem__V1__Dims shape = NPUMEM__V1__DIMS__INIT;

	shape.n = made->n;
	shape.c = made->c;
	shape.h = made->h;
	shape.w = made->w;
	spec.shape = &shape;
	spec.dtype = made->dtype;
	spec.mode = made->mode;
	if (made->dtype == NPUMEM__V1__DTYPE__FX8 || made->dtype == NPUMEM__V1__DTYPE__FX16) {
		spec.frac_bits_given_case = NPUMEM__V1__SPEC__FRAC_BITS_GIVEN_FRAC_BITS;
		spec.frac_bits = 4;
	}
	if (made->address >= 0) {
		spec.address_given_case = NPUMEM__V1__SPEC__ADDRESS_GIVEN_ADDRESS;
		spec.address = made->address;
	}
	allocation.spec = &spec;
	allocation.name = (char *)made->name;
	allocation.reuse = made->reuse;
	request.n_tensors = 1;
	request.tensors = &list;
	ASK(scene, made->of, alloc, ALLOC, &request);
}

/* With the secret, again and again, or of another's with what counts up. */
static void fill(struct scene *scene, enum scene_peer of, const char *name, size_t n)
{
	Npumem__V1__WriteRequest request = NPUMEM__V1__WRITE_REQUEST__INIT;
	Npumem__V1__Ref ref = NPUMEM__V1__REF__INIT;
	uint8_t data[3328];

	for (size_t i = 0; i < n; i++)
		data[i] = of == SCENE_OWNER ? secret[i % SECRET_BYTES] : (uint8_t)(i * 7);
	ref.name = (char *)name;
	request.tensor = &ref;
	request.data = (ProtobufCBinaryData){n, data};
	ASK(scene, of, write, WRITE, &request);
}

static void share(struct scene *scene, const char *name)
{
	Npumem__V1__GrantRequest request = NPUMEM__V1__GRANT_REQUEST__INIT;
	Npumem__V1__Ref ref = NPUMEM__V1__REF__INIT;

	ref.name = (char *)name;
	request.tensor = &ref;
	request.uid = uids[SCENE_OTHER];
	request.access = NPUMEM__V1__ACCESS__ACCESS_READ;
	ASK(scene, SCENE_OWNER, grant, GRANT, &request);
}

static void view(struct scene *scene, const char *name, const char *base)
{
	Npumem__V1__ViewRequest request = NPUMEM__V1__VIEW_REQUEST__INIT;
	Npumem__V1__Ref ref = NPUMEM__V1__REF__INIT;
	Npumem__V1__Dims to = NPUMEM__V1__DIMS__INIT;

	ref.name = (char *)base;
	to.n = to.h = 1;
	to.c = 8;
	to.w = 16;
	request.name = (char *)name;
	request.tensor = &ref;
	request.to = &to;
	ASK(scene, SCENE_OTHER, view, VIEW, &request);
}

/* The owner's a0, a1 and one that has no name, and b4, over the empty blocks of a1, of another; the rest is b*'s.
 */
static void set(struct scene *scene)
{
	static const struct made all[] = {
		{"a1", SCENE_OWNER, NPUMEM__V1__DTYPE__FX8, 1, 5, 1, 64, 0, NPUMEM__V1__MODE__PLAIN, 0},
		{"b4", SCENE_OTHER, NPUMEM__V1__DTYPE__FX8, 1, 3, 1, 64, 5 * NPU_BYTES, NPUMEM__V1__MODE__PLAIN,
		 NPUMEM__V1__REUSE__UNCHECKED},
		{"a0", SCENE_OWNER, NPUMEM__V1__DTYPE__INT8, 1, 8, 1, 32, -1, NPUMEM__V1__MODE__PLAIN, 0},
		{"zq-owners-own-zq", SCENE_OWNER, NPUMEM__V1__DTYPE__FX8, 4, 8, 1, 104, -1,
		 NPUMEM__V1__MODE__MODE_4N, 0},
		{"", SCENE_OWNER, NPUMEM__V1__DTYPE__INT16, 1, 8, 2, 8, -1, NPUMEM__V1__MODE__PLAIN, 0},
		{"a2", SCENE_OWNER, NPUMEM__V1__DTYPE__FX8, 1, 8, 1, 32, -1, NPUMEM__V1__MODE__PLAIN, 0},
		{"b0", SCENE_OTHER, NPUMEM__V1__DTYPE__FX8, 1, 8, 1, 32, -1, NPUMEM__V1__MODE__PLAIN, 0},
		{"b1", SCENE_OTHER, NPUMEM__V1__DTYPE__FX8, 1, 8, 1, 32, -1, NPUMEM__V1__MODE__PLAIN, 0},
		{"b2", SCENE_OTHER, NPUMEM__V1__DTYPE__FX8, 4, 8, 1, 104, -1, NPUMEM__V1__MODE__MODE_4N, 0},
		{"b3", SCENE_OTHER, NPUMEM__V1__DTYPE__FP32, 1, 8, 2, 8, -1, NPUMEM__V1__MODE__PLAIN, 0},
		{"c0", SCENE_STRANGER, NPUMEM__V1__DTYPE__FX16, 1, 8, 4, 4, -1, NPUMEM__V1__MODE__PLAIN, 0},
	};

	for (unsigned i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		make(scene, &all[i]);
	fill(scene, SCENE_OWNER, "a0", 256);
	fill(scene, SCENE_OWNER, "a1", 320);
	fill(scene, SCENE_OWNER, secret_name, 3328);
	fill(scene, SCENE_OTHER, "b0", 256);
	fill(scene, SCENE_OTHER, "b2", 3328);
	fill(scene, SCENE_OTHER, "b4", 192);
	view(scene, "bv", "b0");
	share(scene, "a2");
}

static struct scene *begin(const struct daemon_options *like, const struct scene_state *state)
{
	struct scene *scene = calloc(1, sizeof(*scene));
	struct daemon_options options = *like;

	if (!scene)
		fuzz_fail("no memory");
	options.n_npus = N_NPUS;
	options.npu_bytes = NPU_BYTES;
	options.answered = on_answered;
	options.ctx = scene;
	if (state)
		scene->state = *state;
	scene->daemon = daemon_new(&options);
	scene->threads = options.threads;
	scene->segments = aligned_alloc(64, SCENE_PEERS * SEGMENT_BYTES);
	if (!scene->segments)
		fuzz_fail("no memory");
	memset(scene->segments, 0, SCENE_PEERS * SEGMENT_BYTES);
	scene->source = (struct segments_source){.take = take_segment, .release = release_segment, .ctx = scene};
	if (!scene->daemon) {
		free(scene->segments);
		free(scene);
		return NULL;
	}
	for (unsigned peer = 0; peer < SCENE_PEERS; peer++)
		open_peer(scene, (enum scene_peer)peer);
	return scene;
}

struct scene *scene_new(bool threads, const struct heap *heap)
{
	struct scene *scene = begin(&(struct daemon_options){.threads = threads, .heap = heap}, NULL);

	set(scene);
	return scene;
}

static bool go_on(void *ctx, struct rpc *rpc)
{
	const struct scene *scene = ctx;

	return scene->state.go_on(scene->state.ctx, rpc);
}

struct scene *scene_new_in(const struct scene_state *state)
{
	struct scene *scene = begin(
		&(struct daemon_options){.heap = state->heap, .memory = state->memory, .go_on = go_on}, state);

	if (scene && state->is_new)
		set(scene);
	return scene;
}

struct daemon *scene_daemon(struct scene *scene)
{
	return scene->daemon;
}

/* Nothing is under way. */
static void release_all(struct scene *scene)
{
	struct service *service = daemon_rpc(scene->daemon)->service;
	struct tensor *tensor;

	while ((tensor = device_next(service->device, NULL)))
		service_release(service, tensor);
}

void scene_clear(struct scene *scene)
{
	release_all(scene);
}

void scene_allow_all(struct scene *scene)
{
	scene->allows_all = true;
}

/* ---- what happens ---- */

static void check(struct scene *scene, const char *when)
{
	const char *wrong = daemon_check(scene->daemon);

	if (wrong)
		fuzz_fail("%s: %s", when, wrong);
}

/* Not even a refusal could be written: the connection is over. */
static void lose(struct scene *scene, enum scene_peer peer)
{
	if (scene->n_answers && !scene->threads)
		fuzz_fail("an answer, and then no memory for one");
	scene_close(scene, peer);
	scene->has_left[peer] = false;
}

static void send_alone(struct scene *scene, enum scene_peer peer, const uint8_t *message, size_t bytes)
{
	uint64_t before = scene->is_asking ? 0 : digest_of(scene->daemon);
	int status = daemon_send(scene->daemon, peer, message, bytes);

	if (!status)
		scene_settle(scene);
	if (scene->n_answers != !status)
		fuzz_fail("a message was answered %u times", scene->n_answers);
	if (!scene->is_asking && scene->status && !scene->has_run && digest_of(scene->daemon) != before)
		fuzz_fail("a request was refused with %d and changed something", scene->status);
	if (status)
		lose(scene, peer);
}

void scene_send(struct scene *scene, enum scene_peer peer, const uint8_t *message, size_t bytes)
{
	if (!scene->is_open[peer] && !scene->has_left[peer] &&
	    (!scene->has_session[peer] || daemon_is_drained(scene->daemon, peer)))
		open_peer(scene, peer);
	if (!scene->is_open[peer])
		return;
	if (has_secret(message, bytes) && peer != SCENE_OWNER)
		scene->allows_all = true;
	scene->sender = peer;
	scene->n_answers = 0;
	scene->has_run = false;
	scene->status = -1;
	if (!scene->threads)
		send_alone(scene, peer, message, bytes);
	else if (daemon_send(scene->daemon, peer, message, bytes))
		lose(scene, peer);
}

void scene_close(struct scene *scene, enum scene_peer peer)
{
	if (!scene->is_open[peer])
		return;
	scene->is_open[peer] = false;
	scene->has_left[peer] = true;
	daemon_close(scene->daemon, peer);
}

void scene_step(struct scene *scene, unsigned which, bool to_its_end)
{
	unsigned n = daemon_tasks(scene->daemon);

	if (n && to_its_end)
		daemon_done(scene->daemon, which % n);
	else if (n)
		daemon_work(scene->daemon, which % n);
}

void scene_wait(struct scene *scene, uint64_t ms)
{
	enum { NS_PER_MS = 1000000 };

	daemon_clock(scene->daemon, daemon_now_ns(scene->daemon) + ms * NS_PER_MS);
}

void scene_settle(struct scene *scene)
{
	enum { LONG_MS = 1 << 30 };

	for (unsigned i = 0; daemon_tasks(scene->daemon); i++) {
		if (i == STEPS_MAX)
			fuzz_fail("tasks that never end");
		daemon_done(scene->daemon, 0);
	}
	/* Who waits for room waits 2^32 ms at most. */
	if (!scene->threads && !scene->n_answers)
		for (unsigned i = 0; i < 5; i++)
			scene_wait(scene, LONG_MS);
}

void scene_close_all(struct scene *scene)
{
	for (unsigned peer = 0; peer < SCENE_PEERS; peer++)
		scene_close(scene, (enum scene_peer)peer);
	scene->n_answers = 0;
	scene_settle(scene);
	check(scene, "after all clients left");
}

void scene_serve(struct scene *scene)
{
	static const struct made made = {"served", SCENE_STRANGER, NPUMEM__V1__DTYPE__INT8, 1, 8, 1, 16, -1, 0, 0};
	Npumem__V1__FreeRequest request = NPUMEM__V1__FREE_REQUEST__INIT;
	Npumem__V1__ReadRequest read = NPUMEM__V1__READ_REQUEST__INIT;
	Npumem__V1__Ref ref = NPUMEM__V1__REF__INIT, *list = &ref;

	release_all(scene);
	scene->has_left[SCENE_STRANGER] = false;
	make(scene, &made);
	fill(scene, SCENE_STRANGER, made.name, 128);
	ref.name = (char *)made.name;
	read.tensor = &ref;
	ASK(scene, SCENE_STRANGER, read, READ, &read);
	request.n_tensors = 1;
	request.tensors = &list;
	ASK(scene, SCENE_STRANGER, free, FREE, &request);
	check(scene, "after more was served");
}

void scene_free(struct scene *scene)
{
	const char *wrong;

	scene->n_answers = 0;
	scene_settle(scene);
	scene_close_all(scene);
	for (unsigned peer = 0; peer < SCENE_PEERS; peer++)
		if (scene->has_session[peer] && !daemon_is_drained(scene->daemon, peer))
			fuzz_fail("a client that left is never let go");
	if (!scene->state.memory)
		release_all(scene);
	wrong = daemon_free(scene->daemon);
	if (wrong)
		fuzz_fail("at the end: %s", wrong);
	free(scene->segments);
	free(scene);
}
