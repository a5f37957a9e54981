/* Sessions first, as tensors are theirs: those that have a token, and for a replay also those that only own a
 * tensor. */
#include "daemon/service/kept/recovery.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

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

/* As a replay finds it. */
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
		n_lost += recovery_drop_damaged(recovery, STORE_SESSIONS, i);
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

/* Each once that has a tensor without a name, and had no token. */
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
