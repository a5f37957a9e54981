/* Opens and closes a state, and puts its parts together. Owns the mappings and, through files.h, the descriptors.
 */
#include "daemon/store/store.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "daemon/store/cells.h"
#include "daemon/store/files/aside.h"
#include "daemon/store/files/calls.h"
#include "daemon/store/files/files.h"
#include "daemon/store/files/identity.h"
#include "daemon/store/image/image.h"
#include "daemon/store/image/manifest.h"
#include "daemon/store/image/pages.h"
#include "daemon/store/log/log.h"
#include "daemon/store/opening.h"
#include "daemon/store/take_up.h"
#include "daemon/store/under_way.h"

static void free_store(struct store *store)
{
	store_image_end(store);
	image_deinit(store);
	log_deinit(store);
	mapping_close(&store->journal.records);
	for (enum format_file file = 0; file < FORMAT_FILES; file++)
		mapping_close(&store->maps[file]);
	files_close(store);
	under_way_close(store);
	heap_free(store->heap, store);
}

static int read_pages(const struct opening *opening, struct format_page *pages, bool *is_blank)
{
	int status = 0;

	*is_blank = true;
	for (enum format_file file = 0; !status && file < FORMAT_FILES; file++) {
		status = files_read_page(opening, file, &pages[file]);
		*is_blank = *is_blank && !status && identity_is_blank(opening, file, &pages[file]);
	}
	return status;
}

static int open_state(struct opening *opening, struct format_page *pages)
{
	bool is_blank, is_snapshot = false;
	int status = identity_read_boot(opening);

	if (!status && opening->options->memory_bytes > INT64_MAX / 2)
		status = -EFBIG;
	if (!status)
		status = files_open(opening);
	if (!status)
		status = read_pages(opening, pages, &is_blank);
	if (status)
		return status;
	status = manifest_check(opening, &is_snapshot);
	if (status)
		return status;
	opening->report->is_new = is_blank;
	if (is_blank)
		return take_up_new(opening);
	status = identity_check(opening, pages);
	if (!status && is_snapshot)
		status = manifest_remove(opening);
	if (!status)
		status = log_replay(opening);
	if (!status)
		status = read_pages(opening, pages, &is_blank);
	return status ? status : take_up_found(opening, pages);
}

static struct store *new_store(const struct store_options *options)
{
	struct store *store = heap_zalloc(options->heap, 1, sizeof(*store));

	if (!store)
		return NULL;
	store->heap = options->heap;
	store->hooks = options->hooks;
	store->journal.seq = 1;
	for (enum format_file file = 0; file < FORMAT_FILES; file++)
		store->fds[file] = -1;
	return store;
}

/* So that no turn of the loop moves a table until it has a million tensors. */
static void reserve_tables(struct store *store)
{
	const uint64_t bytes = 256 << 20;

	for (enum store_table table = 0; table < STORE_TABLES; table++) {
		mapping_reserve(&store->maps[format_file_of(table)], bytes);
		mapping_reserve(&store->home[format_file_of(table)], bytes);
	}
}

/* Opens what stands there; where that cannot be used and was set aside, *is_aside. */
static int open_once(const struct store_options *options, struct store **out, struct store_report *report,
		     char *error, bool *is_aside)
{
	struct opening opening = {.options = options, .report = report, .error = error, .directory = -1};
	struct format_page *pages = heap_zalloc(options->heap, FORMAT_FILES, sizeof(*pages));

	opening.store = new_store(options);
	int status = pages && opening.store ? open_state(&opening, pages) : -ENOMEM;
	if (!status && options->durable)
		status = log_begin(opening.store, options);
	heap_free(options->heap, pages);
	if (status && options->aside_most && verdict_is_set_aside(report->verdict))
		*is_aside = !aside_set(&opening);
	if (!status)
		reserve_tables(opening.store);
	if (!status)
		*out = opening.store;
	else if (opening.store)
		free_store(opening.store);
	if (opening.directory >= 0)
		close(opening.directory);
	return status;
}

int store_open(const struct store_options *options, struct store **out, struct store_report *report, char *error)
{
	bool is_aside = false, is_aside_again = false;

	assert(options->geometry_bytes <= STORE_GEOMETRY_BYTES_MAX);
	*report = (struct store_report){.verdict = STORE_USABLE};
	error[0] = 0;
	int status = open_once(options, out, report, error, &is_aside);
	if (is_aside) {
		report->aside_verdict = report->verdict;
		report->verdict = STORE_USABLE;
		error[0] = 0;
		status = open_once(options, out, report, error, &is_aside_again);
	}
	if (!status)
		report->verdict = report->is_new ? STORE_EMPTY : STORE_USABLE;
	else if (report->verdict == STORE_USABLE)
		report->verdict = STORE_FAILED;
	if (status && !error[0])
		snprintf(error, STORE_ERROR_BYTES, "%.200s: %s",
			 options->directory ? options->directory : "the state", strerror(-status));
	return status;
}

/* All on the disk, then the word that says so. */
static int close_state(struct store *store)
{
	int status = store_flush(store);

	if (!status && log_is_on(&store->log))
		status = log_empty(store);
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

bool store_is_on_disk(const struct store *store)
{
	return calls_is_on_disk(store->fds[FORMAT_MEMORY]);
}

/* A page that was found there is not asked for again soon: the system takes those that were not used for long. */
struct known_page {
	uintptr_t page;
	uint64_t at_ns;
};

static struct known_page *known_page(uintptr_t page)
{
	enum { BITS = 7 };
	static _Thread_local struct known_page known[1 << BITS];

	/* The same offset of several NPUs is a power of two apart, or nearly. */
	return &known[page * UINT64_C(0x9E3779B97F4A7C15) >> (64 - BITS)];
}

bool store_are_there(const void *at, size_t bytes)
{
	enum { PAGES_MAX = 16, KNOWN_NS = 10000000 };
	uintptr_t page_bytes = (uintptr_t)sysconf(_SC_PAGESIZE), first = (uintptr_t)at / page_bytes;
	size_t n = ((uintptr_t)at + bytes - 1) / page_bytes - first + 1;
	unsigned char there[PAGES_MAX];
	bool are_known = true;
	struct timespec now;

	if (n > PAGES_MAX)
		return false;
	clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
	uint64_t now_ns = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
	for (uintptr_t page = first; page < first + n; page++)
		are_known &= known_page(page)->page == page && now_ns - known_page(page)->at_ns < KNOWN_NS;
	if (are_known)
		return true;
	if (mincore((void *)(first * page_bytes), n * page_bytes, there))
		return false;
	for (size_t i = 0; i < n; i++) {
		if (!(there[i] & 1))
			return false;
		*known_page(first + i) = (struct known_page){first + i, now_ns};
	}
	return true;
}

void *store_memory(struct store *store)
{
	return store->maps[FORMAT_MEMORY].at + FORMAT_PAGE_BYTES;
}

static bool is_at(const struct mapping *mapping, const void *address)
{
	return mapping->at && mapping->fd >= 0 && (uintptr_t)address - (uintptr_t)mapping->at < mapping->bytes;
}

const char *store_file_at(const struct store *store, const void *address)
{
	for (enum format_file file = FORMAT_JOURNAL; file < FORMAT_FILES; file++)
		if (is_at(&store->maps[file], address) || is_at(&store->home[file], address))
			return opening_names[file];
	return is_at(&store->journal.records, address) ? opening_names[FORMAT_JOURNAL] : NULL;
}

int store_recovered(struct store *store)
{
	int status = store_flush(store);

	if (status)
		return status;
	under_way_forget_found(store);
	status = store_flush(store);
	if (status)
		return status;
	mapping_store(store->hooks, &store_page(store, FORMAT_JOURNAL)->stale, 0);
	return log_is_on(&store->log) ? calls_sync(store->hooks, store->fds[FORMAT_JOURNAL]) : 0;
}
