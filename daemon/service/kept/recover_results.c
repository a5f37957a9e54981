/* What is kept of requests that may be sent again, in the order of these. */
#include "daemon/service/kept/recovery.h"

#include <errno.h>
#include <stdlib.h>

#include "daemon/service/kept/results.h"
#include "daemon/service/kept/stale.h"

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

int recover_results(struct recovery *recovery)
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
