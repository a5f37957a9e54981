/* Owns the records behind the journal's page. A free one is 0 in its first word; the rest of it is the list's. */
#include "daemon/store/writes.h"

#include <assert.h>
#include <errno.h>

#include "daemon/store/calls.h"
#include "daemon/store/opening.h"

static uint64_t mix_of(const struct store_write *write)
{
	return format_mix(write->handle, (uint64_t)write->first, (uint64_t)write->count);
}

static void release(struct store *store, uint32_t index)
{
	struct writes *writes = &store->writes;
	struct store_write *write = &writes->records[index];

	mapping_store(store->hooks, &write->valid, 0);
	write->handle = writes->free;
	writes->free = index + 1;
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

	writes->records = (struct store_write *)(void *)(store->maps[FORMAT_JOURNAL].at + FORMAT_PAGE_BYTES);
	if (store->durable)
		writes->ended = heap_zalloc(store->heap, FORMAT_WRITES, sizeof(*writes->ended));
	if (store->durable && !writes->ended)
		return -ENOMEM;
	for (uint32_t index = FORMAT_WRITES; index-- > 0;) {
		if (writes->records[index].valid) {
			n++;
			writes->n_fresh = writes->n_fresh ? writes->n_fresh : index + 1;
		} else if (writes->n_fresh) {
			release(store, index);
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
	heap_free(store->heap, store->writes.ended);
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
		release(store, writes->found_at[i]);
	writes->n_found = writes->n_found_at = 0;
}

int store_write_plan(struct store *store, uint64_t handle, int64_t first, int64_t count, struct store_write **out)
{
	struct writes *writes = &store->writes;
	uint32_t index = writes->free ? writes->free - 1 : writes->n_fresh;

	if (index >= FORMAT_WRITES)
		return -ENOSPC;
	struct store_write *write = &writes->records[index];
	if (writes->free)
		writes->free = (uint32_t)write->handle;
	else
		writes->n_fresh++;
	write->handle = handle;
	write->first = first;
	write->count = count;
	*out = write;
	return 0;
}

/* With `durable` the disk must know of them before it may have some of their bytes. What it has after it has
 * failed is not known, whatever it says the next time. */
int store_writes_begin(struct store *store, struct store_write *const *writes, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		mapping_store(store->hooks, &writes[i]->valid, mix_of(writes[i]));
	int status = store->durable && n ? calls_sync(store->hooks, store->fds[FORMAT_JOURNAL]) : 0;
	if (!status)
		return 0;
	store->failed = status;
	for (unsigned i = 0; i < n; i++)
		mapping_store(store->hooks, &writes[i]->valid, 0);
	return status;
}

int store_write_begin(struct store *store, uint64_t handle, int64_t first, int64_t count, struct store_write **out)
{
	struct store_write *write;
	int status = store_write_plan(store, handle, first, count, &write);

	if (status)
		return status;
	status = store_writes_begin(store, &write, 1);
	if (status)
		release(store, (uint32_t)(write - store->writes.records));
	else
		*out = write;
	return status;
}

void store_write_end(struct store *store, struct store_write *write)
{
	struct writes *writes = &store->writes;
	uint32_t index = (uint32_t)(write - writes->records);

	assert(index < FORMAT_WRITES);
	if (store->durable && write->valid)
		writes->ended[writes->n_ended++] = (uint16_t)index;
	else
		release(store, index);
}

void writes_forget_ended(struct store *store)
{
	struct writes *writes = &store->writes;

	for (uint32_t i = 0; i < writes->n_ended; i++)
		release(store, writes->ended[i]);
	writes->n_ended = 0;
}
