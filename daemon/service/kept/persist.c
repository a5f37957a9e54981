/* Writes the tables' cells. Invariant: between two calls of the service the cell of every live tensor with a
 * record, and of every session with a token, is up to date. Checks nothing: the callers have checked. */
#include "daemon/service/kept/persist.h"

#include <assert.h>
#include <errno.h>
#include <utlist.h>

#include "daemon/service/kept/tensor_cell.h"

int persist_begin(struct service *service, struct npumem_error *error)
{
	if (service->persist.store && !service->persist.loop_run)
		service->persist.loop_run = store_run_take(service->persist.store);
	return persist_prepare(service, STORE_TENSORS, PERSIST_NO_CELL, PERSIST_RESERVE, error);
}

void persist_deinit(struct persist *persist)
{
	heap_free(persist->heap, persist->owners);
	persist->owners = NULL;
	persist->owners_room = 0;
	heap_free(persist->heap, persist->sessions.free);
	heap_free(persist->heap, persist->results.free);
	persist->sessions = persist->results = (struct persist_cells){0};
}

static int refuse(int status, struct npumem_error *error)
{
	if (status == -ENOMEM)
		return heap_exhausted(error);
	return npumem_error_set(error, NPUMEM_RESOURCE_EXHAUSTED,
				"the state directory has no room for this: %s; nothing was changed",
				strerror(-status));
}

int persist_prepare(struct service *service, enum store_table table, uint32_t cell, uint32_t n_changes,
		    struct npumem_error *error)
{
	struct store *store = service->persist.store;
	int status = store ? store_prepare(store, table, cell + 1, n_changes) : 0;

	return status ? refuse(status, error) : 0;
}

void persist_make_room(struct service *service, uint32_t n_changes)
{
	struct store *store = service->persist.store;

	if (!store || !store_prepare(store, STORE_TENSORS, 0, n_changes))
		return;
	/* PERSIST_RESERVE was prepared when the service began, and a commit does not give it up. */
	store_commit(store);
	if (store_prepare(store, STORE_TENSORS, 0, n_changes))
		assert(n_changes > PERSIST_RESERVE);
}

/* ---- cells ---- */

static struct persist_cells *cells_of(struct persist *persist, enum store_table table)
{
	return table == STORE_SESSIONS ? &persist->sessions : &persist->results;
}

static int grow(struct persist *persist, struct persist_cells *cells, uint32_t n_cells)
{
	uint32_t room = cells->room ? cells->room : 64;
	uint32_t *free;

	if (n_cells <= cells->room)
		return 0;
	while (room < n_cells && room <= UINT32_MAX / 2)
		room *= 2;
	free = room < n_cells ? NULL : heap_alloc(persist->heap, room * sizeof(*free));
	if (!free)
		return -ENOMEM;
	if (cells->n)
		memcpy(free, cells->free, cells->n * sizeof(*free));
	heap_free(persist->heap, cells->free);
	cells->free = free;
	cells->room = room;
	return 0;
}

/* Room for as many as the list of free cells, so that it grows as seldom. */
static int grow_owners(struct persist *persist)
{
	uint32_t room = persist->sessions.room;
	struct session **owners;

	if (room == persist->owners_room)
		return 0;
	owners = heap_zalloc(persist->heap, room, sizeof(struct session *));
	if (!owners)
		return -ENOMEM;
	if (persist->owners_room)
		memcpy(owners, persist->owners, persist->owners_room * sizeof(struct session *));
	heap_free(persist->heap, persist->owners);
	persist->owners = owners;
	persist->owners_room = room;
	return 0;
}

int persist_take_cell(struct service *service, enum store_table table, uint32_t n_changes, uint32_t *cell,
		      struct npumem_error *error)
{
	struct persist_cells *cells = cells_of(&service->persist, table);
	bool is_new = !cells->n;
	int status;

	if (is_new && (grow(&service->persist, cells, cells->n_cells + 1) || grow_owners(&service->persist)))
		return heap_exhausted(error);
	*cell = is_new ? cells->n_cells : cells->free[cells->n - 1];
	status = persist_prepare(service, table, *cell, n_changes, error);
	if (status)
		return status;
	if (is_new)
		cells->n_cells++;
	else
		cells->n--;
	return 0;
}

void persist_give_cell(struct service *service, enum store_table table, uint32_t cell)
{
	struct persist_cells *cells = cells_of(&service->persist, table);

	cells->free[cells->n++] = cell;
}

int persist_find_cells(struct persist *persist, enum store_table table, bool (*used)(void *ctx, uint32_t cell),
		       void *ctx)
{
	struct persist_cells *cells = cells_of(persist, table);
	uint32_t n = store_n_cells(persist->store, table);

	if (grow(persist, cells, n) || grow_owners(persist))
		return -ENOMEM;
	cells->n_cells = n;
	for (uint32_t i = n; i-- > 0;)
		if (!used(ctx, i))
			cells->free[cells->n++] = i;
	return 0;
}

/* ---- tensors ---- */

int persist_prepare_new(struct service *service, struct tensor *const *tensors, unsigned n,
			struct npumem_error *error)
{
	uint32_t last = 0;

	if (!service->persist.store)
		return 0;
	for (unsigned i = 0; i < n; i++) {
		uint32_t slot = device_handle_slot(tensors[i]->handle);

		last = slot > last ? slot : last;
	}
	return persist_prepare(service, STORE_TENSORS, last, n, error);
}

static void put(struct service *service, const struct persist_tensor *tensor)
{
	uint8_t bytes[STORE_TENSOR_BYTES_MAX];
	size_t n = tensor_cell_pack(tensor, bytes);

	store_put(service->persist.store, STORE_TENSORS, device_handle_slot(tensor->saved.handle), bytes, n);
}

void persist_put(struct service *service, const struct tensor *tensor)
{
	const struct record *record = record_of(tensor);
	const struct record_grants *grants = record_grants(record);
	struct persist_tensor cell;

	if (!service->persist.store)
		return;
	device_describe(service->device, tensor, &cell.saved);
	memcpy(cell.name, record->name, sizeof(cell.name));
	cell.session = record->session_id;
	cell.request = record->request;
	cell.index = record->request_index;
	cell.uid = record->uid;
	cell.n_grants = grants ? grants->n : 0;
	cell.reserved = 0;
	for (unsigned i = 0; i < cell.n_grants; i++) {
		cell.grants[i].uid = grants->to[i].uid;
		cell.grants[i].access = grants->to[i].access;
	}
	put(service, &cell);
}

void persist_disown(struct service *service, const struct tensor *tensor)
{
	struct persist_tensor cell = {.uid = record_of(tensor)->uid};

	if (!service->persist.store)
		return;
	device_describe(service->device, tensor, &cell.saved);
	put(service, &cell);
}

void persist_drop(struct service *service, const struct tensor *tensor)
{
	if (!service->persist.store)
		return;
	persist_make_room(service, 1);
	store_drop(service->persist.store, STORE_TENSORS, device_handle_slot(tensor->handle),
		   device_handle_stamp(tensor->handle));
}

/* ---- sessions ---- */

/* Tokens are random, so their first bytes are a hash that no client can choose. The bucket follows from the bytes
 * that the client sent, and each token in it is compared as a whole. */
static size_t bucket_of(const uint8_t *token)
{
	return (token[0] | (size_t)token[1] << 8) % PERSIST_BUCKETS;
}

static bool is_same(const uint8_t *a, const uint8_t *b)
{
	unsigned differ = 0;

	for (size_t i = 0; i < PERSIST_TOKEN_BYTES; i++)
		differ |= a[i] ^ b[i];
	return !differ;
}

struct session *persist_session_find(const struct persist *persist, uint32_t uid,
				     const uint8_t token[PERSIST_TOKEN_BYTES])
{
	struct session *session = persist->by_token[bucket_of(token)];

	while (session && !(session->uid == uid && is_same(session->token, token)))
		session = session->bucket_next;
	return session;
}

void persist_session_hide(struct session *session)
{
	LL_DELETE2(session->service->persist.by_token[bucket_of(session->token)], session, bucket_next);
}

void persist_session_adopt(struct session *session)
{
	session->service->persist.owners[session->cell] = session;
	LL_PREPEND2(session->service->persist.by_token[bucket_of(session->token)], session, bucket_next);
}

int persist_session_begin(struct session *session, bool lingers, struct npumem_error *error)
{
	struct service *service = session->service;
	int status;

	if (session->has_token && session->lingers == lingers)
		return 0;
	if (session->has_token) {
		session->lingers = lingers;
		persist_session_put(session);
		persist_commit(&service->persist);
		return 0;
	}
	status = persist_take_cell(service, STORE_SESSIONS, 1, &session->cell, error);
	if (status)
		return status;
	if (service->persist.random(session->token, sizeof(session->token)))
		status = npumem_error_set(error, NPUMEM_INTERNAL, "no random bytes for a token");
	if (status) {
		persist_give_cell(service, STORE_SESSIONS, session->cell);
		return status;
	}
	session->has_token = true;
	session->lingers = lingers;
	persist_session_adopt(session);
	persist_session_put(session);
	persist_commit(&service->persist);
	return 0;
}

void persist_session_put(struct session *session)
{
	struct persist_session cell = {.id = session->id,
				       .forgotten_below = session->forgotten_below,
				       .changed_below = session->changed_below,
				       .uid = session->uid,
				       .lingers = session->lingers};

	memcpy(cell.token, session->token, sizeof(cell.token));
	store_put(session->service->persist.store, STORE_SESSIONS, session->cell, &cell, sizeof(cell));
}

void persist_session_drop(struct session *session)
{
	struct service *service = session->service;

	persist_session_hide(session);
	service->persist.owners[session->cell] = NULL;
	persist_make_room(service, 1);
	store_drop(service->persist.store, STORE_SESSIONS, session->cell, 0);
	persist_give_cell(service, STORE_SESSIONS, session->cell);
}
