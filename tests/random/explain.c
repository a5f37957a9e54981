/* Looks for an order of a trace's requests in which the model (model.h) would have answered each of them as the
 * daemon did. A request comes after all that were answered before it was sent, and after those that its client
 * sent before it and that are about the same tensors: what does not depend on one another may end in any order,
 * and others may be told of the later one first. What a client sends while its allocation waits for room need not
 * wait for that. One that was never answered, as its client was gone, is somewhere or nowhere.
 *
 * Tried first is the order in which they began, with an allocation that waited where it was answered: that is the
 * daemon's own, so that the search hardly ever has to go back. Where it must, it goes back to the last step that
 * has to do with what could not go on, and not where it was before. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/random/model.h"
#include "tests/random/steps.h"

enum {
	TRIES_MAX = 20000, /* an order that is right is found with hardly more than there are requests */
	STATES = 1 << 16,
};

/* Where it was: what was done, and what that has come to. */
struct state {
	uint64_t digest; /* 0: none */
	unsigned tensors;
};

struct search {
	struct run *run;
	struct model *model;
	struct step steps[STEPS_MAX];
	unsigned n, n_done, n_must; /* n_must: that must be and are not done */
	unsigned n_tries;
	uint64_t done;	  /* the numbers of those that are, xored */
	unsigned tensors; /* after a search that found nothing: what those are about that could not go on */
	struct state states[STATES];
	unsigned deepest;
	char why[RUN_WRONG_BYTES / 2]; /* nothing went on there */
};

/* ---- one step ---- */

/* Whether nothing else was under way between its sending and its answer. */
static bool is_alone(const struct run *run, const struct run_record *record)
{
	for (unsigned i = 0; i < run->n; i++) {
		const struct run_record *other = &run->records[i];

		if (other != record && other->sent < record->answered &&
		    (!other->answered || other->answered > record->sent))
			return false;
	}
	/* What a client leaves goes in its time. */
	for (unsigned peer = 0; peer < run->trace->n_peers; peer++)
		if (run->closed[peer])
			return false;
	return true;
}

static bool do_step(struct search *search, const struct step *step)
{
	const struct run_record *record = step->record;
	struct model_request request = {.peer = step->peer};

	search->n_tries++;
	if (!record)
		model_close(search->model, step->peer);
	if (!record || step->is_nothing)
		return true;
	request.request = &record->request;
	request.response = step->is_before_crash ? NULL : record->response;
	request.has_crashed = record->crashed;
	request.is_alone = record->request.verb == TRACE_LIST && is_alone(search->run, record);
	for (unsigned i = 0; i < record->request.n_ops; i++)
		for (unsigned k = 0; k < record->request.ops[i].n_refs; k++)
			request.handles[i][k] = record->named[i][k];
	return model_do(search->model, &request);
}

static void note_why(struct search *search, const struct step *step)
{
	const struct run_record *record = step->record;
	char text[1024], line[32];

	if (search->n_done < search->deepest)
		return;
	if (search->n_done > search->deepest)
		search->why[0] = 0;
	search->deepest = search->n_done;
	snprintf(line, sizeof(line), "\n  request %u,", (unsigned)(record - search->run->records) + 1);
	if (strstr(search->why, line) || strlen(search->why) > sizeof(search->why) / 2)
		return;
	trace_print_request(search->run->trace, step->peer, &record->request, text, sizeof(text));
	snprintf(search->why + strlen(search->why), sizeof(search->why) - strlen(search->why),
		 "%s peer %u:%.300s\n    answered %d %.120s; %.200s", line, step->peer, text, record->status,
		 record->response ? record->response->message : "", model_why(search->model));
}

/* ---- the search ---- */

/* Whether all that must go before it is done. `bound`: the first answer to one that is not. */
static bool may_be_next(const struct search *search, const struct step *step, uint64_t bound)
{
	if (step->is_done || step->sent > bound)
		return false;
	for (const struct step *other = search->steps; other < search->steps + search->n; other++)
		if (!other->is_done && steps_is_before(other, step))
			return false;
	return true;
}

static uint64_t first_answer(const struct search *search)
{
	uint64_t first = UINT64_MAX;

	for (const struct step *step = search->steps; step < search->steps + search->n; step++)
		if (!step->is_done && step->answered < first)
			first = step->answered;
	return first;
}

static bool go_on(struct search *search);

static void set_done(struct search *search, struct step *step, bool is_done)
{
	step->is_done = is_done;
	search->done ^= step->number;
	search->n_done += is_done ? 1 : -1u;
	search->n_must -= !step->must_be ? 0 : is_done ? 1 : -1u;
}

static bool go_on_after(struct search *search, struct step *step)
{
	set_done(search, step, true);
	if (go_on(search))
		return true;
	set_done(search, step, false);
	return false;
}

enum outcome { FOUND, REFUSED, NOWHERE };

/* NOWHERE: search->tensors says what could not go on behind it. */
static enum outcome try_step(struct search *search, struct step *step, bool with_effect)
{
	size_t mark = model_mark(search->model);

	if (!with_effect && step->must_be)
		return REFUSED;
	if (with_effect && !do_step(search, step)) {
		if (step->must_be)
			note_why(search, step);
		return REFUSED;
	}
	if (go_on_after(search, step))
		return FOUND;
	model_undo(search->model, mark);
	return NOWHERE;
}

/* What has no effect may as well be next as later. True: *found says whether the rest is found behind it. */
static bool take_harmless(struct search *search, struct step *step, bool *found)
{
	size_t mark = model_mark(search->model);

	if (!step->record || !step->must_be || !do_step(search, step))
		return false;
	if (model_mark(search->model) == mark) {
		*found = go_on_after(search, step);
		return true;
	}
	model_undo(search->model, mark);
	return false;
}

static struct state *find_state(struct search *search)
{
	uint64_t digest = (model_digest(search->model) ^ search->done) | 1, i = digest;

	while (search->states[i % STATES].digest && search->states[i % STATES].digest != digest)
		i++;
	search->tensors = search->states[i % STATES].tensors;
	if (search->states[i % STATES].digest)
		return NULL;
	search->states[i % STATES].digest = digest;
	return &search->states[i % STATES];
}

/* One step after the other. What could not go on behind a step that has nothing to do with it could not go on in
 * its place, either. */
static bool try_all(struct search *search, uint64_t bound, unsigned *tensors)
{
	for (unsigned i = 0; i < 2 * search->n && search->n_tries < TRIES_MAX; i++) {
		struct step *step = &search->steps[i / 2];
		enum outcome outcome;

		if (!may_be_next(search, step, bound))
			continue;
		outcome = try_step(search, step, i % 2 == step->is_unlikely);
		if (outcome == FOUND)
			return true;
		if (outcome == NOWHERE && !(search->tensors & step->tensors)) {
			*tensors = search->tensors;
			return false;
		}
		*tensors |= outcome == NOWHERE ? search->tensors : step->tensors;
	}
	return false;
}

static bool go_on(struct search *search)
{
	uint64_t bound = first_answer(search);
	struct state *state;
	bool found;

	if (!search->n_must)
		return true;
	state = find_state(search);
	if (!state)
		return false;
	for (unsigned i = 0; i < search->n; i++)
		if (may_be_next(search, &search->steps[i], bound) &&
		    take_harmless(search, &search->steps[i], &found)) {
			state->tensors = search->tensors;
			return found;
		}
	if (try_all(search, bound, &state->tensors))
		return true;
	search->tensors = state->tensors;
	return false;
}

/* ---- all of it ---- */

/* What was sent and answered when, where that is no longer than a page. */
static void tell_history(const struct run *run, char *text, size_t bytes)
{
	enum { PAGE = 100 };
	size_t used = 0;

	for (unsigned i = 0; i < run->n && run->n <= PAGE && used < bytes; i++) {
		const struct run_record *record = &run->records[i];
		char request[1024];

		trace_print_request(run->trace, record->peer, &record->request, request, sizeof(request));
		used += (size_t)snprintf(text + used, bytes - used,
					 "\n  %u, peer %u, turns %u to %u:%.100s -> %d %llx", i + 1, record->peer,
					 (unsigned)record->sent, (unsigned)record->answered, request,
					 record->status, (unsigned long long)record->handles[0]);
	}
}

/* A handle is never given twice, not even of what is gone. */
static void check_handles(struct run *run)
{
	static uint64_t told[RUN_RECORDS * TRACE_TENSORS];
	unsigned n = 0;

	for (unsigned i = 0; i < run->n; i++) {
		const struct run_record *record = &run->records[i];

		if (record->request.verb != TRACE_ALLOC && record->request.verb != TRACE_VIEW)
			continue;
		for (unsigned k = 0; k < TRACE_TENSORS && record->handles[k]; k++) {
			for (unsigned before = 0; before < n; before++)
				if (told[before] == record->handles[k])
					run_fail(run, "request %u: its handle was given before", i + 1);
			told[n++] = record->handles[k];
		}
	}
}

void run_explain(struct run *run)
{
	static struct search search;
	char history[RUN_WRONG_BYTES / 2] = "";

	check_handles(run);
	memset(&search, 0, sizeof(search));
	search.run = run;
	search.model = model_new(run->trace);
	search.n = steps_of(run, search.steps);
	for (unsigned i = 0; i < search.n; i++)
		search.n_must += search.steps[i].must_be;
	if (!go_on(&search)) {
		tell_history(run, history, sizeof(history));
		run_fail(run, "no order of the requests explains their answers%s: after %u of %u%s%s",
			 search.n_tries < TRIES_MAX ? "" : " (as far as was looked)", search.deepest, search.n,
			 search.why, history);
	}
	model_free(search.model);
}
