/* A trace, event by event. Which handle a ref stands for, and whether a request may be sent at all, depends on
 * what was answered by then; it is kept in the record, so that the comparison sends the same. */
#include "tests/random/run.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/random/begun.h"
#include "tests/random/daemon.h"
#include "tests/random/under_way.h"

enum { CANCEL_ID = 1000000, RESUME_ID = 2000000, IN_FLIGHT_MAX = 6 };

#define RUN_MS UINT64_C(1000000)

struct driver {
	struct run_talk talk; /* first: the answers of host and admin go there */
	struct run *run;
	uint64_t turn;
	uint64_t shared[TRACE_N_SHARED];
	/* What each client was told last of its slots. */
	struct run_source known[TRACE_PEERS][TRACE_SLOTS];
	bool is_open[TRACE_PEERS];
	uint8_t tokens[TRACE_PEERS][16]; /* by which their sessions go on */
};

void run_fail(struct run *run, const char *format, ...)
{
	va_list arguments;

	if (run->wrong[0])
		return;
	va_start(arguments, format);
	vsnprintf(run->wrong, sizeof(run->wrong), format, arguments);
	va_end(arguments);
}

bool run_has_failed(const struct run *run)
{
	return run->wrong[0];
}

void run_free(struct run *run)
{
	for (unsigned i = 0; i < run->n; i++)
		if (run->records[i].response)
			npumem__v1__response__free_unpacked(run->records[i].response, NULL);
	run_end_free(&run->end);
}

int64_t run_npu_bytes(const struct trace *trace)
{
	return trace->mode == TRACE_ROOMY ? RUN_ROOMY_BYTES : RUN_TIGHT_BYTES;
}

uint64_t run_turn_of(const struct run_record *record)
{
	if (record->request.wait_ms && !record->status)
		return record->answered;
	if (record->begun)
		return record->begun;
	return record->answered ? record->answered : record->sent;
}

/* ---- answers ---- */

static void learn(struct driver *driver, struct run_record *record, unsigned index, unsigned slot, unsigned tensor,
		  const Npumem__V1__Tensor *from)
{
	record->handles[tensor] = from->handle;
	if (slot < TRACE_SLOTS)
		driver->known[record->peer][slot] = (struct run_source){(int)index, tensor};
}

static void learn_handles(struct driver *driver, struct run_record *record, unsigned index)
{
	const Npumem__V1__Response *response = record->response;
	const struct trace_request *request = &record->request;

	if (request->verb == TRACE_ALLOC && response->allocated)
		for (unsigned i = 0; i < response->allocated->n_tensors && i < TRACE_TENSORS; i++)
			learn(driver, record, index, request->tensors[i].slot, i, response->allocated->tensors[i]);
	if (response->result_case == NPUMEM__V1__RESPONSE__RESULT_TENSOR)
		learn(driver, record, index, request->ops[0].refs[0].slot, 0, response->tensor);
}

static void on_client(struct driver *driver, unsigned peer, Npumem__V1__Response *response)
{
	struct run *run = driver->run;
	struct run_record *record = &run->records[response->id <= run->n ? response->id - 1 : 0];

	if (response->id > run->n || record->peer != peer || record->answered) {
		run_fail(run, "peer %u: request %u is not one, or answered twice", peer, (unsigned)response->id);
		npumem__v1__response__free_unpacked(response, NULL);
		return;
	}
	record->answered = ++driver->turn;
	record->answered_ns = daemon_now_ns(driver->talk.daemon);
	record->status = (int)response->status;
	record->response = response;
	if (!response->status)
		learn_handles(driver, record, (unsigned)response->id - 1);
	if (response->status == NPUMEM__V1__STATUS__INTERNAL)
		run_fail(run, "request %u: %s", (unsigned)response->id, response->message);
}

static void on_begun(void *ctx, const struct session *session, uint64_t id)
{
	struct driver *driver = ctx;
	struct run *run = driver->run;
	struct run_record *record = id && id <= run->n ? &run->records[id - 1] : NULL;

	if (record && !record->begun && daemon_session(driver->talk.daemon, record->peer) == session)
		record->begun = ++driver->turn;
}

static void on_resumed(struct driver *driver, unsigned peer, const Npumem__V1__Response *response)
{
	if (response->status || !response->resumed || response->resumed->token.len != sizeof(driver->tokens[0]))
		run_fail(driver->run, "peer %u: its session does not go on: %s", peer, response->message);
	else
		memcpy(driver->tokens[peer], response->resumed->token.data, sizeof(driver->tokens[0]));
}

/* An event, a session's token, or what a cancel is answered, which may come too late. */
static void on_other(struct driver *driver, unsigned peer, const Npumem__V1__Response *response)
{
	if (response->id >= RESUME_ID)
		on_resumed(driver, peer, response);
	else if (response->id && (response->status || !response->cancelled))
		run_fail(driver->run, "a cancel is answered %d: %s", (int)response->status, response->message);
}

static void on_answered(void *ctx, unsigned peer, const uint8_t *message, size_t bytes)
{
	struct driver *driver = ctx;
	Npumem__V1__Response *response = npumem__v1__response__unpack(NULL, bytes, message);

	if (!response) {
		run_fail(driver->run, "peer %u: an answer that cannot be read", peer);
	} else if (peer >= RUN_HOST) {
		if (driver->talk.response)
			npumem__v1__response__free_unpacked(driver->talk.response, NULL);
		driver->talk.response = response;
	} else if (response->id && response->id < CANCEL_ID) {
		on_client(driver, peer, response);
	} else {
		on_other(driver, peer, response);
		npumem__v1__response__free_unpacked(response, NULL);
	}
}

/* ---- requests ---- */

static uint64_t handle_of(const struct driver *driver, const struct run_source *source, unsigned slot)
{
	if (source->record == -2)
		return driver->shared[slot - TRACE_SHARED];
	return source->record < 0 ? 0 : driver->run->records[source->record].handles[source->tensor];
}

/* A shared one; or what somebody of another uid was told last, which is as good as a guess. */
static struct run_source source_of_other(const struct driver *driver, unsigned peer, unsigned slot)
{
	const struct trace *trace = driver->run->trace;
	uint32_t uid;
	unsigned own_slot;

	if (trace_has_host(trace) || !trace_slot_of(trace, peer, slot, &uid, &own_slot))
		return (struct run_source){-2, 0};
	for (unsigned other = 0; other < trace->n_peers; other++)
		if (trace_uid(trace, other) == uid && driver->known[other][own_slot].record >= 0)
			return driver->known[other][own_slot];
	return (struct run_source){-1, 0};
}

static void set_sources(struct driver *driver, struct run_record *record)
{
	for (unsigned i = 0; i < record->request.n_ops; i++)
		for (unsigned k = 0; k < record->request.ops[i].n_refs; k++) {
			const struct trace_ref *ref = &record->request.ops[i].refs[k];
			struct run_source *source = &record->sources[i][k];

			*source = (struct run_source){-1, 0};
			if (ref->by_handle && ref->slot < TRACE_SLOTS)
				*source = driver->known[record->peer][ref->slot];
			else if (ref->by_handle && ref->slot < TRACE_NOBODY)
				*source = source_of_other(driver, record->peer, ref->slot);
			record->named[i][k] = handle_of(driver, source, ref->slot);
		}
}

static void send_record(struct driver *driver, unsigned index, bool again)
{
	struct run *run = driver->run;
	struct run_record *record = &run->records[index];
	struct message_sent sent = {.id = index + 1, .again = again, .answered_below = index + 1};
	struct message_handles handles;
	uint8_t *message;
	size_t bytes;

	memcpy(handles.of, record->named, sizeof(handles.of));
	for (unsigned i = 0; i < index; i++)
		if (run->records[i].peer == record->peer && !run->records[i].answered &&
		    sent.answered_below > i + 1)
			sent.answered_below = i + 1;
	message = message_pack(run->trace, record->peer, &record->request, &handles, &sent, &bytes);
	daemon_send(driver->talk.daemon, record->peer, message, bytes);
	free(message);
}

static void send_event(struct driver *driver, const struct trace_event *event)
{
	struct run *run = driver->run;
	struct run_record *record = &run->records[run->n];

	*record = (struct run_record){.peer = event->peer, .request = event->request, .status = RUN_NOT_ANSWERED};
	if (run->trace->mode == TRACE_TIGHT && !under_way_avoid_waiters(run, event->peer, &record->request))
		return;
	set_sources(driver, record);
	under_way_note_disturbed(run, record);
	record->among_waiters = under_way_has_waiters(run, event->peer);
	record->sent = ++driver->turn;
	record->sent_ns = daemon_now_ns(driver->talk.daemon);
	send_record(driver, run->n++, false);
}

/* Asks for the token of a new session, or goes on with the one that it has. */
static void resume(struct driver *driver, unsigned peer, bool has_token)
{
	Npumem__V1__Request request = NPUMEM__V1__REQUEST__INIT;
	Npumem__V1__ResumeRequest resume = NPUMEM__V1__RESUME_REQUEST__INIT;
	uint8_t *message;
	size_t bytes;

	if (has_token)
		resume.token = (ProtobufCBinaryData){sizeof(driver->tokens[0]), driver->tokens[peer]};
	request.id = RESUME_ID;
	request.call_case = NPUMEM__V1__REQUEST__CALL_RESUME;
	request.resume = &resume;
	message = message_pack_any(&request, &bytes);
	daemon_send(driver->talk.daemon, peer, message, bytes);
	free(message);
}

static void cancel_one(struct driver *driver, const struct trace_event *event)
{
	Npumem__V1__Request request = NPUMEM__V1__REQUEST__INIT;
	Npumem__V1__CancelRequest cancel = NPUMEM__V1__CANCEL_REQUEST__INIT;
	struct run *run = driver->run;
	unsigned under_way[RUN_RECORDS], n = 0;
	uint8_t *message;
	size_t bytes;

	for (unsigned i = 0; i < run->n; i++)
		if (run->records[i].peer == event->peer && !run->records[i].answered)
			under_way[n++] = i;
	if (!n)
		return;
	cancel.request_id = under_way[event->pick % n] + 1;
	run->records[cancel.request_id - 1].cancelled = true;
	request.id = CANCEL_ID + cancel.request_id;
	request.call_case = NPUMEM__V1__REQUEST__CALL_CANCEL;
	request.cancel = &cancel;
	message = message_pack_any(&request, &bytes);
	daemon_send(driver->talk.daemon, event->peer, message, bytes);
	free(message);
}

/* ---- events ---- */

static void close_peer(struct driver *driver, unsigned peer)
{
	if (!driver->is_open[peer])
		return;
	driver->is_open[peer] = false;
	driver->run->closed[peer] = ++driver->turn;
	daemon_close(driver->talk.daemon, peer);
}

static void drain(struct driver *driver)
{
	enum { DONE_MAX = 100000 };
	struct daemon *daemon = driver->talk.daemon;

	for (unsigned i = 0; daemon_tasks(daemon); i++) {
		if (i == DONE_MAX) {
			run_fail(driver->run, "tasks that never end");
			return;
		}
		daemon_done(daemon, 0);
	}
}

/* With little under way: of each that is nobody knows whether it was done before, and all orders are tried. */
static bool may_crash(const struct run *run)
{
	unsigned n = 0;

	for (unsigned i = 0; i < run->n; i++) {
		const struct run_record *record = &run->records[i];

		n += !record->answered && !run->closed[record->peer];
	}
	return n <= IN_FLIGHT_MAX;
}

/* The tasks whose bit is set have done their work by then. */
static void crash(struct driver *driver, uint64_t pick)
{
	struct daemon *daemon = driver->talk.daemon;
	struct run *run = driver->run;

	while (daemon_tasks(daemon) && !may_crash(run))
		daemon_done(daemon, 0);
	for (unsigned i = 0; i < daemon_tasks(daemon) && pick >> i & 1; i++)
		daemon_work(daemon, i);
	++driver->turn;
	for (unsigned i = 0; i < run->n; i++)
		if (!run->records[i].answered) {
			run->records[i].crashed = driver->turn;
			run->records[i].begun = 0;
		}
	daemon_crash(daemon);
	daemon_open(daemon, RUN_HOST, TRACE_HOST_UID);
	daemon_open(daemon, RUN_ADMIN, 0);
	for (unsigned peer = 0; peer < run->trace->n_peers; peer++) {
		if (!driver->is_open[peer])
			continue;
		daemon_open(daemon, peer, trace_uid(run->trace, peer));
		resume(driver, peer, true);
		for (unsigned i = 0; i < run->n; i++)
			if (run->records[i].peer == peer && !run->records[i].answered)
				send_record(driver, i, true);
	}
}

static void happen(struct driver *driver, const struct trace_event *event)
{
	struct daemon *daemon = driver->talk.daemon;
	unsigned n = daemon_tasks(daemon);

	switch (event->kind) {
	case TRACE_WORK:
		if (n)
			daemon_work(daemon, (unsigned)(event->pick % n));
		break;
	case TRACE_DONE:
		if (n)
			daemon_done(daemon, (unsigned)(event->pick % n));
		break;
	case TRACE_CLOCK:
		daemon_clock(daemon, daemon_now_ns(daemon) + event->pick % (2000 * RUN_MS));
		break;
	case TRACE_CLOSE:
		/* Of what has no answer any order has to be tried, and each may have had its effect: other modes
		 * have that. */
		if (trace_is_explained(driver->run->trace))
			drain(driver);
		close_peer(driver, event->peer);
		if (trace_is_explained(driver->run->trace))
			drain(driver);
		break;
	case TRACE_CRASH:
		crash(driver, event->pick);
		break;
	case TRACE_CANCEL:
		if (driver->is_open[event->peer])
			cancel_one(driver, event);
		break;
	default:
		if (driver->is_open[event->peer])
			send_event(driver, event);
		break;
	}
	if (driver->run->trace->sequential)
		drain(driver);
}

/* Everything that was sent is answered in the end, and what waits for room when its time is over. */
static void check_answered(struct run *run)
{
	for (unsigned i = 0; i < run->n; i++) {
		const struct run_record *record = &run->records[i];
		bool in_time = record->answered_ns >= record->sent_ns + record->request.wait_ms * RUN_MS;

		if (!record->answered && !run->closed[record->peer])
			run_fail(run, "request %u is never answered", i + 1);
		if (record->status == NPUMEM__V1__STATUS__DEADLINE_EXCEEDED &&
		    (!record->request.wait_ms || !in_time))
			run_fail(run, "request %u: DEADLINE_EXCEEDED before its deadline", i + 1);
		if (record->status == NPUMEM__V1__STATUS__CANCELLED && !record->cancelled)
			run_fail(run, "request %u is cancelled, and nobody asked for that", i + 1);
	}
}

static void check_daemon(struct driver *driver, const char *when)
{
	const char *wrong = run_has_failed(driver->run) ? NULL : daemon_check(driver->talk.daemon);

	if (wrong)
		run_fail(driver->run, "%s: %s", when, wrong);
}

/* What is in everybody's tensors. */
static void read_all(struct driver *driver)
{
	struct trace_event event = {.request = {.verb = TRACE_READ, .n_ops = 1}};

	for (event.peer = 0; event.peer < driver->run->trace->n_peers; event.peer++)
		for (unsigned slot = 0; slot < TRACE_SLOTS && driver->is_open[event.peer]; slot++) {
			event.request.ops[0] =
				(struct trace_op){.verb = TRACE_READ, .n_refs = 1, .refs = {{slot, false}}};
			send_event(driver, &event);
			drain(driver);
		}
}

static void end(struct driver *driver)
{
	struct daemon *daemon = driver->talk.daemon;
	struct run *run = driver->run;

	for (unsigned i = 0; i < 8; i++) {
		drain(driver);
		daemon_clock(daemon, daemon_now_ns(daemon) + 3000 * RUN_MS);
	}
	drain(driver);
	if (!trace_has_host(run->trace))
		read_all(driver);
	check_answered(run);
	check_daemon(driver, "after all was answered");
	if (!run_has_failed(run))
		run_look(&driver->talk, run, &run->end);
	for (unsigned peer = 0; peer < run->trace->n_peers; peer++) {
		if (driver->is_open[peer])
			daemon_close(daemon, peer);
		drain(driver);
		if (!daemon_is_drained(daemon, peer))
			run_fail(run, "peer %u is never drained", peer);
	}
	check_daemon(driver, "after all clients left");
}

void run_trace(const struct trace *trace, struct run *run)
{
	static struct driver driver;
	struct daemon_options options = {.n_npus = RUN_NPUS,
					 .npu_bytes = run_npu_bytes(trace),
					 .threads = true,
					 .keeps_state = trace->mode == TRACE_CRASHES,
					 .answered = on_answered,
					 .ctx = &driver};
	const char *wrong;

	memset(&driver, 0, sizeof(driver));
	memset(run, 0, sizeof(*run));
	run->trace = trace;
	run->about = TRACE_VERBS;
	driver.run = run;
	driver.talk.daemon = daemon_new(&options);
	begun_tell(on_begun, &driver);
	for (unsigned peer = 0; peer < TRACE_PEERS; peer++)
		for (unsigned slot = 0; slot < TRACE_SLOTS; slot++)
			driver.known[peer][slot].record = -1;
	run_host(&driver.talk, trace, options.npu_bytes, driver.shared);
	for (unsigned peer = 0; peer < trace->n_peers; peer++) {
		daemon_open(driver.talk.daemon, peer, trace_uid(trace, peer));
		driver.is_open[peer] = true;
		if (trace->mode == TRACE_CRASHES)
			resume(&driver, peer, false);
	}
	for (unsigned i = 0; i < trace->n && !run_has_failed(run); i++)
		happen(&driver, &trace->events[i]);
	/* What is wrong by then ends the process: the daemon need not be able to end. */
	if (run_has_failed(run))
		return;
	end(&driver);
	if (run_has_failed(run))
		return;
	begun_tell(NULL, NULL);
	run_sweep(&driver.talk);
	wrong = daemon_free(driver.talk.daemon);
	if (wrong)
		run_fail(run, "at the end: %s", wrong);
	npumem__v1__response__free_unpacked(driver.talk.response, NULL);
}
