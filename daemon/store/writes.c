/* Owns the records behind the journal's page. A free one is 0 in its first word; the rest of it is the list's. */
#include "daemon/store/writes.h"

#include <assert.h>
#include <errno.h>

#include "daemon/store/calls.h"
#include "daemon/store/log.h"
#include "daemon/store/opening.h"
#include "daemon/store/runs.h"

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

static void push(struct writes *writes, struct store_write *write)
{
	write->handle = writes->free;
	writes->free = (uint32_t)(write - writes->records) + 1;
}

/* Makes it invalid, also after a loss of power. May wait for the disk. */
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

int writes_open(const struct opening *opening)
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

void writes_close(struct store *store)
{
	heap_free(store->heap, store->writes.found);
	heap_free(store->heap, store->writes.found_at);
}

unsigned store_writes_found(const struct store *store, const struct store_found_write **out)
{
	*out = store->writes.found;
	return store->writes.n_found;
}

void writes_forget_found(struct store *store)
{
	struct writes *writes = &store->writes;

	for (uint32_t i = 0; i < writes->n_found_at; i++)
		store_write_end(store, &writes->records[writes->found_at[i]]);
	writes->n_found = writes->n_found_at = 0;
	runs_forget_found(store);
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
