/* Sessions first, as tensors belong to them: those that have a token, and for a replay also those that only own a
 * tensor. Then tensors, in the order of device_saved_pass. A tensor is restored at its old place, or it is
 * lost. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/service/kept/recover.h"
#include "daemon/service/kept/recovery.h"
#include "daemon/service/kept/results.h"
#include "daemon/service/tables.h"
#include "daemon/service/tensors/tensors.h"

enum { LINES_MAX = 16 }; /* about single tensors */

/* ---- sessions ---- */

/* Drops a cell if it is damaged: nothing is known of it. Returns whether it was. */
static bool drop_damaged(struct recovery *recovery, enum store_table table, uint32_t cell)
{
	if (!store_is_lost(recovery->store, table, cell))
		return false;
	recovery_drop(recovery, table, cell, 0);
	return true;
}

static const struct persist_session *session_cell(struct recovery *recovery, uint32_t cell)
{
	size_t bytes;
	const struct persist_session *kept = store_cell(recovery->store, STORE_SESSIONS, cell, &bytes);

	return kept && bytes == sizeof(*kept) && kept->id && kept->id <= INT64_MAX ? kept : NULL;
}

static bool is_session(void *ctx, uint32_t cell)
{
	return session_cell(ctx, cell) != NULL;
}

static int restore_session(struct recovery *recovery, uint32_t cell, const struct persist_session *kept,
			   struct recovery_session *known)
{
	struct session *session = recovery->host->new_session(recovery->host->ctx);

	if (!session || session_restore(session, recovery->service, kept, cell))
		return -ENOMEM;
	known->id = kept->id;
	known->session = session;
	recovery->report->n_sessions++;
	return 0;
}

/* A session with the token by which a replay finds it. */
static struct persist_session numbered(uint64_t id, uint32_t uid)
{
	struct persist_session session = {.id = id, .uid = uid};

	for (unsigned i = 0; i < sizeof(id); i++)
		session.token[i] = (uint8_t)(id >> 8 * i);
	return session;
}

static int restore_session_at(struct recovery *recovery, uint32_t cell, struct recovery_session *known)
{
	const struct persist_session *kept = session_cell(recovery, cell);
	struct persist_session own;

	if (!kept)
		return 0;
	own = recovery_is_replay(recovery) ? numbered(kept->id, kept->uid) : *kept;
	return restore_session(recovery, cell, &own, known);
}

static uint32_t sort_sessions(struct recovery_session *known, uint32_t n)
{
	uint32_t n_kept = 0;

	for (uint32_t i = 0; i < n; i++)
		if (known[i].session)
			known[n_kept++] = known[i];
	if (n_kept)
		qsort(known, n_kept, sizeof(*known), recovery_by_id);
	return n_kept;
}

static int restore_tokens(struct recovery *recovery)
{
	uint32_t n = store_n_cells(recovery->store, STORE_SESSIONS), n_lost = 0;
	int status;

	recovery->sessions = heap_zalloc(recovery->service->heap, n, sizeof(struct recovery_session));
	if (!recovery->sessions)
		return -ENOMEM;
	for (uint32_t i = 0; i < n; i++)
		n_lost += drop_damaged(recovery, STORE_SESSIONS, i);
	status = persist_find_cells(&recovery->service->persist, STORE_SESSIONS, is_session, recovery);
	for (uint32_t i = 0; i < n && !status; i++)
		status = restore_session_at(recovery, i, &recovery->sessions[i]);
	if (status)
		return status;
	recovery->n_sessions = sort_sessions(recovery->sessions, n);
	if (n_lost)
		recovery_say(recovery, true, "lost: %" PRIu32 " sessions, whose cells are damaged", n_lost);
	return 0;
}

struct owner {
	uint64_t id;
	uint32_t uid;
};

static int by_owner(const void *a, const void *b)
{
	const struct owner *one = a, *other = b;

	return one->id < other->id ? -1 : one->id > other->id;
}

/* Lists the sessions that have an unnamed tensor and had no token, each once. */
static uint32_t find_owners(const struct recovery *recovery, struct owner *owners)
{
	uint32_t n = store_n_cells(recovery->store, STORE_TENSORS), n_found = 0, n_kept = 0;
	struct persist_tensor kept;

	for (uint32_t slot = 0; slot < n; slot++)
		if (recovery_tensor(recovery, slot, &kept) && !kept.name[0] && kept.session &&
		    kept.session <= INT64_MAX && !recovery_session(recovery, kept.session))
			owners[n_found++] = (struct owner){kept.session, kept.uid};
	if (n_found)
		qsort(owners, n_found, sizeof(*owners), by_owner);
	for (uint32_t i = 0; i < n_found; i++)
		if (!i || owners[i].id != owners[i - 1].id)
			owners[n_kept++] = owners[i];
	return n_kept;
}

static int restore_owner(struct recovery *recovery, const struct owner *owner, struct recovery_session *known)
{
	struct persist_session kept = numbered(owner->id, owner->uid);
	struct npumem_error error = {.status = 0};
	uint32_t cell;
	int status;

	if (persist_take_cell(recovery->service, STORE_SESSIONS, 1, &cell, &error))
		return -ENOSPC;
	status = restore_session(recovery, cell, &kept, known);
	if (!status)
		persist_session_put(known->session);
	return status;
}

static int restore_owners(struct recovery *recovery)
{
	const struct heap *heap = recovery->service->heap;
	uint32_t n_cells = store_n_cells(recovery->store, STORE_TENSORS), n, n_known = recovery->n_sessions;
	struct owner *owners = heap_zalloc(heap, n_cells, sizeof(*owners));
	struct recovery_session *sessions;
	int status = 0;

	if (!owners)
		return -ENOMEM;
	n = find_owners(recovery, owners);
	sessions = heap_zalloc(heap, n_known + n, sizeof(*sessions));
	if (sessions && n_known)
		memcpy(sessions, recovery->sessions, n_known * sizeof(*sessions));
	status = sessions ? 0 : -ENOMEM;
	for (uint32_t i = 0; i < n && !status; i++)
		status = restore_owner(recovery, &owners[i], &sessions[n_known + i]);
	heap_free(heap, owners);
	if (!sessions)
		return status;
	heap_free(heap, recovery->sessions);
	recovery->sessions = sessions;
	recovery->n_sessions = sort_sessions(sessions, n_known + n);
	return status;
}

int recover_sessions(struct recovery *recovery)
{
	int status = restore_tokens(recovery);

	return status || !recovery_is_replay(recovery) ? status : restore_owners(recovery);
}

/* ---- tensors ---- */

static void name_plainly(void *ctx, const struct tensor *tensor, char *buffer, size_t bytes)
{
	const struct record *record = record_of(tensor);

	(void)ctx;
	if (record && record->name[0])
		snprintf(buffer, bytes, "%s", record->name);
	else
		snprintf(buffer, bytes, "a tensor without a name");
}

static int refuse(struct npumem_error *error, const char *why)
{
	return npumem_error_set(error, NPUMEM_INVALID, "%s", why);
}

/* A tensor without a name whose session is not restored, or a view of such a tensor: it is freed when all tensors
 * have their places. */
static bool is_orphan(const struct recovery *recovery, const struct persist_tensor *kept)
{
	const struct tensor *base =
		kept->saved.base ? device_find(recovery->service->device, kept->saved.base) : NULL;

	return (!kept->name[0] && !recovery_session(recovery, kept->session)) || (base && !base->owner);
}

/* Checks the parts of a cell that the device does not check. */
static int check_cell(const struct recovery *recovery, const struct persist_tensor *kept,
		      struct npumem_error *error)
{
	char label[NPUMEM_NAME_BYTES_MAX + 1] = "";

	if (is_orphan(recovery, kept))
		return 0;
	if (!kept->name[0]) {
		memcpy(label, kept->name + 1, NPUMEM_NAME_BYTES_MAX);
		return names_check_label(label, error);
	}
	if (names_find(&recovery->service->names, kept->uid, kept->name))
		return refuse(error, "another one has its name");
	return names_check(kept->name, error);
}

/* Of cells of different times, an older one may have a grant that was taken back. */
static int copy_grants(const struct recovery *recovery, const struct persist_tensor *kept, struct record *record)
{
	if (!kept->n_grants || !kept->name[0] || recovery->mixed)
		return 0;
	record->grants = heap_zalloc(recovery->service->heap, 1, sizeof(*record->grants));
	if (!record->grants)
		return -ENOMEM;
	record->grants->n = kept->n_grants;
	for (uint32_t i = 0; i < kept->n_grants; i++) {
		record->grants->to[i].uid = kept->grants[i].uid;
		record->grants->to[i].access = (enum record_access)kept->grants[i].access;
	}
	return 0;
}

static int attach(struct recovery *recovery, struct tensor *tensor, const struct persist_tensor *kept,
		  struct session *session)
{
	struct record *record = tensor_owner_room(tensor);
	struct service *service = recovery->service;

	/* No new session may get the id of the session that made it. */
	if (kept->session > service->last_session && kept->session <= INT64_MAX)
		service->last_session = kept->session;
	if (copy_grants(recovery, kept, record))
		return -ENOMEM;
	memcpy(record->name, kept->name, sizeof(record->name));
	record->session_id = kept->session;
	if (session && !recovery_is_replay(recovery)) {
		record->request = kept->request;
		record->request_index = kept->index;
		record->maker_cell = session->cell;
	}
	if (tensors_readopt(service, session, kept->uid, tensor)) {
		heap_free(service->heap, record_grants(record));
		return -ENOMEM;
	}
	/* The next process must not believe them either. */
	if (recovery->mixed && kept->n_grants) {
		persist_make_room(service, 1);
		persist_put(service, tensor);
		recovery->report->n_ungranted++;
	}
	/* All of them for now: results_sort_made keeps the latest. */
	if (record->request)
		results_restore_made(session, record);
	*(tensor->base ? &recovery->report->n_views : &recovery->report->n_tensors) += 1;
	return 0;
}

static void lose_tensor(struct recovery *recovery, const struct persist_tensor *kept, uint32_t slot,
			const struct npumem_error *error)
{
	if (++recovery->report->n_refused <= LINES_MAX)
		recovery_say(recovery, true, "lost: tensor %.63s of uid %" PRIu32 ": %s",
			     kept->name[0] ? kept->name : "without a name", kept->uid, error->message);
	recovery_drop(recovery, STORE_TENSORS, slot, device_handle_stamp(kept->saved.handle));
}

static int restore_tensor(struct recovery *recovery, uint32_t slot, const struct persist_tensor *kept)
{
	struct service *service = recovery->service;
	struct npumem_error error = {.status = 0};
	struct error_context context = {.error = &error, .name = name_plainly};
	struct tensor *tensor;
	int status = check_cell(recovery, kept, &error);

	if (!status)
		status = device_restore(service->device, &kept->saved, &tensor, &context);
	if (status < 0)
		return status;
	if (status) {
		lose_tensor(recovery, kept, slot, &error);
		return 0;
	}
	if (!is_orphan(recovery, kept))
		return attach(recovery, tensor, kept, recovery_session(recovery, kept->session));
	recovery->report->n_ended++;
	return 0;
}

enum { PASSES = 3 };

/* Restores the slots without a tensor. A damaged one is never used again, as the handles that it gave are unknown.
 * Counts the tensors of each pass. */
static int restore_slots(struct recovery *recovery, uint32_t n_of_pass[PASSES])
{
	uint32_t n = store_n_cells(recovery->store, STORE_TENSORS);
	int status = device_restore_begin(recovery->service->device, n, recovery->mixed);
	struct persist_tensor kept;
	size_t bytes;

	for (uint32_t slot = n; slot-- > 0 && !status;) {
		uint64_t stamp = store_stamp(recovery->store, STORE_TENSORS, slot);
		bool is_lost = store_is_lost(recovery->store, STORE_TENSORS, slot);

		if (!is_lost && recovery_tensor(recovery, slot, &kept)) {
			n_of_pass[device_saved_pass(&kept.saved)]++;
			continue;
		}
		if (is_lost || store_cell(recovery->store, STORE_TENSORS, slot, &bytes)) {
			recovery->report->n_damaged++;
			recovery_drop(recovery, STORE_TENSORS, slot, UINT64_MAX);
		} else if (stamp <= UINT32_MAX) {
			device_restore_free(recovery->service->device, slot, stamp);
		}
	}
	return status;
}

int recover_tensors(struct recovery *recovery)
{
	uint32_t n = store_n_cells(recovery->store, STORE_TENSORS), n_of_pass[PASSES] = {0};
	int status = restore_slots(recovery, n_of_pass);

	for (unsigned pass = 0; pass < PASSES; pass++)
		for (uint32_t slot = 0; slot < n && n_of_pass[pass] && !status; slot++) {
			struct persist_tensor kept;

			if (recovery_tensor(recovery, slot, &kept) && device_saved_pass(&kept.saved) == pass)
				status = restore_tensor(recovery, slot, &kept);
		}
	for (uint32_t i = 0; i < recovery->n_sessions && !status; i++)
		results_sort_made(recovery->sessions[i].session);
	if (recovery->report->n_damaged)
		recovery_say(recovery, true, "lost: %" PRIu32 " tensors, whose cells are damaged",
			     recovery->report->n_damaged);
	if (recovery->report->n_ungranted)
		recovery_say(recovery, true,
			     "lost: the grants of %" PRIu32 " tensors, as some may have been taken back",
			     recovery->report->n_ungranted);
	return status;
}

/* A view whose base was freed may be left when the daemon ends: as for any view that is freed, the result of the
 * request that made it is kept. */
static void keep_made(const struct recovery *recovery, const struct tensor *tensor)
{
	struct persist_tensor kept;
	bool is_kept = recovery_tensor(recovery, device_handle_slot(tensor->handle), &kept);
	struct session *session = is_kept && kept.request && !recovery_is_replay(recovery)
					  ? recovery_session(recovery, kept.session)
					  : NULL;

	if (session)
		results_put_made(session, kept.request, kept.index, tensor);
}

/* Their bytes are zeroed and never written. Views first, as a base takes its own along. */
static void release_orphans(struct recovery *recovery, bool views)
{
	struct device *device = recovery->service->device;
	struct tensor *tensor = device_next(device, NULL), *next;

	for (; tensor; tensor = next) {
		next = device_next(device, tensor);
		if (tensor->owner || !tensor->base == views)
			continue;
		keep_made(recovery, tensor);
		recovery_drop(recovery, STORE_TENSORS, device_handle_slot(tensor->handle),
			      device_handle_stamp(tensor->handle));
		device_release(device, tensor, NULL, NULL);
	}
}

void recover_end_orphans(struct recovery *recovery)
{
	release_orphans(recovery, true);
	release_orphans(recovery, false);
}
