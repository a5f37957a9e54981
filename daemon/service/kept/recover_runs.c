/* Requests that ran when the last process died. One of them may have been the reason. */
#include <inttypes.h>

#include "daemon/service/kept/recovery.h"
#include "daemon/service/kept/results.h"

enum { LINES_MAX = 8 };

static void say(const struct recovery *recovery, const struct store_found_run *run, const struct session *session)
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

void recover_runs(struct recovery *recovery, const struct store_report *found)
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
		if (n_told++ < LINES_MAX)
			say(recovery, &runs[i], session);
	}
}
