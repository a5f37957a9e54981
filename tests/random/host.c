/* Requests of those who are no clients of the trace: the host, whose tensors all share, and the admin, who looks
 * at what there is in the end. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/random/daemon.h"
#include "tests/random/run.h"

enum { HOST_UIDS = TRACE_PEERS, GUEST_NPU = TRACE_C_NARROW };

void run_talk_answered(void *ctx, unsigned client, const uint8_t *message, size_t bytes)
{
	struct run_talk *talk = ctx;
	Npumem__V1__Response *response = npumem__v1__response__unpack(NULL, bytes, message);

	(void)client;
	if (!response)
		abort();
	if (!response->id) {
		npumem__v1__response__free_unpacked(response, NULL);
		return;
	}
	if (talk->response)
		npumem__v1__response__free_unpacked(talk->response, NULL);
	talk->response = response;
}

void run_talk_bytes(struct run_talk *talk, unsigned client, const uint8_t *message, size_t bytes)
{
	if (talk->response)
		npumem__v1__response__free_unpacked(talk->response, NULL);
	talk->response = NULL;
	daemon_send(talk->daemon, client, message, bytes);
	while (!talk->response && daemon_tasks(talk->daemon))
		daemon_done(talk->daemon, 0);
	if (!talk->response)
		abort();
}

void run_talk(struct run_talk *talk, unsigned client, Npumem__V1__Request *request)
{
	uint8_t *message;
	size_t bytes;

	request->id = 1;
	message = message_pack_any(request, &bytes);
	run_talk_bytes(talk, client, message, bytes);
	free(message);
}

/* ---- the host ---- */

/* The last two lie over one another: the second where the first has empty blocks. */
static void set_spec(unsigned i, int64_t npu_bytes, Npumem__V1__Spec *spec, Npumem__V1__Dims *shape)
{
	shape->n = TRACE_N;
	shape->c = i < 2 ? TRACE_C : i == 2 ? TRACE_C_NARROW : RUN_NPUS - TRACE_C_NARROW;
	shape->h = 1;
	shape->w = TRACE_W;
	spec->shape = shape;
	spec->dtype = NPUMEM__V1__DTYPE__FX8;
	spec->frac_bits_given_case = NPUMEM__V1__SPEC__FRAC_BITS_GIVEN_FRAC_BITS;
	spec->frac_bits = 4;
	spec->mode = i % 2 ? NPUMEM__V1__MODE__MODE_4N : NPUMEM__V1__MODE__PLAIN;
	if (i < 2)
		return;
	spec->address_given_case = NPUMEM__V1__SPEC__ADDRESS_GIVEN_ADDRESS;
	spec->address = i == 2 ? 0 : GUEST_NPU * npu_bytes;
}

static void share(struct run_talk *talk, const char *name, uint32_t uid)
{
	Npumem__V1__Request request = NPUMEM__V1__REQUEST__INIT;
	Npumem__V1__GrantRequest grant = NPUMEM__V1__GRANT_REQUEST__INIT;
	Npumem__V1__Ref ref = NPUMEM__V1__REF__INIT;

	ref.name = (char *)name;
	grant.tensor = &ref;
	grant.uid = uid;
	grant.access = NPUMEM__V1__ACCESS__ACCESS_WRITE;
	request.call_case = NPUMEM__V1__REQUEST__CALL_GRANT;
	request.grant = &grant;
	run_talk(talk, RUN_HOST, &request);
	if (talk->response->status)
		abort();
}

static uint64_t place(struct run_talk *talk, unsigned i, int64_t npu_bytes, char *name)
{
	Npumem__V1__Request request = NPUMEM__V1__REQUEST__INIT;
	Npumem__V1__AllocRequest alloc = NPUMEM__V1__ALLOC_REQUEST__INIT;
	Npumem__V1__Allocation allocation = NPUMEM__V1__ALLOCATION__INIT, *list = &allocation;
	Npumem__V1__Spec spec = NPUMEM__V1__SPEC__INIT;
	Npumem__V1__Dims shape = NPUMEM__V1__DIMS__INIT;

	set_spec(i, npu_bytes, &spec, &shape);
	allocation.spec = &spec;
	allocation.name = name;
	allocation.pinned = true;
	allocation.reuse = i == 3 ? NPUMEM__V1__REUSE__UNCHECKED : NPUMEM__V1__REUSE__NEVER;
	alloc.n_tensors = 1;
	alloc.tensors = &list;
	request.call_case = NPUMEM__V1__REQUEST__CALL_ALLOC;
	request.alloc = &alloc;
	run_talk(talk, RUN_HOST, &request);
	if (talk->response->status) {
		fprintf(stderr, "%s\n", talk->response->message);
		abort();
	}
	return talk->response->allocated->tensors[0]->handle;
}

void run_host(struct run_talk *talk, const struct trace *trace, int64_t npu_bytes,
	      uint64_t handles[TRACE_N_SHARED])
{
	/* Those with an address first. */
	static const unsigned order[TRACE_N_SHARED] = {2, 3, 0, 1};

	daemon_open(talk->daemon, RUN_HOST, TRACE_HOST_UID);
	daemon_open(talk->daemon, RUN_ADMIN, 0);
	for (unsigned i = 0; i < TRACE_N_SHARED && trace_has_host(trace); i++) {
		char name[TRACE_NAME_BYTES];

		snprintf(name, sizeof(name), "m%u", order[i]);
		handles[order[i]] = place(talk, order[i], npu_bytes, name);
		for (unsigned uid = 0; uid < HOST_UIDS; uid++)
			share(talk, name, 1001 + uid);
	}
}

/* ---- the admin ---- */

static char *both(const char *a, const char *b)
{
	char *text = malloc(strlen(a) + strlen(b) + 2);

	if (!text)
		abort();
	sprintf(text, "%s %s", a, b);
	return text;
}

/* What a tensor is, and what is in it. */
static char *look_at(struct run_talk *talk, char *name)
{
	Npumem__V1__Request request = NPUMEM__V1__REQUEST__INIT;
	Npumem__V1__OpenRequest open = NPUMEM__V1__OPEN_REQUEST__INIT;
	Npumem__V1__ReadRequest read = NPUMEM__V1__READ_REQUEST__INIT;
	Npumem__V1__Ref ref = NPUMEM__V1__REF__INIT;
	char *what, *bytes, *text;

	ref.name = name;
	open.tensor = read.tensor = &ref;
	request.call_case = NPUMEM__V1__REQUEST__CALL_OPEN;
	request.open = &open;
	run_talk(talk, RUN_ADMIN, &request);
	what = message_text(talk->response, MESSAGE_BYTES, "");
	request.call_case = NPUMEM__V1__REQUEST__CALL_READ;
	request.read = &read;
	run_talk(talk, RUN_ADMIN, &request);
	bytes = message_text(talk->response, MESSAGE_BYTES, "");
	text = both(what, bytes);
	free(what);
	free(bytes);
	return text;
}

void run_look(struct run_talk *talk, const struct run *run, struct run_end *end)
{
	const struct trace *trace = run->trace;
	char own[TRACE_NAME_BYTES], name[2 * TRACE_NAME_BYTES];

	for (unsigned peer = 0; peer < trace->n_peers; peer++)
		for (unsigned slot = 0; slot < TRACE_SLOTS; slot++) {
			trace_name(trace, peer, slot, own);
			snprintf(name, sizeof(name), "%u:%s", trace_uid(trace, peer), own);
			end->slots[peer][slot] = look_at(talk, name);
		}
	for (unsigned i = 0; i < TRACE_N_SHARED; i++) {
		trace_name(trace, 0, TRACE_SHARED + i, name);
		end->shared[i] = look_at(talk, name);
	}
}

void run_end_free(struct run_end *end)
{
	for (unsigned peer = 0; peer < TRACE_PEERS; peer++)
		for (unsigned slot = 0; slot < TRACE_SLOTS; slot++)
			free(end->slots[peer][slot]);
	for (unsigned i = 0; i < TRACE_N_SHARED; i++)
		free(end->shared[i]);
}

static void drain(struct run_talk *talk)
{
	while (daemon_tasks(talk->daemon))
		daemon_done(talk->daemon, 0);
}

static void free_tensor(struct run_talk *talk, uint64_t handle)
{
	Npumem__V1__Request request = NPUMEM__V1__REQUEST__INIT;
	Npumem__V1__FreeRequest free_request = NPUMEM__V1__FREE_REQUEST__INIT;
	Npumem__V1__Ref ref = NPUMEM__V1__REF__INIT, *list = &ref;

	ref.handle = handle;
	free_request.n_tensors = 1;
	free_request.tensors = &list;
	request.call_case = NPUMEM__V1__REQUEST__CALL_FREE;
	request.free = &free_request;
	run_talk(talk, RUN_ADMIN, &request);
}

/* Until a page tells of nothing: what is freed changes what is listed. */
void run_sweep(struct run_talk *talk)
{
	uint64_t handles[256];
	size_t n;

	/* What has no name is its session's alone. */
	daemon_close(talk->daemon, RUN_HOST);
	drain(talk);
	do {
		Npumem__V1__Request request = NPUMEM__V1__REQUEST__INIT;
		Npumem__V1__ListRequest list = NPUMEM__V1__LIST_REQUEST__INIT;

		request.call_case = NPUMEM__V1__REQUEST__CALL_LIST;
		request.list = &list;
		run_talk(talk, RUN_ADMIN, &request);
		n = talk->response->list ? talk->response->list->n_tensors : 0;
		for (size_t i = 0; i < n && i < 256; i++)
			handles[i] = talk->response->list->tensors[i]->handle;
		for (size_t i = 0; i < n; i++)
			free_tensor(talk, handles[i]);
	} while (n);
	daemon_close(talk->daemon, RUN_ADMIN);
	drain(talk);
}
