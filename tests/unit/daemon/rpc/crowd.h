/* Peers that send without waiting, and an executor whose threads are a list: each task does its work and ends when
 * the test says so, in any order. Over talk.h's requests and a device on which [1, 8, 1, LONG_W] takes long. */
#ifndef TESTS_CROWD_H
#define TESTS_CROWD_H

#include <errno.h>

#include "daemon/rpc/calls/perform.h"
#include "tests/unit/daemon/rpc/talk.h"

enum {
	LONG_W = 131072,
	SHORT_W = 16,
	PEERS = 3,
	TASKS_MAX = 64,
	REPLIES_MAX = 1024,
	CROWD_NPU_BYTES = 8 * LONG_W
};

struct task {
	void (*work)(void *arg);
	void (*done)(void *arg);
	void *arg;
	bool worked;
};

struct reply_of {
	int status;
	unsigned turn; /* the how manieth of all replies; 0: none yet */
	Npumem__V1__Response *response;
};

struct peer {
	struct session session;
	struct rpc_peer rpc;
	struct reply_of replies[REPLIES_MAX]; /* by id */
	unsigned n_drained;
	bool is_broken; /* a reply that could not be written */
};

struct crowd {
	struct world world;
	struct rpc *rpc;
	struct peer peers[PEERS];
	struct task tasks[TASKS_MAX];
	unsigned n_tasks, n_turns;
	uint64_t last_id, now;
	bool no_threads; /* the executor refuses */
};

/* Each test of a file that includes this one has it. */
static struct crowd crowd;

static inline void crowd_take(struct peer *peer, struct buffer *buffer)
{
	size_t at = 0, header, body;
	while (at < buffer->used) {
		Npumem__V1__Response *response;
		ck_assert_int_eq(
			frame_parse(buffer->bytes + at, buffer->used - at, FRAME_BYTES_MAX, &header, &body),
			FRAME_COMPLETE);
		response = npumem__v1__response__unpack(NULL, body, buffer->bytes + at + header);
		ck_assert_ptr_nonnull(response);
		ck_assert_uint_lt(response->id, REPLIES_MAX);
		ck_assert_msg(!peer->replies[response->id].turn, "request %d is answered twice",
			      (int)response->id);
		peer->replies[response->id] = (struct reply_of){(int)response->status, ++crowd.n_turns, response};
		at += header + body;
	}
	buffer->used = 0;
}

static inline void crowd_deliver(void *ctx, struct buffer *reply)
{
	struct peer *peer = ctx;
	ck_assert(!peer->rpc.is_closing);
	crowd_take(peer, reply);
}

static inline void crowd_drained(void *ctx)
{
	struct peer *peer = ctx;
	ck_assert_uint_eq(peer->n_drained++, 0);
	ck_assert_uint_eq(peer->rpc.call_bytes, 0);
	session_deinit(&peer->session);
}

static inline int crowd_submit(void *ctx, struct limits_user *user, bool waits, void (*work)(void *arg),
			       void (*done)(void *arg), void *arg)
{
	(void)user;
	(void)waits;
	(void)ctx;
	if (crowd.no_threads)
		return -ENOMEM;
	ck_assert_uint_lt(crowd.n_tasks, TASKS_MAX);
	crowd.tasks[crowd.n_tasks++] = (struct task){work, done, arg, false};
	return 0;
}

static inline void crowd_work(unsigned i)
{
	ck_assert_uint_lt(i, crowd.n_tasks);
	if (!crowd.tasks[i].worked)
		crowd.tasks[i].work(crowd.tasks[i].arg);
	crowd.tasks[i].worked = true;
}

static inline void crowd_finish(unsigned i)
{
	crowd_work(i);
	struct task task = crowd.tasks[i];
	crowd.n_tasks--;
	memmove(&crowd.tasks[i], &crowd.tasks[i + 1], (crowd.n_tasks - i) * sizeof(task));
	task.done(task.arg);
}

static inline void crowd_finish_all(void)
{
	while (crowd.n_tasks)
		crowd_finish(0);
	ck_assert_ptr_null(crowd.world.service.scheduler.first);
}

static inline void crowd_init(void)
{
	struct device_options options = {
		.geometry = {.n_npus = 8, .npu_bytes = CROWD_NPU_BYTES, .n_banks = 8, .eu_bytes = 128},
		.allow_unchecked = true,
	};
	memset(&crowd, 0, sizeof(crowd));
	world_init_as(&crowd.world, &options);
	crowd.rpc = malloc(sizeof(*crowd.rpc));
	rpc_init(crowd.rpc, &crowd.world.service, &crowd.world.heap);
	crowd.rpc->executor = (struct rpc_executor){.submit = crowd_submit};
	for (unsigned i = 0; i < PEERS; i++) {
		struct peer *peer = &crowd.peers[i];
		session_init(&peer->session, &crowd.world.service, 1001, 0, NULL);
		peer->rpc = (struct rpc_peer){.session = &peer->session,
					      .deliver = crowd_deliver,
					      .drained = crowd_drained,
					      .ctx = peer};
	}
}

/* Another uid's from now on; it has sent nothing yet. */
static inline void crowd_become(unsigned i, uint32_t uid)
{
	session_deinit(&crowd.peers[i].session);
	ck_assert_int_eq(session_init(&crowd.peers[i].session, &crowd.world.service, uid, 0, NULL), 0);
}

static inline void crowd_close(unsigned i)
{
	if (!crowd.peers[i].rpc.is_closing)
		rpc_peer_close(crowd.rpc, &crowd.peers[i].rpc);
}

static inline void crowd_deinit(void)
{
	crowd_finish_all();
	for (unsigned i = 0; i < PEERS; i++) {
		crowd_close(i);
		crowd_finish_all();
		ck_assert_uint_eq(crowd.peers[i].n_drained, 1);
		for (unsigned id = 0; id < REPLIES_MAX; id++)
			if (crowd.peers[i].replies[id].response)
				npumem__v1__response__free_unpacked(crowd.peers[i].replies[id].response, NULL);
	}
	rpc_deinit(crowd.rpc);
	free(crowd.rpc);
	world_deinit(&crowd.world);
}

/* A new one in its place. */
static inline void crowd_again(void)
{
	crowd_deinit();
	crowd_init();
}

FIXTURE_OBJECT(struct crowd, crowd, crowd_init(), crowd_deinit())

/* `first`: what stands before it in its message, and it takes the place of; NULL: nothing. */
static inline uint64_t crowd_send_behind(unsigned from, const Npumem__V1__Request *first,
					 Npumem__V1__Request *request)
{
	struct peer *peer = &crowd.peers[from];
	size_t bytes = first ? npumem__v1__request__get_packed_size(first) : 0;
	request->id = ++crowd.last_id;
	uint8_t *message = malloc(bytes + npumem__v1__request__get_packed_size(request));
	if (first)
		npumem__v1__request__pack(first, message);
	bytes += npumem__v1__request__pack(request, message + bytes);
	if (rpc_receive(crowd.rpc, &peer->rpc, message, bytes))
		peer->is_broken = true;
	/* Nobody may look at it any more. */
	memset(message, 0xee, bytes);
	free(message);
	return request->id;
}

static inline uint64_t crowd_send(unsigned from, Npumem__V1__Request *request)
{
	return crowd_send_behind(from, NULL, request);
}

#define CROWD_SEND(from, member, CALL, message)                                                                   \
	crowd_send(from,                                                                                          \
		   &(Npumem__V1__Request){PROTOBUF_C_MESSAGE_INIT(&npumem__v1__request__descriptor),              \
					  .call_case = NPUMEM__V1__REQUEST__CALL_##CALL, .member = (message)})

/* -1: not answered yet. */
static inline int crowd_status(unsigned from, uint64_t id)
{
	const struct reply_of *reply = &crowd.peers[from].replies[id];
	return reply->turn ? reply->status : -1;
}

static inline const Npumem__V1__Response *crowd_reply(unsigned from, uint64_t id)
{
	return crowd.peers[from].replies[id].response;
}

/* ---- requests; tensors by name, fx8 [1, 8, 1, w] ---- */

static inline uint64_t crowd_alloc(unsigned from, const char *name, int64_t w)
{
	struct talk_spec spec;
	Npumem__V1__Allocation allocation = NPUMEM__V1__ALLOCATION__INIT, *list = &allocation;
	allocation.spec = talk_spec(&spec, 8, w);
	spec.spec.dtype = NPUMEM__V1__DTYPE__FX8;
	spec.spec.frac_bits_given_case = NPUMEM__V1__SPEC__FRAC_BITS_GIVEN_FRAC_BITS;
	allocation.name = (char *)name;
	Npumem__V1__AllocRequest request = {MESSAGE(alloc_request), .n_tensors = 1, .tensors = &list};
	return CROWD_SEND(from, alloc, ALLOC, &request);
}

enum { CROWD_SLOW_W = 350000 };

/* A tensor of the first session whose bytes take long to count, as none lies beside another. */
static inline struct tensor *crowd_slow(const char *name)
{
	struct device_request request = world_request(8, CROWD_SLOW_W);
	struct tensor *tensor;
	request.spec.layout = NPUMEM_STRIDED;
	request.spec.stride = (struct npumem_dims){2 * CROWD_SLOW_W, 2 * CROWD_SLOW_W, 2 * CROWD_SLOW_W, 2};
	ck_assert_int_eq(tensors_alloc(&crowd.peers[0].session, &request, &name, 1, &tensor, &crowd.world.error),
			 0);
	/* Else nobody would look. */
	tensor->touched = true;
	return tensor;
}

static inline uint64_t crowd_fill(unsigned from, const char *name, int64_t value)
{
	Npumem__V1__Ref ref = talk_ref(0, name);
	Npumem__V1__FillRequest request = {MESSAGE(fill_request), .tensor = &ref,
					   .value_case = NPUMEM__V1__FILL_REQUEST__VALUE_INTEGER,
					   .integer = value};
	return CROWD_SEND(from, fill, FILL, &request);
}

/* Its first n elements. */
static inline uint64_t crowd_write(unsigned from, const char *name, size_t n, int value)
{
	Npumem__V1__Ref ref = talk_ref(0, name);
	Npumem__V1__WriteRequest request = {MESSAGE(write_request), .tensor = &ref,
					    .data = (ProtobufCBinaryData){n, malloc(n)}};
	memset(request.data.data, value, n);
	uint64_t id = CROWD_SEND(from, write, WRITE, &request);
	free(request.data.data);
	return id;
}

/* Its first element. */
static inline uint64_t crowd_read(unsigned from, const char *name)
{
	Npumem__V1__Ref ref = talk_ref(0, name);
	Npumem__V1__ReadRequest request = {MESSAGE(read_request), .tensor = &ref, .count = 1};
	return CROWD_SEND(from, read, READ, &request);
}

static inline int crowd_value(unsigned from, uint64_t id)
{
	const Npumem__V1__Response *response = crowd_reply(from, id);
	ck_assert_ptr_nonnull(response);
	ck_assert_msg(response->status == NPUMEM__V1__STATUS__OK, "%s", response->message);
	ck_assert_uint_eq(response->done->data.len, 1);
	return (int8_t)response->done->data.data[0];
}

static inline uint64_t crowd_copy(unsigned from, const char *to, const char *source)
{
	Npumem__V1__Ref refs[2] = {talk_ref(0, to), talk_ref(0, source)};
	Npumem__V1__CopyRequest request = {MESSAGE(copy_request), .destination = &refs[0], .source = &refs[1]};
	return CROWD_SEND(from, copy, COPY, &request);
}

static inline uint64_t crowd_relu(unsigned from, const char *in, const char *out)
{
	Npumem__V1__Ref refs[2] = {talk_ref(0, in), talk_ref(0, out)};
	Npumem__V1__Operand operands[2] = {NPUMEM__V1__OPERAND__INIT, NPUMEM__V1__OPERAND__INIT};
	Npumem__V1__Operand *list[2] = {&operands[0], &operands[1]};
	for (unsigned i = 0; i < 2; i++) {
		operands[i].role = i ? "out" : "in";
		operands[i].tensor = &refs[i];
	}
	Npumem__V1__RunRequest request = {MESSAGE(run_request), .kernel = NPUMEM__V1__KERNEL__RELU,
					  .n_operands = 2, .operands = list};
	return CROWD_SEND(from, run, RUN, &request);
}

static inline uint64_t crowd_free(unsigned from, const char *name)
{
	Npumem__V1__Ref ref = talk_ref(0, name), *list = &ref;
	Npumem__V1__FreeRequest request = {MESSAGE(free_request), .n_tensors = 1, .tensors = &list};
	return CROWD_SEND(from, free, FREE, &request);
}

static inline uint64_t crowd_open(unsigned from, const char *name)
{
	Npumem__V1__OpenRequest request = NPUMEM__V1__OPEN_REQUEST__INIT;
	Npumem__V1__Ref ref = talk_ref(0, name);
	request.tensor = &ref;
	return CROWD_SEND(from, open, OPEN, &request);
}

static inline uint64_t crowd_seal(unsigned from, const char *name)
{
	Npumem__V1__SealRequest request = NPUMEM__V1__SEAL_REQUEST__INIT;
	Npumem__V1__Ref ref = talk_ref(0, name);
	request.tensor = &ref;
	return CROWD_SEND(from, seal, SEAL, &request);
}

/* The first half of each row. */
static inline uint64_t crowd_view(unsigned from, const char *name, uint64_t base_handle, const char *base,
				  int64_t w)
{
	Npumem__V1__Dims to = NPUMEM__V1__DIMS__INIT;
	Npumem__V1__Ref ref = talk_ref(base_handle, base);
	to.n = to.h = 1;
	to.c = 8;
	to.w = w / 2;
	Npumem__V1__ViewRequest request = {MESSAGE(view_request), .name = (char *)name, .tensor = &ref, .to = &to};
	return CROWD_SEND(from, view, VIEW, &request);
}

static inline uint64_t crowd_compact(unsigned from)
{
	Npumem__V1__CompactRequest request = NPUMEM__V1__COMPACT_REQUEST__INIT;
	return CROWD_SEND(from, compact, COMPACT, &request);
}

/* An operation of a submit: kind, and the tensors' names. */
struct crowd_op {
	unsigned group;
	char kind; /* f fill, w write of one element, c copy, r read, k relu */
	const char *first, *second;
	int value;
};

static inline uint64_t crowd_list(unsigned from, const struct crowd_op *ops, unsigned n)
{
	struct item {
		Npumem__V1__Operation operation;
		Npumem__V1__FillRequest fill;
		Npumem__V1__WriteRequest write;
		Npumem__V1__CopyRequest copy;
		Npumem__V1__ReadRequest read;
		Npumem__V1__RunRequest run;
		Npumem__V1__Operand operands[2], *list[2];
		Npumem__V1__Ref refs[2];
		uint8_t payload;
	} *items = calloc(n, sizeof(*items));
	Npumem__V1__Operation **pointers = calloc(n, sizeof(*pointers));
	for (unsigned i = 0; i < n; i++) {
		struct item *item = &items[i];
		npumem__v1__operation__init(&item->operation);
		pointers[i] = &item->operation;
		item->operation.group = ops[i].group;
		item->refs[0] = talk_ref(0, ops[i].first);
		item->refs[1] = talk_ref(0, ops[i].second ? ops[i].second : "");
		if (ops[i].kind == 'f') {
			npumem__v1__fill_request__init(&item->fill);
			item->fill.tensor = &item->refs[0];
			item->fill.value_case = NPUMEM__V1__FILL_REQUEST__VALUE_INTEGER;
			item->fill.integer = ops[i].value;
			item->operation.kind_case = NPUMEM__V1__OPERATION__KIND_FILL;
			item->operation.fill = &item->fill;
		} else if (ops[i].kind == 'w') {
			npumem__v1__write_request__init(&item->write);
			item->write.tensor = &item->refs[0];
			item->write.data = (ProtobufCBinaryData){1, &item->payload};
			item->payload = (uint8_t)ops[i].value;
			item->operation.kind_case = NPUMEM__V1__OPERATION__KIND_WRITE;
			item->operation.write = &item->write;
		} else if (ops[i].kind == 'c') {
			npumem__v1__copy_request__init(&item->copy);
			item->copy.destination = &item->refs[0];
			item->copy.source = &item->refs[1];
			item->operation.kind_case = NPUMEM__V1__OPERATION__KIND_COPY;
			item->operation.copy = &item->copy;
		} else if (ops[i].kind == 'r') {
			npumem__v1__read_request__init(&item->read);
			item->read.tensor = &item->refs[0];
			item->read.count = 1;
			item->operation.kind_case = NPUMEM__V1__OPERATION__KIND_READ;
			item->operation.read = &item->read;
		} else {
			npumem__v1__run_request__init(&item->run);
			item->run.kernel = NPUMEM__V1__KERNEL__RELU;
			item->run.n_operands = 2;
			item->run.operands = item->list;
			for (unsigned k = 0; k < 2; k++) {
				npumem__v1__operand__init(&item->operands[k]);
				item->operands[k].role = k ? "out" : "in";
				item->operands[k].tensor = &item->refs[k];
				item->list[k] = &item->operands[k];
			}
			item->operation.kind_case = NPUMEM__V1__OPERATION__KIND_RUN;
			item->operation.run = &item->run;
		}
	}
	Npumem__V1__SubmitRequest request = {MESSAGE(submit_request), .n_operations = n, .operations = pointers};
	uint64_t id = CROWD_SEND(from, submit, SUBMIT, &request);
	free(items);
	free(pointers);
	return id;
}

#endif
