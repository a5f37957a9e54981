/* The sequential world: the same requests to a daemon without threads, one after the other in the order in which
 * they began to run. An allocation that waited in the line comes where it was granted. A request that was
 * cancelled, or refused for lack of room, had no effect and is left out. If a write was stopped midway, or its
 * client hung up before the answer, the bytes of its tensors are unknown. They are not compared until all of them
 * are written again.
 *
 * A root is a tensor with storage, by the request that made it; views have their base's. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/random/daemon.h"
#include "tests/random/run.h"

enum {
	ROOT_NONE,
	ROOT_LYING_OVER, /* both of the two that lie over one another */
	ROOT_SHARED,	 /* of those that do not */
	ROOT_FIRST = ROOT_SHARED + TRACE_N_SHARED,
	ROOTS = ROOT_FIRST + TRACE_EVENTS * TRACE_TENSORS,
	NO_SUCH_HANDLE = 0x7eadbeef,
};

struct made {
	uint64_t handles[TRACE_TENSORS];
	unsigned roots[TRACE_TENSORS];
};

struct replay {
	struct run_talk talk; /* first: answers come to it */
	struct run *run;
	uint64_t shared[TRACE_N_SHARED];
	struct made made[TRACE_EVENTS];
	unsigned roots[TRACE_PEERS][TRACE_SLOTS]; /* of the names */
	bool is_view[TRACE_PEERS][TRACE_SLOTS];
	bool unknown[ROOTS]; /* what is in it */
	bool any_unknown;
	bool is_vague[TRACE_PEERS]; /* which tensors a client that hung up had at its end */
};

/* ---- what is unknown ---- */

static unsigned root_of(const struct replay *replay, const struct run_record *record, unsigned op, unsigned ref)
{
	const struct run_source *source = &record->sources[op][ref];
	unsigned slot = record->request.ops[op].refs[ref].slot;

	if (slot == TRACE_NOBODY)
		return ROOT_NONE;
	if (slot >= TRACE_SHARED)
		return slot < TRACE_SHARED + 2 ? ROOT_SHARED + slot - TRACE_SHARED : ROOT_LYING_OVER;
	if (source->record >= 0)
		return replay->made[source->record].roots[source->tensor];
	return replay->roots[record->peer][slot];
}

static bool is_unknown(const struct replay *replay, const struct run_record *record)
{
	for (unsigned i = 0; i < record->request.n_ops; i++)
		for (unsigned k = 0; k < record->request.ops[i].n_refs; k++)
			if (replay->unknown[root_of(replay, record, i, k)])
				return true;
	return replay->any_unknown && record->request.verb == TRACE_LIST;
}

static bool is_written(enum trace_verb verb)
{
	return verb == TRACE_WRITE || verb == TRACE_FILL || verb == TRACE_COPY || verb == TRACE_RUN;
}

static void forget_written(struct replay *replay, const struct run_record *record)
{
	for (unsigned i = 0; i < record->request.n_ops; i++)
		if (is_written(record->request.ops[i].verb)) {
			replay->unknown[root_of(replay, record, i, 0)] = true;
			replay->any_unknown = true;
		}
	replay->unknown[ROOT_NONE] = false;
	if (record->request.verb == TRACE_FREE || record->request.verb == TRACE_VIEW)
		replay->is_vague[record->peer] = true;
}

/* All of it was written anew, in both worlds. */
static void know_filled(struct replay *replay, const struct run_record *record)
{
	const struct trace_ref *ref = &record->request.ops[0].refs[0];
	unsigned root = root_of(replay, record, 0, 0);

	if (record->request.verb == TRACE_FILL && !record->status && !replay->talk.response->status &&
	    !ref->by_handle && root != ROOT_LYING_OVER &&
	    !(ref->slot < TRACE_SLOTS && replay->is_view[record->peer][ref->slot]))
		replay->unknown[root] = false;
}

/* ---- one request ---- */

static void set_handles(const struct replay *replay, const struct run_record *record,
			struct message_handles *handles)
{
	for (unsigned i = 0; i < record->request.n_ops; i++)
		for (unsigned k = 0; k < record->request.ops[i].n_refs; k++) {
			const struct run_source *source = &record->sources[i][k];
			uint64_t handle = 0;

			if (source->record == -2)
				handle = replay->shared[record->request.ops[i].refs[k].slot - TRACE_SHARED];
			else if (source->record >= 0)
				handle = replay->made[source->record].handles[source->tensor];
			handles->of[i][k] = source->record == -1 ? 0 : handle ? handle : NO_SUCH_HANDLE;
		}
}

static void send(struct replay *replay, const struct run_record *record)
{
	struct trace_request request = record->request;
	struct message_handles handles = {0};
	uint8_t *message;
	size_t bytes;

	request.wait_ms = 0;
	set_handles(replay, record, &handles);
	message = message_pack(replay->run->trace, record->peer, &request, &handles,
			       &(struct message_sent){.id = 1}, &bytes);
	run_talk_bytes(&replay->talk, record->peer, message, bytes);
	free(message);
}

static void note_alloc(struct replay *replay, const struct run_record *record, unsigned index)
{
	const Npumem__V1__Allocated *allocated = replay->talk.response->allocated;

	for (unsigned i = 0; allocated && i < allocated->n_tensors && i < TRACE_TENSORS; i++) {
		const struct trace_tensor *tensor = &record->request.tensors[i];

		replay->made[index].handles[i] = allocated->tensors[i]->handle;
		replay->made[index].roots[i] = ROOT_FIRST + index * TRACE_TENSORS + i;
		if (tensor->anonymous)
			continue;
		replay->roots[record->peer][tensor->slot] = replay->made[index].roots[i];
		replay->is_view[record->peer][tensor->slot] = false;
	}
}

/* What it made. */
static void note(struct replay *replay, const struct run_record *record, unsigned index)
{
	const Npumem__V1__Response *response = replay->talk.response;
	enum trace_verb verb = record->request.verb;
	unsigned slot = record->request.ops[0].refs[0].slot;

	if (response->status)
		return;
	if (verb == TRACE_ALLOC)
		note_alloc(replay, record, index);
	if (response->result_case != NPUMEM__V1__RESPONSE__RESULT_TENSOR)
		return;
	replay->made[index].handles[0] = response->tensor->handle;
	replay->made[index].roots[0] = root_of(replay, record, 0, verb == TRACE_VIEW);
	if (verb != TRACE_VIEW)
		return;
	replay->roots[record->peer][slot] = replay->made[index].roots[0];
	replay->is_view[record->peer][slot] = true;
}

static unsigned detail_of(const struct run *run, const struct run_record *record)
{
	enum trace_verb verb = record->request.verb;
	unsigned detail = run->trace->mode == TRACE_ALONE ? MESSAGE_PLACES : 0;

	/* What these report of a tensor's bytes may be of a later turn than their own. A compaction writes
	 * nothing. */
	if ((verb == TRACE_OPEN || verb == TRACE_LIST || verb == TRACE_GRANT || verb == TRACE_VIEW ||
	     verb == TRACE_RENAME) &&
	    record->disturbed && !run->trace->strict_looks)
		return detail;
	return detail | MESSAGE_BYTES;
}

/* Both texts, from a little before they differ. */
static void fail_texts(struct run *run, const char *what, const char *was, const char *expected)
{
	size_t at = 0, from;

	while (was[at] && was[at] == expected[at])
		at++;
	from = at > 60 ? at - 60 : 0;
	run_fail(run, "%s\n  is          %s%.600s\n  in sequence %s%.600s", what, from ? "… " : "", was + from,
		 from ? "… " : "", expected + from);
}

static int by_name(const void *a, const void *b)
{
	const Npumem__V1__Tensor *x = *(Npumem__V1__Tensor *const *)a, *y = *(Npumem__V1__Tensor *const *)b;
	int order = strcmp(x->name, y->name);

	return order ? order : (x->place->address > y->place->address) - (x->place->address < y->place->address);
}

/* Whose handle is given again first, and with it the order of a list, follows the order in which tensors went. */
static void sort_list(const Npumem__V1__Response *response)
{
	if (response->result_case == NPUMEM__V1__RESPONSE__RESULT_LIST)
		qsort(response->list->tensors, response->list->n_tensors, sizeof(*response->list->tensors),
		      by_name);
}

static void compare_answers(struct replay *replay, unsigned index)
{
	struct run *run = replay->run;
	const struct run_record *record = &run->records[index];
	unsigned detail = detail_of(run, record);
	char prefix[TRACE_NAME_BYTES], request[1024], what[2048], *was, *expected;

	trace_name(run->trace, record->peer, 0, prefix);
	prefix[strlen(prefix) - 1] = 0;
	sort_list(record->response);
	sort_list(replay->talk.response);
	was = message_text(record->response, detail, prefix);
	expected = message_text(replay->talk.response, detail, prefix);
	trace_print_request(run->trace, record->peer, &record->request, request, sizeof(request));
	snprintf(what, sizeof(what),
		 "the answer to request %u, peer %u:%s\n  says        %.300s\n  in sequence %.300s", index + 1,
		 record->peer, request, record->response->message, replay->talk.response->message);
	if (strcmp(was, expected)) {
		run->about = record->request.verb;
		fail_texts(run, what, was, expected);
	}
	free(was);
	free(expected);
}

/* Whether the handles that it names were given out here, too: a seal of what is unknown may have been refused. */
static bool has_handles(const struct replay *replay, const struct run_record *record)
{
	for (unsigned i = 0; i < record->request.n_ops; i++)
		for (unsigned k = 0; k < record->request.ops[i].n_refs; k++) {
			const struct run_source *source = &record->sources[i][k];

			if (source->record >= 0 && !replay->made[source->record].handles[source->tensor])
				return false;
		}
	return true;
}

/* Nothing came of it. */
static bool is_without_effect(const struct run *run, const struct run_record *record)
{
	enum trace_verb verb = record->request.verb;

	if (record->status == NPUMEM__V1__STATUS__CANCELLED)
		return !is_written(verb) && verb != TRACE_SUBMIT ? true : verb == TRACE_RUN;
	return run->trace->mode == TRACE_TIGHT && verb == TRACE_ALLOC &&
	       (record->status == NPUMEM__V1__STATUS__RESOURCE_EXHAUSTED ||
		record->status == NPUMEM__V1__STATUS__DEADLINE_EXCEEDED);
}

static bool is_compared(const struct run *run, const struct run_record *record)
{
	/* Whether all that lies there may be read is for the others to decide. */
	if (record->request.verb == TRACE_DUMP && run->trace->mode != TRACE_ALONE)
		return false;
	return !(record->request.verb == TRACE_LIST && record->among_waiters);
}

static void replay_record(struct replay *replay, unsigned index)
{
	struct run *run = replay->run;
	const struct run_record *record = &run->records[index];
	bool unknown = is_unknown(replay, record) || replay->is_vague[record->peer];

	if (record->request.wait_ms && record->status == NPUMEM__V1__STATUS__RESOURCE_EXHAUSTED)
		run_fail(run, "request %u: was to wait, and is refused: %s", index + 1, record->response->message);
	if (is_without_effect(run, record))
		return;
	if (!record->answered || record->status == NPUMEM__V1__STATUS__CANCELLED || !has_handles(replay, record)) {
		forget_written(replay, record);
		return;
	}
	send(replay, record);
	note(replay, record, index);
	if (unknown)
		forget_written(replay, record);
	else if (is_compared(run, record))
		compare_answers(replay, index);
	know_filled(replay, record);
}

/* ---- all of them ---- */

struct step {
	uint64_t turn;
	unsigned index; /* of a request; or of a client, which ends */
	bool closes;
};

static int by_turn(const void *a, const void *b)
{
	const struct step *x = a, *y = b;

	return (x->turn > y->turn) - (x->turn < y->turn);
}

static unsigned plan(const struct run *run, struct step *steps)
{
	unsigned n = 0;

	for (unsigned i = 0; i < run->n; i++)
		steps[n++] = (struct step){run_turn_of(&run->records[i]), i, false};
	for (unsigned peer = 0; peer < run->trace->n_peers; peer++)
		if (run->closed[peer])
			steps[n++] = (struct step){run->closed[peer], peer, true};
	qsort(steps, n, sizeof(*steps), by_turn);
	return n;
}

static void compare_end(struct run *run, const char *name, const char *was, const char *expected)
{
	char what[2 * TRACE_NAME_BYTES];

	snprintf(what, sizeof(what), "what there is in the end of %s", name);
	if (strcmp(was, expected))
		fail_texts(run, what, was, expected);
}

static void compare_ends(const struct replay *replay, const struct run_end *end)
{
	struct run *run = replay->run;
	char name[TRACE_NAME_BYTES];

	for (unsigned peer = 0; peer < run->trace->n_peers; peer++)
		for (unsigned slot = 0; slot < TRACE_SLOTS; slot++) {
			trace_name(run->trace, peer, slot, name);
			if (!run->closed[peer] && !replay->unknown[replay->roots[peer][slot]])
				compare_end(run, name, run->end.slots[peer][slot], end->slots[peer][slot]);
		}
	for (unsigned i = 0; i < TRACE_N_SHARED; i++) {
		trace_name(run->trace, 0, TRACE_SHARED + i, name);
		if (!replay->unknown[i < 2 ? ROOT_SHARED + i : ROOT_LYING_OVER])
			compare_end(run, name, run->end.shared[i], end->shared[i]);
	}
}

static void begin(struct replay *replay, struct run *run, const struct daemon_options *options)
{
	memset(replay, 0, sizeof(*replay));
	replay->run = run;
	replay->talk.daemon = daemon_new(options);
	run_host(&replay->talk, run->trace, options->npu_bytes, replay->shared);
	for (unsigned peer = 0; peer < run->trace->n_peers; peer++)
		daemon_open(replay->talk.daemon, peer, trace_uid(run->trace, peer));
}

void run_compare(struct run *run)
{
	static struct replay replay;
	struct daemon_options options = {.n_npus = RUN_NPUS,
					 .npu_bytes = run->trace->mode == TRACE_ALONE ? RUN_TIGHT_BYTES
										      : RUN_ROOMY_BYTES,
					 .answered = run_talk_answered,
					 .ctx = &replay};
	struct step steps[TRACE_EVENTS + TRACE_PEERS];
	struct run_end end = {0};
	unsigned n = plan(run, steps);

	begin(&replay, run, &options);
	for (unsigned i = 0; i < n && !run_has_failed(run); i++)
		if (steps[i].closes)
			daemon_close(replay.talk.daemon, steps[i].index);
		else
			replay_record(&replay, steps[i].index);
	run_look(&replay.talk, run, &end);
	if (!run_has_failed(run))
		compare_ends(&replay, &end);
	run_end_free(&end);
	for (unsigned peer = 0; peer < run->trace->n_peers; peer++)
		if (!run->closed[peer] && !run_has_failed(run))
			daemon_close(replay.talk.daemon, peer);
	if (run_has_failed(run))
		return;
	run_sweep(&replay.talk);
	if (daemon_free(replay.talk.daemon))
		run_fail(run, "the sequential world itself leaves something behind");
	if (replay.talk.response)
		npumem__v1__response__free_unpacked(replay.talk.response, NULL);
}

/* ---- whose bytes ---- */

static bool is_own(const struct run *run, unsigned peer, const ProtobufCBinaryData *data, size_t *at)
{
	int from = trace_first_value(run->trace, peer);

	for (*at = 0; *at < data->len; ++*at)
		if (data->data[*at] < from || data->data[*at] >= from + TRACE_VALUES)
			return false;
	return true;
}

void run_check_owners(struct run *run)
{
	for (unsigned i = 0; i < run->n; i++) {
		const struct run_record *record = &run->records[i];
		const Npumem__V1__Response *response = record->response;
		Npumem__V1__Done *const *done = response ? &response->done : NULL;
		size_t n = response && response->result_case == NPUMEM__V1__RESPONSE__RESULT_DONE, at;

		if (response && response->result_case == NPUMEM__V1__RESPONSE__RESULT_SUBMITTED) {
			done = response->submitted->done;
			n = response->submitted->n_done;
		}
		for (size_t k = 0; k < n; k++)
			if (!is_own(run, record->peer, &done[k]->data, &at))
				run_fail(run,
					 "request %u, peer %u: operation %zu reads %d at byte %zu, which uid %u "
					 "never wrote",
					 i + 1, record->peer, k, done[k]->data.data[at], at,
					 trace_uid(run->trace, record->peer));
	}
}
