/* Of a client's requests those keep their order that are about the same tensors. What has no effect has none; and
 * what is refused when its names are looked up waits only for those that make or free what has a name. */
#include "tests/random/steps.h"

#include <stdlib.h>
#include <string.h>

enum { ALL = (1 << TRACE_UIDS * TRACE_SLOTS) - 1 };

/* ---- what it is about ---- */

static unsigned bit_of(const struct trace *trace, unsigned peer, unsigned slot)
{
	uint32_t uid;
	unsigned own_slot;

	if (!trace_slot_of(trace, peer, slot, &uid, &own_slot))
		return 0;
	return 1u << ((uid - TRACE_FIRST_UID) * TRACE_SLOTS + own_slot);
}

/* Of what it names, or may mean by a handle that was told under that name. `nameless`: of what it makes without a
 * name, too, which has to do with those later ones only. */
static unsigned bits_of(const struct trace *trace, const struct run_record *record, bool nameless)
{
	const struct trace_request *request = &record->request;
	unsigned bits = request->verb == TRACE_LIST ? ALL : 0;

	for (unsigned i = 0; i < request->n_ops; i++)
		for (unsigned k = 0; k < request->ops[i].n_refs; k++)
			bits |= bit_of(trace, record->peer, request->ops[i].refs[k].slot);
	for (unsigned i = 0; i < request->n_tensors; i++)
		if (nameless || !request->tensors[i].anonymous)
			bits |= bit_of(trace, record->peer, request->tensors[i].slot);
	return bits;
}

/* A view has to do with all that its base has to do with. */
static unsigned with_views(const struct run *run, unsigned bits)
{
	unsigned before = 0, view;

	while (bits != before) {
		before = bits;
		for (unsigned i = 0; i < run->n; i++) {
			view = run->records[i].request.verb == TRACE_VIEW
				       ? bits_of(run->trace, &run->records[i], true)
				       : 0;
			bits |= view & bits ? view : 0;
		}
	}
	return bits;
}

/* ---- what came of it ---- */

static bool is_ordered(const struct run_record *record)
{
	switch (record->request.verb) {
	case TRACE_STAT:
	case TRACE_DUMP:
	case TRACE_COMPACT:
	case TRACE_SUBSCRIBE:
		return false;
	case TRACE_READ:
	case TRACE_OPEN:
	case TRACE_LIST:
		return record->answered;
	default:
		return true;
	}
}

static bool makes_or_frees(const struct run_record *record)
{
	enum trace_verb verb = record->request.verb;

	return verb == TRACE_ALLOC || verb == TRACE_VIEW || verb == TRACE_FREE;
}

static bool is_refused_early(const struct run_record *record)
{
	switch (record->status) {
	case NPUMEM__V1__STATUS__NOT_FOUND:
	case NPUMEM__V1__STATUS__PERMISSION_DENIED:
	case NPUMEM__V1__STATUS__ALREADY_EXISTS:
		return true;
	default:
		return record->status > 0 && makes_or_frees(record);
	}
}

/* Of one that had begun it says which operation that was. */
static bool is_nothing(const struct run_record *record)
{
	return record->answered && record->status == NPUMEM__V1__STATUS__CANCELLED &&
	       !strncmp(record->response->message, "request ", strlen("request "));
}

/* Whether what its client sends after it has not begun before its end. */
static bool holds(const struct run_record *record)
{
	enum trace_verb verb = record->request.verb;

	return verb == TRACE_ALLOC || verb == TRACE_LIST || verb == TRACE_STAT || verb == TRACE_COMPACT;
}

/* When a client goes nothing comes of what has not begun, but for what there is as soon as its names are looked
 * up. Of an operation that may have begun nobody knows how far it came, which is as good as nothing. */
static bool is_unlikely(const struct run *run, const struct run_record *record)
{
	enum trace_verb verb = record->request.verb;

	for (const struct run_record *before = run->records; !record->answered && before < record; before++)
		if (before->peer == record->peer && !before->answered && holds(before))
			return true;
	return !record->answered && verb > TRACE_SUBMIT && verb != TRACE_VIEW && verb != TRACE_FREE;
}

/* ---- all of them ---- */

static struct step step_of(const struct run *run, const struct run_record *record)
{
	bool is_waiting = record->request.verb == TRACE_ALLOC && record->request.wait_ms;

	return (struct step){.record = record,
			     .peer = record->peer,
			     .sent = record->sent,
			     .answered = record->answered ? record->answered : UINT64_MAX,
			     .key = run_turn_of(record),
			     .must_be = record->answered,
			     .is_unlikely = is_unlikely(run, record),
			     .is_waiting = is_waiting,
			     .is_nothing = is_nothing(record),
			     .is_refused = is_refused_early(record),
			     .named = bits_of(run->trace, record, false),
			     .tensors = with_views(run, bits_of(run->trace, record, true))};
}

/* Of what writes, the daemon that was killed may have done any part, and the next one does it again. */
static bool may_be_done_twice(const struct run_record *record)
{
	return record->crashed && record->request.verb <= TRACE_SUBMIT && record->request.verb != TRACE_READ;
}

static struct step before_crash(const struct run *run, const struct run_record *record)
{
	struct step step = step_of(run, record);

	step.answered = UINT64_MAX;
	step.key = record->sent;
	step.is_before_crash = true;
	step.must_be = step.is_waiting = step.is_nothing = step.is_refused = false;
	return step;
}

static struct step end_of(const struct run *run, unsigned peer)
{
	return (struct step){.peer = peer,
			     .sent = run->closed[peer],
			     .answered = UINT64_MAX,
			     .key = run->closed[peer],
			     .must_be = true,
			     .named = ALL,
			     .tensors = ALL};
}

static int by_key(const void *a, const void *b)
{
	const struct step *x = a, *y = b;

	return (x->key > y->key) - (x->key < y->key);
}

unsigned steps_of(const struct run *run, struct step steps[STEPS_MAX])
{
	uint64_t numbers = run->trace->seed;
	unsigned n = 0;

	for (unsigned i = 0; i < run->n; i++) {
		if (is_ordered(&run->records[i]))
			steps[n++] = step_of(run, &run->records[i]);
		if (may_be_done_twice(&run->records[i]))
			steps[n++] = before_crash(run, &run->records[i]);
	}
	for (unsigned peer = 0; peer < run->trace->n_peers; peer++)
		if (run->closed[peer])
			steps[n++] = end_of(run, peer);
	qsort(steps, n, sizeof(steps[0]), by_key);
	for (unsigned i = 0; i < n; i++)
		steps[i].number = trace_random(&numbers);
	return n;
}

/* Whether it was under way when the daemon was killed, and may have been done only then, and the other was
 * answered by that time. */
static bool may_be_done_later(const struct step *a, const struct step *b)
{
	return a->record && a->record->crashed > b->answered;
}

/* Whether it was refused twice, before the daemon was killed and after: nothing is kept of a refusal, and the
 * second one may be for what a later request of its client had begun to write by then. */
static bool may_be_refused_later(const struct step *a, const struct step *b)
{
	return b->is_before_crash && a->record && a->record->crashed && a->record->answered && a->record->status;
}

bool steps_is_before(const struct step *a, const struct step *b)
{
	if (a->peer != b->peer || a->sent >= b->sent || a->is_before_crash)
		return false;
	if (!b->record)
		return true;
	if (may_be_done_later(a, b) || may_be_refused_later(a, b))
		return false;
	if (a->is_nothing || b->is_nothing || a->is_waiting || a->is_refused || !(a->named & b->named))
		return false;
	/* A view is there as soon as its names are looked up. */
	return !(b->is_refused || b->record->request.verb == TRACE_VIEW) || makes_or_frees(a->record);
}
