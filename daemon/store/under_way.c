/* Owns the records of writes behind the journal's page, and those of running requests at the end of a page of
 * sessions. Invariant: the first word of a record is 0 unless it is in use, and it is stored after the rest. */
#include "daemon/store/under_way.h"

#include <assert.h>
#include <errno.h>
#include <sys/mman.h>

#include "daemon/store/files/calls.h"
#include "daemon/store/log/log.h"
#include "daemon/store/opening.h"

/* ---- writes ---- */

static uint64_t mix_of(const struct store_write *write)
{
	return format_mix(write->handle, (uint64_t)write->first, (uint64_t)write->count);
}

static void add_to_log(struct store *store, const struct store_write *write, size_t bytes)
{
	if (log_is_on(&store->log))
		log_add(store, FORMAT_JOURNAL,
			FORMAT_PAGE_BYTES + (uint64_t)(write - store->writes.records) * sizeof(*write), write,
			bytes);
}

/* A free record is in a list through its second word. */
static void push(struct writes *writes, struct store_write *write)
{
	write->handle = writes->free;
	writes->free = (uint32_t)(write - writes->records) + 1;
}

/* Makes the record invalid, also after a loss of power. May wait for the disk. */
static void end(struct store *store, struct store_write *write)
{
	bool has_begun = write->valid;

	mapping_store(store->hooks, &write->valid, 0);
	if (has_begun)
		add_to_log(store, write, sizeof(write->valid));
}

static bool is_sound(const struct store_write *write)
{
	return write->valid == mix_of(write);
}

static int list_found(struct store *store, uint32_t n)
{
	struct writes *writes = &store->writes;

	if (!n)
		return 0;
	writes->found = heap_zalloc(store->heap, n, sizeof(*writes->found));
	writes->found_at = heap_zalloc(store->heap, n, sizeof(*writes->found_at));
	if (!writes->found || !writes->found_at)
		return -ENOMEM;
	for (uint32_t index = 0; index < writes->n_fresh; index++) {
		const struct store_write *write = &writes->records[index];
		struct store_found_write found = {write->handle, write->first, write->count};
		if (is_sound(write))
			writes->found[writes->n_found++] = found;
		if (write->valid)
			writes->found_at[writes->n_found_at++] = (uint16_t)index;
	}
	return 0;
}

static int open_writes(const struct opening *opening)
{
	struct store *store = opening->store;
	struct writes *writes = &store->writes;
	uint32_t n = 0;

	pthread_mutex_init(&writes->lock, NULL);
	writes->records = (struct store_write *)(void *)(store->maps[FORMAT_JOURNAL].at + FORMAT_PAGE_BYTES);
	for (uint32_t index = FORMAT_WRITES; index-- > 0;) {
		if (writes->records[index].valid) {
			n++;
			writes->n_fresh = writes->n_fresh ? writes->n_fresh : index + 1;
		} else if (writes->n_fresh) {
			push(writes, &writes->records[index]);
		}
	}
	int status = list_found(store, n);
	if (status)
		return status;
	opening->report->n_writes = writes->n_found;
	if (writes->n_found < n) {
		opening->report->is_stale = true;
		opening_tell(opening,
			     "journal: %u notes of writes under way are damaged: any data may be half written",
			     n - writes->n_found);
	}
	return 0;
}

unsigned store_writes_found(const struct store *store, const struct store_found_write **out)
{
	*out = store->writes.found;
	return store->writes.n_found;
}

static void forget_writes(struct store *store)
{
	struct writes *writes = &store->writes;

	for (uint32_t i = 0; i < writes->n_found_at; i++)
		store_write_end(store, &writes->records[writes->found_at[i]]);
	writes->n_found = writes->n_found_at = 0;
}

/* NULL: there is none. */
static struct store_write *take(struct writes *writes)
{
	uint32_t index = writes->free ? writes->free - 1 : writes->n_fresh;

	if (index >= FORMAT_WRITES)
		return NULL;
	if (writes->free)
		writes->free = (uint32_t)writes->records[index].handle;
	else
		writes->n_fresh++;
	return &writes->records[index];
}

static int take_all(struct store *store, struct store_note *notes, unsigned n)
{
	struct writes *writes = &store->writes;
	unsigned i = 0;

	pthread_mutex_lock(&writes->lock);
	while (i < n && (notes[i].write = take(writes)))
		i++;
	for (unsigned k = 0; i < n && k < i; k++)
		push(writes, notes[k].write);
	pthread_mutex_unlock(&writes->lock);
	return i < n ? -ENOSPC : 0;
}

int store_writes_begin(struct store *store, struct store_note *notes, unsigned n)
{
	int status = store->failed ? store->failed : take_all(store, notes, n);

	if (status)
		return status;
	for (unsigned i = 0; i < n; i++) {
		struct store_write *write = notes[i].write;
		write->handle = notes[i].handle;
		write->first = notes[i].first;
		write->count = notes[i].count;
		mapping_store(store->hooks, &write->valid, mix_of(write));
		add_to_log(store, write, sizeof(*write));
	}
	return 0;
}

int store_write_begin(struct store *store, uint64_t handle, int64_t first, int64_t count, struct store_write **out)
{
	struct store_note note = {handle, first, count, NULL};
	int status = store_writes_begin(store, &note, 1);

	if (!status)
		*out = note.write;
	return status;
}

void store_write_end(struct store *store, struct store_write *write)
{
	struct writes *writes = &store->writes;

	assert(write >= writes->records && write < writes->records + FORMAT_WRITES);
	end(store, write);
	pthread_mutex_lock(&writes->lock);
	push(writes, write);
	pthread_mutex_unlock(&writes->lock);
}

/* ---- running requests ---- */

/* Differs from the word of a write with the same three numbers. */
static uint64_t word_of(const struct store_run *run)
{
	return format_mix(run->request, run->session, run->method) ^ UINT64_C(0x5555555555555554);
}

static int open_runs(const struct opening *opening)
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

unsigned store_runs_found(const struct store *store, const struct store_found_run **out)
{
	*out = store->runs.found;
	return store->runs.n_found;
}

/* Slots that are taken belong to this process already. */
static void forget_runs(struct store *store)
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

/* ---- both ---- */

int under_way_open(const struct opening *opening)
{
	int status = open_writes(opening);

	return status ? status : open_runs(opening);
}

void under_way_close(struct store *store)
{
	heap_free(store->heap, store->writes.found);
	heap_free(store->heap, store->writes.found_at);
	if (store->runs.page)
		munmap(store->runs.page, FORMAT_PAGE_BYTES);
}

void under_way_forget_found(struct store *store)
{
	forget_writes(store);
	forget_runs(store);
}
