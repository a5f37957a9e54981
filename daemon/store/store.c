/* Opens and closes a state, and puts its parts together. Owns the mappings and, through files.h, the descriptors.
 */
#include "daemon/store/store.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>

#include "daemon/store/calls.h"
#include "daemon/store/cells.h"
#include "daemon/store/create.h"
#include "daemon/store/files.h"
#include "daemon/store/identity.h"
#include "daemon/store/image_pages.h"
#include "daemon/store/manifest.h"

static void free_store(struct store *store)
{
	image_deinit(store);
	mapping_close(&store->journal.records);
	for (enum format_file file = 0; file < FORMAT_FILES; file++)
		mapping_close(&store->maps[file]);
	files_close(store);
	writes_close(store);
	heap_free(store->heap, store);
}

static int open_state(struct opening *opening, struct format_page *pages)
{
	bool is_blank = true, is_snapshot = false;
	int status = identity_read_boot(opening);

	if (!status && opening->options->memory_bytes > INT64_MAX / 2)
		status = -EFBIG;
	if (!status)
		status = files_open(opening);
	for (enum format_file file = 0; !status && file < FORMAT_FILES; file++) {
		status = files_read_page(opening, file, &pages[file]);
		is_blank = is_blank && !status && identity_is_blank(opening, file, &pages[file]);
	}
	if (status)
		return status;
	status = manifest_check(opening, &is_snapshot);
	if (status)
		return status;
	opening->report->is_new = is_blank;
	if (is_blank)
		return create_state(opening);
	status = identity_check(opening, pages);
	if (!status && is_snapshot)
		status = manifest_remove(opening);
	return status ? status : load_state(opening, pages);
}

static struct store *new_store(const struct store_options *options)
{
	struct store *store = heap_zalloc(options->heap, 1, sizeof(*store));

	if (!store)
		return NULL;
	store->heap = options->heap;
	store->hooks = options->hooks;
	store->durable = options->durable;
	store->journal.seq = 1;
	for (enum format_file file = 0; file < FORMAT_FILES; file++)
		store->fds[file] = -1;
	return store;
}

int store_open(const struct store_options *options, struct store **out, struct store_report *report, char *error)
{
	struct opening opening = {.options = options, .report = report, .error = error};
	struct format_page *pages = heap_zalloc(options->heap, FORMAT_FILES, sizeof(*pages));

	assert(options->geometry_bytes <= STORE_GEOMETRY_BYTES_MAX);
	memset(report, 0, sizeof(*report));
	error[0] = 0;
	opening.store = new_store(options);
	int status = pages && opening.store ? open_state(&opening, pages) : -ENOMEM;
	heap_free(options->heap, pages);
	if (!status)
		*out = opening.store;
	else if (opening.store)
		free_store(opening.store);
	if (status && !error[0])
		snprintf(error, STORE_ERROR_BYTES, "%.200s: %s",
			 options->directory ? options->directory : "the state", strerror(-status));
	return status;
}

/* All on the disk, then the word that says so. */
static int close_state(struct store *store)
{
	int status = store_flush(store);

	for (enum format_file file = 0; !status && file < FORMAT_FILES; file++)
		status = calls_sync(store->hooks, store->fds[file]);
	return status ? status : identity_end(store);
}

int store_close(struct store *store, bool clean)
{
	if (!store)
		return 0;
	int status = clean ? close_state(store) : 0;
	free_store(store);
	return status;
}

void *store_memory(struct store *store)
{
	return store->maps[FORMAT_MEMORY].at + FORMAT_PAGE_BYTES;
}

uint32_t store_n_cells(const struct store *store, enum store_table table)
{
	return store->n_cells[table];
}

static const struct format_cell *find(const struct store *store, enum store_table table, uint32_t index,
				      enum format_state state)
{
	const struct format_cell *cell = index < store->n_cells[table] ? cells_at(store, table, index) : NULL;

	return cell && cell->state == state ? cell : NULL;
}

const void *store_cell(const struct store *store, enum store_table table, uint32_t index, size_t *bytes)
{
	const struct format_cell *cell = find(store, table, index, FORMAT_USED);

	*bytes = cell ? cell->bytes : 0;
	return cell ? cell->payload : NULL;
}

uint64_t store_stamp(const struct store *store, enum store_table table, uint32_t index)
{
	const struct format_cell *cell = find(store, table, index, FORMAT_EMPTY);
	uint64_t stamp = 0;

	if (cell)
		memcpy(&stamp, cell->payload, sizeof(stamp));
	return stamp;
}

bool store_is_lost(const struct store *store, enum store_table table, uint32_t index)
{
	return find(store, table, index, FORMAT_LOST) != NULL;
}

int store_prepare(struct store *store, enum store_table table, uint32_t n_cells, uint32_t n_changes)
{
	int status = cells_grow(store, table, n_cells);

	return status ? status : journal_reserve(store, n_changes);
}

int store_flush(struct store *store)
{
	int status = store->failed;

	if (!store->durable || status || (!store->journal.begin && !store->writes.n_ended))
		return status;
	assert(!store->journal.end);
	/* The bytes of local memory come before whatever says that they are whole. */
	status = calls_sync(store->hooks, store->fds[FORMAT_MEMORY]);
	if (!status) {
		writes_forget_ended(store);
		status = calls_sync(store->hooks, store->fds[FORMAT_JOURNAL]);
	}
	if (!status && store->journal.begin)
		status = journal_flush(store);
	if (status)
		store->failed = status;
	return status;
}

int store_recovered(struct store *store)
{
	int status = store_flush(store);

	if (!status && store->durable)
		status = calls_sync(store->hooks, store->fds[FORMAT_MEMORY]);
	if (status)
		return status;
	writes_forget_found(store);
	mapping_store(store->hooks, &store_page(store, FORMAT_JOURNAL)->stale, 0);
	return store->durable ? calls_sync(store->hooks, store->fds[FORMAT_JOURNAL]) : 0;
}
