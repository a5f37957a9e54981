/* The store's inside, for its own files. */
#ifndef STORE_INTERNAL_H
#define STORE_INTERNAL_H

#include <stdatomic.h>

#include "daemon/store/format.h"
#include "daemon/store/image_pages.h"
#include "daemon/store/journal.h"
#include "daemon/store/log.h"
#include "daemon/store/mapping.h"
#include "daemon/store/runs.h"
#include "daemon/store/writes.h"

struct store {
	const struct heap *heap;
	const struct store_hooks *hooks;
	_Atomic int failed; /* what the disk answered: nothing may be acknowledged any more */
	int fds[FORMAT_FILES];
	struct mapping maps[FORMAT_FILES]; /* the journal's up to its records */
	struct mapping home[FORMAT_FILES]; /* with a log, the files themselves; `maps` are private copies */
	uint32_t n_cells[STORE_TABLES], cell_bytes[STORE_TABLES];
	uint32_t epoch;
	struct journal journal;
	struct log log;
	struct writes writes;
	struct runs runs;
	struct image image;
};

/* A file's first page, in the file itself. */
static inline struct format_page *store_page(const struct store *store, enum format_file file)
{
	return (struct format_page *)(void *)(store->home[file].at ? store->home[file].at : store->maps[file].at);
}

#endif
