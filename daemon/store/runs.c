/* Owns the records of running requests. Invariant: the first word of a record is 0 unless a request runs there,
 * and it is stored after the rest. */
#include "daemon/store/runs.h"

#include <sys/mman.h>

#include "daemon/store/calls.h"
#include "daemon/store/opening.h"

/* A note of a write with the same three numbers has another word. */
static uint64_t word_of(const struct store_run *run)
{
	return format_mix(run->request, run->session, run->method) ^ UINT64_C(0x5555555555555554);
}

int runs_open(const struct opening *opening)
{
	struct store *store = opening->store;
	struct runs *runs = &store->runs;

	int status = calls_map(store->hooks, store->fds[FORMAT_SESSIONS], 0, FORMAT_PAGE_BYTES, &runs->page);
	if (status)
		return status;
	runs->records = (struct store_run *)(void *)((uint8_t *)runs->page + FORMAT_RUNS_OFF);
	pthread_mutex_init(&runs->lock, NULL);
	runs->n_found = 0;
	runs->n_free = 0;
	for (uint32_t i = STORE_RUNS_MAX; i-- > 0;) {
		const struct store_run *run = &runs->records[i];

		if (run->valid && run->valid == word_of(run))
			runs->found[runs->n_found++] =
				(struct store_found_run){run->session, run->request, (uint32_t)run->method};
		runs->free[runs->n_free++] = (uint16_t)i;
	}
	opening->report->n_runs = runs->n_found;
	return 0;
}

void runs_close(struct store *store)
{
	if (store->runs.page)
		munmap(store->runs.page, FORMAT_PAGE_BYTES);
}

unsigned store_runs_found(const struct store *store, const struct store_found_run **out)
{
	*out = store->runs.found;
	return store->runs.n_found;
}

/* Slots that were taken meanwhile are this process's. */
void runs_forget_found(struct store *store)
{
	struct runs *runs = &store->runs;

	for (uint32_t i = 0; i < runs->n_free; i++)
		mapping_store(store->hooks, &runs->records[runs->free[i]].valid, 0);
	runs->n_found = 0;
}

struct store_run *store_run_take(struct store *store)
{
	struct runs *runs = &store->runs;
	struct store_run *run;

	pthread_mutex_lock(&runs->lock);
	run = runs->n_free ? &runs->records[runs->free[--runs->n_free]] : NULL;
	pthread_mutex_unlock(&runs->lock);
	return run;
}

void store_run_give(struct store *store, struct store_run *run)
{
	struct runs *runs = &store->runs;

	if (!run)
		return;
	store_run_end(store, run);
	pthread_mutex_lock(&runs->lock);
	runs->free[runs->n_free++] = (uint16_t)(run - runs->records);
	pthread_mutex_unlock(&runs->lock);
}

void store_run_begin(const struct store *store, struct store_run *run, uint64_t session, uint64_t request,
		     uint32_t method)
{
	if (!run || (run->valid && run->request == request && run->session == session))
		return;
	if (run->valid)
		mapping_store(store->hooks, &run->valid, 0);
	run->session = session;
	run->request = request;
	run->method = method;
	mapping_store(store->hooks, &run->valid, word_of(run));
}

void store_run_end(const struct store *store, struct store_run *run)
{
	if (run && run->valid)
		mapping_store(store->hooks, &run->valid, 0);
}
