/* Has a service again as its store was left. A cell is believed no further than it can be verified: whatever else
 * it says, the tensor is lost and nothing worse happens. Invariant: what was dropped here is committed before the
 * store is told that recovery is through. */
#include "daemon/service/kept/recovery.h"

#include <inttypes.h>

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

/* NULL: it is not. */
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
	/* Before what was dropped is committed: the next process would not look for it. */
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
	struct recovery recovery = {
		.service = service, .store = service->persist.store, .host = host, .report = report};
	int status;

	*report = (struct recover_report){0};
	status = run(&recovery, found);
	heap_free(service->heap, recovery.sessions);
	return status;
}
