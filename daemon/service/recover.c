/* Sessions first, as tensors are theirs; tensors in the order that the device asks for; then what was under way. A
 * cell is believed no further than it can be verified: whatever else it says, the tensor is lost and nothing worse
 * happens. Invariant: what was dropped here is committed before the store is told that recovery is through. */
#include "daemon/service/recover.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "daemon/service/results.h"
#include "daemon/service/stale.h"
#include "daemon/service/tensors.h"

enum {
	LINE_BYTES = 512,
	LINES_MAX = 16, /* about single tensors */
	NAMES_MAX = 8,	/* in a line */
};

struct known {
	uint64_t id;
	struct session *session;
};

struct recovery {
	struct service *service;
	struct store *store;
	const struct recover_host *host;
	struct recover_report *report;
	struct known *sessions; /* by id */
	uint32_t n_sessions;
	unsigned n_lines;
	char cut[LINE_BYTES]; /* names of those that lost data */
};

static void say(const struct recovery *recovery, bool is_loss, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
static void say(const struct recovery *recovery, bool is_loss, const char *format, ...)
{
	char line[LINE_BYTES];
	va_list args;

	va_start(args, format);
	vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	recovery->host->say(recovery->host->ctx, is_loss, line);
}

/* ---- cells ---- */

static void drop(struct recovery *recovery, enum store_table table, uint32_t cell, uint64_t stamp)
{
	persist_make_room(recovery->service, 1);
	store_drop(recovery->store, table, cell, stamp);
}

/* A damaged cell: nothing is known of it. */
static bool drop_damaged(struct recovery *recovery, enum store_table table, uint32_t cell)
{
	if (!store_is_lost(recovery->store, table, cell))
		return false;
	drop(recovery, table, cell, 0);
	return true;
}

/* ---- sessions ---- */

static int by_id(const void *a, const void *b)
{
	const struct known *one = a, *other = b;

	return one->id < other->id ? -1 : one->id > other->id;
}

static struct session *session_by_id(const struct recovery *recovery, uint64_t id)
{
	const struct known *found = recovery->n_sessions
					    ? bsearch(&(struct known){.id = id}, recovery->sessions,
						      recovery->n_sessions, sizeof(struct known), by_id)
					    : NULL;

	return found ? found->session : NULL;
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
			   struct known *known)
{
	struct session *session = recovery->host->new_session(recovery->host->ctx);

	if (!session || session_restore(session, recovery->service, kept, cell))
		return -ENOMEM;
	known->id = kept->id;
	known->session = session;
	recovery->report->n_sessions++;
	return 0;
}

static bool is_replay(const struct recovery *recovery)
{
	return recovery->service->persist.is_replay;
}

/* As a replay finds it. */
static struct persist_session numbered(uint64_t id, uint32_t uid)
{
	struct persist_session session = {.id = id, .uid = uid};

	for (unsigned i = 0; i < sizeof(id); i++)
		session.token[i] = (uint8_t)(id >> 8 * i);
	return session;
}

static int restore_session_at(struct recovery *recovery, uint32_t cell, struct known *known)
{
	const struct persist_session *kept = session_cell(recovery, cell);
	struct persist_session own;

	if (!kept)
		return 0;
	own = is_replay(recovery) ? numbered(kept->id, kept->uid) : *kept;
	return restore_session(recovery, cell, &own, known);
}

static uint32_t sort_sessions(struct known *known, uint32_t n)
{
	uint32_t n_kept = 0;

	for (uint32_t i = 0; i < n; i++)
		if (known[i].session)
			known[n_kept++] = known[i];
	if (n_kept)
		qsort(known, n_kept, sizeof(*known), by_id);
	return n_kept;
}

static int restore_sessions(struct recovery *recovery)
{
	uint32_t n = store_n_cells(recovery->store, STORE_SESSIONS), n_lost = 0;
	int status;

	recovery->sessions = heap_zalloc(recovery->service->heap, n, sizeof(struct known));
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
		say(recovery, true, "lost: %" PRIu32 " sessions, whose cells are damaged", n_lost);
	return 0;
}

/* ---- sessions of a replay ---- */

static const struct persist_tensor *tensor_cell(const struct recovery *recovery, uint32_t slot, size_t *bytes)
{
	const struct persist_tensor *kept = store_cell(recovery->store, STORE_TENSORS, slot, bytes);

	return kept && *bytes >= PERSIST_TENSOR_BYTES_MIN ? kept : NULL;
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
	size_t bytes;

	for (uint32_t slot = 0; slot < n; slot++) {
		const struct persist_tensor *kept = tensor_cell(recovery, slot, &bytes);

		if (kept && !kept->name[0] && kept->session && kept->session <= INT64_MAX &&
		    !session_by_id(recovery, kept->session))
			owners[n_found++] = (struct owner){kept->session, kept->uid};
	}
	if (n_found)
		qsort(owners, n_found, sizeof(*owners), by_owner);
	for (uint32_t i = 0; i < n_found; i++)
		if (!i || owners[i].id != owners[i - 1].id)
			owners[n_kept++] = owners[i];
	return n_kept;
}

static int restore_owner(struct recovery *recovery, const struct owner *owner, struct known *known)
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
	struct known *sessions;
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

/* A tensor without a name whose session is over, one that is nobody's, and a view of such: its bytes go when all
 * have their place. */
static bool is_orphan(const struct recovery *recovery, const struct persist_tensor *kept)
{
	const struct tensor *base =
		kept->saved.base ? device_find(recovery->service->device, kept->saved.base) : NULL;

	return (!kept->name[0] && !session_by_id(recovery, kept->session)) || (base && !base->owner);
}

/* What the device does not look at. */
static int check_cell(const struct recovery *recovery, const struct persist_tensor *kept, uint32_t slot,
		      size_t bytes, struct npumem_error *error)
{
	if (kept->n_grants > RECORD_GRANTS_MAX ||
	    bytes != PERSIST_TENSOR_BYTES_MIN + kept->n_grants * sizeof(kept->grants[0]))
		return refuse(error, "its cell is of another size");
	for (uint32_t i = 0; i < kept->n_grants; i++)
		if (kept->grants[i].access != RECORD_READ && kept->grants[i].access != RECORD_WRITE)
			return refuse(error, "it is granted for something unknown");
	if (device_handle_slot(kept->saved.handle) != slot)
		return refuse(error, "its handle belongs to another cell");
	if (kept->name[NPUMEM_NAME_BYTES_MAX])
		return refuse(error, "its name has no end");
	if (!kept->name[0] || is_orphan(recovery, kept))
		return 0;
	if (names_find(&recovery->service->names, kept->uid, kept->name))
		return refuse(error, "another one has its name");
	return names_check(kept->name, error);
}

static int copy_grants(struct service *service, const struct persist_tensor *kept, struct record *record)
{
	if (!kept->n_grants)
		return 0;
	record->grants = heap_zalloc(service->heap, 1, sizeof(*record->grants));
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

	/* Nobody is to be taken for who made it. */
	if (kept->session > service->last_session && kept->session <= INT64_MAX)
		service->last_session = kept->session;
	if (copy_grants(service, kept, record))
		return -ENOMEM;
	memcpy(record->name, kept->name, strnlen(kept->name, NPUMEM_NAME_BYTES_MAX));
	record->session_id = kept->session;
	if (session && !is_replay(recovery)) {
		record->request = kept->request;
		record->request_index = kept->index;
		record->maker_cell = session->cell;
	}
	if (tensors_readopt(service, session, kept->uid, tensor)) {
		heap_free(service->heap, record->grants);
		return -ENOMEM;
	}
	/* As many as there are: which of them are the latest is known when all have come. */
	if (record->request)
		results_restore_made(session, record);
	*(tensor->base ? &recovery->report->n_views : &recovery->report->n_tensors) += 1;
	return 0;
}

static void lose_tensor(struct recovery *recovery, const struct persist_tensor *kept, uint32_t slot,
			const struct npumem_error *error)
{
	uint64_t stamp = device_handle_slot(kept->saved.handle) == slot ? device_handle_stamp(kept->saved.handle)
									: UINT64_MAX;

	recovery->report->n_refused++;
	if (recovery->n_lines++ < LINES_MAX)
		say(recovery, true, "lost: tensor %.63s of uid %" PRIu32 ": %s",
		    kept->name[0] ? kept->name : "without a name", kept->uid, error->message);
	drop(recovery, STORE_TENSORS, slot, stamp);
}

static int restore_tensor(struct recovery *recovery, uint32_t slot, const struct persist_tensor *kept,
			  size_t bytes)
{
	struct service *service = recovery->service;
	struct npumem_error error = {.status = 0};
	struct error_context context = {.error = &error, .name = name_plainly};
	struct tensor *tensor;
	int status = check_cell(recovery, kept, slot, bytes, &error);

	if (!status)
		status = device_restore(service->device, &kept->saved, &tensor, &context);
	if (status < 0)
		return status;
	if (status) {
		lose_tensor(recovery, kept, slot, &error);
		return 0;
	}
	if (!is_orphan(recovery, kept))
		return attach(recovery, tensor, kept, session_by_id(recovery, kept->session));
	recovery->report->n_ended++;
	return 0;
}

/* Those that have no tensor. One that is damaged is never used again, as nobody knows what handles it gave. */
static int restore_slots(struct recovery *recovery)
{
	uint32_t n = store_n_cells(recovery->store, STORE_TENSORS);
	int status = device_restore_begin(recovery->service->device, n);
	size_t bytes;

	for (uint32_t slot = n; slot-- > 0 && !status;) {
		uint64_t stamp = store_stamp(recovery->store, STORE_TENSORS, slot);
		bool is_lost = store_is_lost(recovery->store, STORE_TENSORS, slot);

		if (!is_lost && tensor_cell(recovery, slot, &bytes))
			continue;
		if (is_lost || store_cell(recovery->store, STORE_TENSORS, slot, &bytes)) {
			recovery->report->n_damaged++;
			drop(recovery, STORE_TENSORS, slot, UINT64_MAX);
		} else if (stamp <= UINT32_MAX) {
			device_restore_free(recovery->service->device, slot, stamp);
		}
	}
	return status;
}

static int restore_tensors(struct recovery *recovery)
{
	enum { PASSES = 3 };
	uint32_t n = store_n_cells(recovery->store, STORE_TENSORS);
	int status = restore_slots(recovery);

	for (unsigned pass = 0; pass < PASSES; pass++)
		for (uint32_t slot = 0; slot < n && !status; slot++) {
			struct persist_tensor copy;
			size_t bytes;
			const struct persist_tensor *kept = tensor_cell(recovery, slot, &bytes);

			if (!kept || device_saved_pass(&kept->saved) != pass)
				continue;
			/* What is dropped meanwhile may move the cells. */
			memset(&copy, 0, sizeof(copy));
			memcpy(&copy, kept, bytes < sizeof(copy) ? bytes : sizeof(copy));
			status = restore_tensor(recovery, slot, &copy, bytes);
		}
	for (uint32_t i = 0; i < recovery->n_sessions && !status; i++)
		results_sort_made(recovery->sessions[i].session);
	for (uint32_t i = 0; i < recovery->n_sessions && is_replay(recovery); i++)
		session_settle(recovery->sessions[i].session);
	if (recovery->report->n_damaged)
		say(recovery, true, "lost: %" PRIu32 " tensors, whose cells are damaged",
		    recovery->report->n_damaged);
	return status;
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
		drop(recovery, STORE_TENSORS, device_handle_slot(tensor->handle),
		     device_handle_stamp(tensor->handle));
		device_release(device, tensor, NULL, NULL);
	}
}

/* ---- what was under way ---- */

static void lose(struct recovery *recovery, struct tensor *tensor, int64_t first, int64_t count)
{
	const struct record *record = tensor->owner ? record_of(tensor) : record_of(tensor_root(tensor));
	size_t used = strlen(recovery->cut);

	device_lose(recovery->service->device, tensor, first, count);
	if (recovery->report->n_cut++ < NAMES_MAX)
		snprintf(recovery->cut + used, sizeof(recovery->cut) - used, "%s%.63s", used ? ", " : "",
			 record->name[0] ? record->name : "one without a name");
}

static void lose_all(struct recovery *recovery, const char *why)
{
	struct device *device = recovery->service->device;

	recovery->report->n_cut = 0;
	for (struct tensor *tensor = NULL; (tensor = device_next(device, tensor));)
		if (!tensor->base && tensor->owner)
			lose(recovery, tensor, 0, -1);
	if (recovery->report->n_cut)
		say(recovery, true, "lost: the data of all %" PRIu32 " tensors, as %s", recovery->report->n_cut,
		    why);
}

static void lose_cut_off(struct recovery *recovery)
{
	const struct recover_report *report = recovery->report;
	const struct store_found_write *writes;
	unsigned n = store_writes_found(recovery->store, &writes), n_unknown = 0;

	for (unsigned i = 0; i < n; i++) {
		struct tensor *tensor = device_find(recovery->service->device, writes[i].handle);

		n_unknown += !tensor;
		/* Also through a view that nobody has any more. */
		if (tensor && tensor_root(tensor)->owner)
			lose(recovery, tensor, writes[i].first, writes[i].count);
	}
	if (n_unknown && (report->n_damaged || report->n_refused))
		lose_all(recovery, "what was being written has no cell that can be read");
	else if (report->n_cut)
		say(recovery, true, "lost: data of %" PRIu32 " tensors that were written when it ended: %s%s",
		    report->n_cut, recovery->cut, report->n_cut > NAMES_MAX ? ", ..." : "");
}

/* ---- results ---- */

struct found_result {
	struct session *session;
	uint32_t cell;
	struct results_cell kept;
};

static int by_request(const void *a, const void *b)
{
	const struct results_cell *one = &((const struct found_result *)a)->kept,
				  *other = &((const struct found_result *)b)->kept;

	if (one->request != other->request)
		return one->request < other->request ? -1 : 1;
	return one->index < other->index ? -1 : one->index > other->index;
}

/* One cell; without its session it is nobody's. */
static bool find_result(struct recovery *recovery, uint32_t cell, struct found_result *found)
{
	size_t bytes;
	const struct results_cell *kept = store_cell(recovery->store, STORE_RESULTS, cell, &bytes);

	found->session = kept && bytes == sizeof(*kept) && !is_replay(recovery)
				 ? session_by_id(recovery, kept->session)
				 : NULL;
	found->cell = cell;
	if (found->session && found->session->n_results < RESULTS_MAX) {
		found->kept = *kept;
		return true;
	}
	if (kept || store_is_lost(recovery->store, STORE_RESULTS, cell))
		drop(recovery, STORE_RESULTS, cell, 0);
	return false;
}

struct used_results {
	const struct found_result *found;
	uint32_t n, at;
};

/* Asked for from the last cell down. */
static bool is_result(void *ctx, uint32_t cell)
{
	struct used_results *used = ctx;

	if (!used->at || used->found[used->at - 1].cell != cell)
		return false;
	used->at--;
	return true;
}

static int add_results(struct recovery *recovery, struct found_result *found, uint32_t n)
{
	struct used_results used = {found, n, n};
	int status = persist_find_cells(&recovery->service->persist, STORE_RESULTS, is_result, &used);

	if (n)
		qsort(found, n, sizeof(*found), by_request);
	for (uint32_t i = 0; i < n && !status; i++)
		if (found[i].kept.kind == RESULTS_STALE)
			stale_restore(found[i].session, found[i].cell, &found[i].kept);
		else
			status = results_restore(found[i].session, found[i].cell, &found[i].kept);
	recovery->report->n_results = n;
	return status;
}

static int restore_results(struct recovery *recovery)
{
	uint32_t n = store_n_cells(recovery->store, STORE_RESULTS), n_found = 0;
	struct found_result *found = heap_zalloc(recovery->service->heap, n, sizeof(*found));
	int status;

	if (!found)
		return -ENOMEM;
	for (uint32_t i = 0; i < n; i++)
		n_found += find_result(recovery, i, &found[n_found]);
	status = add_results(recovery, found, n_found);
	heap_free(recovery->service->heap, found);
	return status;
}

/* ---- all of it ---- */

static void tell(const struct recovery *recovery)
{
	const struct recover_report *report = recovery->report;

	say(recovery, false,
	    "kept: %" PRIu32 " tensors, %" PRIu32 " views, and %" PRIu32 " sessions, which wait %" PRIu32
	    " s for their clients",
	    report->n_tensors, report->n_views, report->n_sessions, recovery->service->persist.resume_seconds);
	if (report->n_ended)
		say(recovery, false,
		    "ended: %" PRIu32 " unnamed tensors of sessions that do not come back, or tensors that were "
		    "being freed",
		    report->n_ended);
}

static int run(struct recovery *recovery, const struct store_report *found)
{
	int status = restore_sessions(recovery);

	if (!status && is_replay(recovery))
		status = restore_owners(recovery);
	if (!status)
		status = restore_tensors(recovery);
	if (status)
		return status;
	/* Before what was dropped is committed: the next process would not look for it. */
	device_restore_end(recovery->service->device, recovery->report->n_damaged || recovery->report->n_refused);
	if (found->is_stale)
		lose_all(recovery, "it may be older than the tables");
	else
		lose_cut_off(recovery);
	release_orphans(recovery, true);
	release_orphans(recovery, false);
	status = restore_results(recovery);
	if (status)
		return status;
	persist_commit(&recovery->service->persist);
	if (!found->is_new)
		tell(recovery);
	return store_recovered(recovery->store);
}

int recover(struct service *service, const struct store_report *found, const struct recover_host *host,
	    struct recover_report *report)
{
	struct recovery recovery = {
		.service = service, .store = service->persist.store, .host = host, .report = report};
	int status;

	*report = (struct recover_report){0};
	status = run(&recovery, found);
	heap_free(service->heap, recovery.sessions);
	return status;
}
