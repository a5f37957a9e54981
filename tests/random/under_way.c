/* By slots: what a handle stands for is not looked at, so that two may seem to meet that do not. */
#include "tests/random/under_way.h"

static bool mentions(const struct trace_request *request, unsigned slot)
{
	for (unsigned i = 0; i < request->n_ops; i++)
		for (unsigned k = 0; k < request->ops[i].n_refs; k++)
			if (request->ops[i].refs[k].slot == slot)
				return true;
	for (unsigned i = 0; i < request->n_tensors; i++)
		if (request->tensors[i].slot == slot)
			return true;
	return false;
}

/* Whether a request of the client that is not answered has to do with the slot; `waiting`: as an allocation that
 * may stand in line. */
static bool is_under_way(const struct run *run, unsigned peer, unsigned slot, bool waiting)
{
	for (unsigned i = 0; i < run->n; i++) {
		const struct run_record *record = &run->records[i];

		if (record->peer == peer && !record->answered && (!waiting || record->request.wait_ms) &&
		    mentions(&record->request, slot))
			return true;
	}
	return false;
}

bool under_way_has_waiters(const struct run *run, unsigned peer)
{
	for (unsigned slot = 0; slot < TRACE_SLOTS; slot++)
		if (is_under_way(run, peer, slot, true))
			return true;
	return false;
}

bool under_way_avoid_waiters(const struct run *run, unsigned peer, struct trace_request *request)
{
	for (unsigned i = 0; i < request->n_ops; i++)
		for (unsigned k = 0; k < request->ops[i].n_refs; k++) {
			struct trace_ref *ref = &request->ops[i].refs[k];

			if (ref->slot >= TRACE_SLOTS || !is_under_way(run, peer, ref->slot, true))
				continue;
			if (request->verb == TRACE_VIEW && !k)
				return false;
			*ref = (struct trace_ref){TRACE_NOBODY, false};
		}
	for (unsigned i = 0; i < request->n_tensors; i++) {
		if (is_under_way(run, peer, request->tensors[i].slot, true))
			return false;
		if (is_under_way(run, peer, request->tensors[i].slot, false))
			request->wait_ms = 0;
	}
	return true;
}

static bool writes(const struct trace_request *request)
{
	return request->verb != TRACE_READ && (request->verb <= TRACE_ALLOC || request->verb == TRACE_FREE);
}

static bool is_of_shared(const struct trace_request *request)
{
	for (unsigned slot = TRACE_SHARED; slot < TRACE_NOBODY; slot++)
		if (mentions(request, slot))
			return true;
	return false;
}

/* Whether one under way and a new one may be about the same bytes, and one writes them. */
static bool disturbs(const struct run *run, const struct run_record *a, const struct run_record *b)
{
	return (writes(&a->request) || writes(&b->request)) &&
	       (a->peer == b->peer || run->views_shared ||
		(is_of_shared(&a->request) && is_of_shared(&b->request)));
}

void under_way_note_disturbed(struct run *run, struct run_record *record)
{
	run->views_shared |= record->request.verb == TRACE_VIEW && is_of_shared(&record->request);
	for (struct run_record *other = run->records; other < record; other++)
		if (!other->answered && disturbs(run, other, record))
			other->disturbed = record->disturbed = true;
}
