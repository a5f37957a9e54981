/* A list of results for each session, and their cells. Invariant: a result is in its session's list exactly while
 * its cell is in use; persist->spare has a cell of its own that is not put. */
#include "daemon/service/kept/results.h"

#include <errno.h>
#include <utlist.h>

#include "daemon/service/kept/stale.h"

static struct persist *persist_of(const struct session *session)
{
	return &session->service->persist;
}

/* Makes persist->spare, with a cell, and prepares it and n_changes. */
static int take_spare(struct service *service, uint32_t n_changes, struct npumem_error *error)
{
	struct persist *persist = &service->persist;
	struct result *spare;
	int status;

	if (persist->spare)
		return persist_prepare(service, STORE_RESULTS, persist->spare->cell, n_changes + 1, error);
	spare = heap_alloc(service->heap, sizeof(*spare));
	if (!spare)
		return heap_exhausted(error);
	status = persist_take_cell(service, STORE_RESULTS, n_changes + 1, &spare->cell, error);
	if (status)
		heap_free(service->heap, spare);
	else
		persist->spare = spare;
	return status;
}

int results_prepare(struct session *session, uint32_t n_changes, struct npumem_error *error)
{
	if (!results_are_kept(session))
		return persist_prepare(session->service, STORE_TENSORS, PERSIST_NO_CELL, n_changes, error);
	/* And to drop the oldest one. */
	return take_spare(session->service, n_changes + 2, error);
}

/* Charged, as a client makes the daemon hold it. */
static void add(struct session *session, struct result *result)
{
	DL_APPEND(session->results, result);
	session->n_results++;
	limits_charge(&session->service->limits, session->user, LIMITS_REQUEST_BYTES, sizeof(*result));
}

static void take_out(struct session *session, struct result *result)
{
	DL_DELETE(session->results, result);
	session->n_results--;
	limits_give_back(&session->service->limits, session->user, LIMITS_REQUEST_BYTES, sizeof(*result));
}

static bool is_full(const struct session *session)
{
	struct npumem_error error = {.status = 0};

	return session->n_results == RESULTS_MAX ||
	       limits_check(&session->service->limits, session->user, LIMITS_REQUEST_BYTES, sizeof(struct result),
			    &error);
}

static void drop(struct session *session, struct result *result)
{
	struct service *service = session->service;

	take_out(session, result);
	persist_make_room(service, 1);
	store_drop(service->persist.store, STORE_RESULTS, result->cell, 0);
	persist_give_cell(service, STORE_RESULTS, result->cell);
	heap_free(service->heap, result);
}

static void forget_below(struct session *session, uint64_t id)
{
	if (id <= session->forgotten_below)
		return;
	session->forgotten_below = id;
	persist_make_room(session->service, 1);
	persist_session_put(session);
}

static void forget_oldest(struct session *session)
{
	forget_below(session, session->results->kept.request + 1);
	drop(session, session->results);
}

static void take_made(struct session *session, struct record *record)
{
	DL_DELETE2(session->made, record, prev_made, next_made);
	session->n_made--;
	record->is_made = false;
}

static void forget_oldest_made(struct session *session)
{
	forget_below(session, session->made->request + 1);
	take_made(session, session->made);
}

void results_restore_made(struct session *session, struct record *record)
{
	DL_APPEND2(session->made, record, prev_made, next_made);
	session->n_made++;
	record->is_made = true;
}

void results_add_made(struct session *session, struct record *record)
{
	if (session->n_made >= RESULTS_MAX)
		forget_oldest_made(session);
	results_restore_made(session, record);
}

static int by_request(const struct record *a, const struct record *b)
{
	return a->request < b->request ? -1 : a->request > b->request;
}

void results_sort_made(struct session *session)
{
	DL_SORT2(session->made, by_request, prev_made, next_made);
	while (session->n_made > RESULTS_MAX)
		forget_oldest_made(session);
}

static void put(struct session *session, const struct results_cell *kept)
{
	struct persist *persist = persist_of(session);
	struct npumem_error error = {.status = 0};
	struct result *result;

	if (session->results && is_full(session))
		forget_oldest(session);
	if (is_full(session) || take_spare(session->service, 0, &error)) {
		forget_below(session, kept->request + 1);
		return;
	}
	result = persist->spare;
	persist->spare = NULL;
	result->kept = *kept;
	result->kept.session = session->id;
	store_put(persist->store, STORE_RESULTS, result->cell, &result->kept, sizeof(result->kept));
	add(session, result);
}

void results_put(struct session *session, struct results_cell what)
{
	if (!results_are_kept(session))
		return;
	what.request = session->request;
	put(session, &what);
}

void results_gone(struct service *service, const struct tensor *tensor)
{
	struct record *record = record_of(tensor);
	struct session *maker;

	if (!record->is_made)
		return;
	maker = persist_session_at(&service->persist, record->maker_cell);
	take_made(maker, record);
	results_put_made(maker, record->request, record->request_index, tensor);
}

void results_put_made(struct session *session, uint64_t request, uint32_t index, const struct tensor *tensor)
{
	put(session, &(struct results_cell){.request = request,
					    .kind = RESULTS_MADE,
					    .index = index,
					    .handle = tensor->handle,
					    .address = tensor_address(tensor)});
}

/* Without a share of the round this is left to a later request. */
static void drop_answered(struct session *session)
{
	enum { MANY = 1024 }; /* so many changes are not left to the next commit */
	struct persist *persist = persist_of(session);
	uint64_t below = session->answered_below;

	if (!(session->results && session->results->kept.request < below) && !session->stale.n)
		return;
	if (!persist_has_share(persist, session->user))
		return;
	persist_change_for(persist, session->user);
	/* Not committed here: a result too many in the store does no harm. */
	while (session->results && session->results->kept.request < below)
		drop(session, session->results);
	stale_answered(session, below);
	if (store_n_changes(persist->store) >= MANY)
		persist_commit(persist);
}

void results_answered(struct session *session, uint64_t below)
{
	if (!session->has_token)
		return;
	if (below > session->answered_below)
		session->answered_below = below;
	while (session->made && session->made->request < session->answered_below)
		take_made(session, session->made);
	drop_answered(session);
}

void results_forget(struct session *session, uint64_t request)
{
	struct result *result, *next;

	DL_FOREACH_SAFE(session->results, result, next)
	if (result->kept.request == request && result->kept.kind != RESULTS_DIED)
		drop(session, result);
}

static struct result *find_death(const struct session *session, uint64_t request)
{
	struct result *result = session->results;

	while (result && !(result->kept.request == request && result->kept.kind == RESULTS_DIED))
		result = result->next;
	return result;
}

uint64_t results_deaths(const struct session *session, uint64_t request)
{
	const struct result *died = find_death(session, request);

	return died ? died->kept.number : 0;
}

void results_add_death(struct session *session, uint64_t request)
{
	struct result *died = find_death(session, request);

	persist_make_room(session->service, 1);
	if (!died) {
		put(session, &(struct results_cell){.request = request, .kind = RESULTS_DIED, .number = 1});
		return;
	}
	died->kept.number++;
	store_put(persist_of(session)->store, STORE_RESULTS, died->cell, &died->kept, sizeof(died->kept));
}

const struct result *results_next(const struct session *session, uint64_t request, const struct result *after)
{
	const struct result *result = after ? after->next : session->results;

	while (result && result->kept.request != request)
		result = result->next;
	return result;
}

void results_made(const struct session *session, uint64_t request, struct tensor **tensors, size_t n)
{
	for (struct record *record = session->made; record; record = record->next_made)
		if (record->request == request && record->request_index < n)
			tensors[record->request_index] = record_tensor(record);
}

int results_restore(struct session *session, uint32_t cell, const struct results_cell *kept)
{
	struct result *result = heap_alloc(session->service->heap, sizeof(*result));

	if (!result)
		return -ENOMEM;
	result->cell = cell;
	result->kept = *kept;
	add(session, result);
	return 0;
}

void results_deinit(struct session *session)
{
	while (session->made)
		take_made(session, session->made);
	while (session->results)
		drop(session, session->results);
	stale_deinit(session);
}

void results_leave(struct session *session)
{
	struct result *result;

	while ((result = session->results)) {
		take_out(session, result);
		heap_free(session->service->heap, result);
	}
}

void results_pool_deinit(struct persist *persist)
{
	heap_free(persist->heap, persist->spare);
	persist->spare = NULL;
}
