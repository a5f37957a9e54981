/* Restores a service from its store. Every cell is verified: if one is wrong, its tensor is lost and nothing worse
 * happens. Invariant: all drops are committed before store_recovered is called. */
#include "daemon/service/kept/recover.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/service/kept/recovery.h"
#include "daemon/service/kept/results.h"
#include "daemon/service/kept/stale.h"
#include "daemon/service/kept/tensor_cell.h"
#include "daemon/service/tables.h"

enum {
	NAMES_MAX = 8,	   /* in a line */
	RUN_LINES_MAX = 8, /* about requests that ran */
};

static void keep_line(struct recovered *recovered, const char *line)
{
	if (recovered->n_lines < RECOVERED_LINES_MAX)
		snprintf(recovered->lines[recovered->n_lines++], RECOVERED_LINE_BYTES, "%s", line);
}

void recovery_say(const struct recovery *recovery, bool is_loss, const char *format, ...)
{
	char line[RECOVERY_LINE_BYTES];
	va_list args;

	va_start(args, format);
	vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	keep_line(&recovery->service->recovered, line);
	recovery->host->say(recovery->host->say_ctx, is_loss, line);
}

void recovery_drop(struct recovery *recovery, enum store_table table, uint32_t cell, uint64_t stamp)
{
	persist_make_room(recovery->service, 1);
	store_drop(recovery->store, table, cell, stamp);
}

bool recovery_is_replay(const struct recovery *recovery)
{
	return recovery->service->persist.is_replay;
}

int recovery_by_id(const void *a, const void *b)
{
	const struct recovery_session *one = a, *other = b;

	return one->id < other->id ? -1 : one->id > other->id;
}

struct session *recovery_session(const struct recovery *recovery, uint64_t id)
{
	const struct recovery_session *found =
		recovery->n_sessions
			? bsearch(&(struct recovery_session){.id = id}, recovery->sessions, recovery->n_sessions,
				  sizeof(struct recovery_session), recovery_by_id)
			: NULL;

	return found ? found->session : NULL;
}

bool recovery_tensor(const struct recovery *recovery, uint32_t slot, struct persist_tensor *kept)
{
	size_t bytes;
	const uint8_t *cell = store_cell(recovery->store, STORE_TENSORS, slot, &bytes);

	return cell && tensor_cell_unpack(cell, bytes, slot, kept);
}

/* ---- interrupted writes: how far each one came is unknown ---- */

static void lose(struct recovery *recovery, char *names, struct tensor *tensor, int64_t first, int64_t count)
{
	const struct record *record = tensor->owner ? record_of(tensor) : record_of(tensor_root(tensor));
	size_t used = strlen(names);

	device_lose(recovery->service->device, tensor, first, count);
	if (recovery->report->n_cut++ < NAMES_MAX)
		snprintf(names + used, RECOVERY_LINE_BYTES - used, "%s%.63s", used ? ", " : "",
			 record->name[0] ? record->name : "one without a name");
}

static void lose_all(struct recovery *recovery, const char *why)
{
	struct device *device = recovery->service->device;
	char names[RECOVERY_LINE_BYTES] = "";

	recovery->report->n_cut = 0;
	for (struct tensor *tensor = NULL; (tensor = device_next(device, tensor));)
		if (!tensor->base && tensor->owner)
			lose(recovery, names, tensor, 0, -1);
	if (recovery->report->n_cut)
		recovery_say(recovery, true, "lost: the data of all %" PRIu32 " tensors, as %s",
			     recovery->report->n_cut, why);
}

static void lose_cut_off(struct recovery *recovery)
{
	const struct recover_report *report = recovery->report;
	const struct store_found_write *writes;
	unsigned n = store_writes_found(recovery->store, &writes), n_unknown = 0;
	char names[RECOVERY_LINE_BYTES] = "";

	for (unsigned i = 0; i < n; i++) {
		struct tensor *tensor = device_find(recovery->service->device, writes[i].handle);

		n_unknown += !tensor;
		/* Also through a view that has no owner any more. */
		if (tensor && tensor_root(tensor)->owner)
			lose(recovery, names, tensor, writes[i].first, writes[i].count);
	}
	if (n_unknown && (report->n_damaged || report->n_refused))
		lose_all(recovery, "what was being written has no cell that can be read");
	else if (report->n_cut)
		recovery_say(recovery, true,
			     "lost: data of %" PRIu32 " tensors that were written when it ended: %s%s",
			     report->n_cut, names, report->n_cut > NAMES_MAX ? ", ..." : "");
}

/* `why_all`: the data of all tensors is lost, for this reason. NULL: only that of interrupted writes. */
static void recover_writes(struct recovery *recovery, const char *why_all)
{
	if (why_all)
		lose_all(recovery, why_all);
	else
		lose_cut_off(recovery);
}

/* ---- results of requests that may be sent again, in the order of the requests ---- */

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

/* Reads one cell; without its session it is dropped. */
static bool find_result(struct recovery *recovery, uint32_t cell, struct found_result *found)
{
	size_t bytes;
	const struct results_cell *kept = store_cell(recovery->store, STORE_RESULTS, cell, &bytes);

	found->session = kept && bytes == sizeof(*kept) && !recovery_is_replay(recovery)
				 ? recovery_session(recovery, kept->session)
				 : NULL;
	found->cell = cell;
	if (found->session && found->session->n_results < RESULTS_MAX) {
		found->kept = *kept;
		return true;
	}
	if (kept || store_is_lost(recovery->store, STORE_RESULTS, cell))
		recovery_drop(recovery, STORE_RESULTS, cell, 0);
	return false;
}

struct used_results {
	const struct found_result *found;
	uint32_t n, at;
};

/* Called from the last cell down. */
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

static int recover_results(struct recovery *recovery)
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

/* ---- requests that ran when the last process died: one of them may have been the reason ---- */

static void say_run(const struct recovery *recovery, const struct store_found_run *run,
		    const struct session *session)
{
	const struct recover_host *host = recovery->host;
	const char *name = host->method_name ? host->method_name(run->method) : "request";
	uint64_t deaths = session ? results_deaths(session, run->request) : 0;

	if (!session)
		recovery_say(recovery, false,
			     "ran when the daemon died: %s %" PRIu64 " of session %" PRIu64
			     ", which does not come back",
			     name, run->request, run->session);
	else
		recovery_say(recovery, deaths > 1,
			     "ran when the daemon died: %s %" PRIu64 " of session %" PRIu64 " of uid %" PRIu32
			     ", death %" PRIu64 "%s",
			     name, run->request, run->session, session->uid, deaths,
			     deaths > 1 ? ": it is not run again" : "");
}

/* The work of one request may have been on two threads. */
static bool is_repeated(const struct store_found_run *runs, unsigned i)
{
	for (unsigned before = 0; before < i; before++)
		if (runs[before].session == runs[i].session && runs[before].request == runs[i].request)
			return true;
	return false;
}

static void recover_runs(struct recovery *recovery, const struct store_report *found)
{
	const struct store_found_run *runs;
	unsigned n = store_runs_found(recovery->store, &runs), n_told = 0;

	if (found->was_clean || !found->is_same_boot || recovery_is_replay(recovery))
		return;
	for (unsigned i = 0; i < n; i++) {
		struct session *session = recovery_session(recovery, runs[i].session);

		if (is_repeated(runs, i))
			continue;
		if (session)
			results_add_death(session, runs[i].request);
		if (n_told++ < RUN_LINES_MAX)
			say_run(recovery, &runs[i], session);
	}
}

/* ---- all of it ---- */

static void tell(const struct recovery *recovery)
{
	const struct recover_report *report = recovery->report;

	recovery_say(recovery, false,
		     "kept: %" PRIu32 " tensors, %" PRIu32 " views, and %" PRIu32 " sessions, which wait %" PRIu32
		     " s for their clients",
		     report->n_tensors, report->n_views, report->n_sessions,
		     recovery->service->persist.resume_seconds);
	if (report->n_ended)
		recovery_say(recovery, false,
			     "ended: %" PRIu32
			     " unnamed tensors of sessions that do not come back, or tensors that were "
			     "being freed",
			     report->n_ended);
}

/* NULL: not all is lost. */
static const char *why_all_is_lost(const struct recovery *recovery, const struct store_report *found)
{
	if (found->is_stale)
		return "it may be older than the tables";
	return device_compaction_is_sound(recovery->service->device)
		       ? NULL
		       : "the record of the compaction that was under way is damaged";
}

static int run(struct recovery *recovery, const struct store_report *found)
{
	int status = recover_sessions(recovery);

	if (!status)
		status = recover_tensors(recovery);
	if (status)
		return status;
	const char *why = why_all_is_lost(recovery, found);
	/* Before the drops are committed: after that the next process would not know of them. */
	device_restore_end(recovery->service->device,
			   recovery->report->n_damaged || recovery->report->n_refused || why);
	recover_writes(recovery, why);
	status = recover_results(recovery);
	if (status)
		return status;
	recover_end_orphans(recovery);
	recover_runs(recovery, found);
	persist_commit(&recovery->service->persist);
	if (!found->is_new)
		tell(recovery);
	return store_recovered(recovery->store);
}

int recover(struct service *service, const struct store_report *found, const struct recover_host *host,
	    struct recover_report *report)
{
	struct recovery recovery = {.service = service,
				    .store = service->persist.store,
				    .host = host,
				    .report = report,
				    .mixed = found->is_stale};
	int status;

	*report = (struct recover_report){0};
	service->recovered.was_clean = found->was_clean;
	for (unsigned i = 0; i < found->n_lines; i++)
		keep_line(&service->recovered, found->lines[i]);
	status = run(&recovery, found);
	heap_free(service->heap, recovery.sessions);
	return status;
}
