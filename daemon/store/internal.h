/* The store's inside, for its own files. */
#ifndef STORE_INTERNAL_H
#define STORE_INTERNAL_H

#include <stdatomic.h>

#include "daemon/store/format.h"
#include "daemon/store/image_pages.h"
#include "daemon/store/journal.h"
#include "daemon/store/mapping.h"
#include "daemon/store/writes.h"

struct store {
	const struct heap *heap;
	const struct store_hooks *hooks;
	bool durable;
	_Atomic int failed; /* what store_flush answers from now on */
	int fds[FORMAT_FILES];
	struct mapping maps[FORMAT_FILES]; /* the journal's up to its records */
	uint32_t n_cells[STORE_TABLES];
	uint32_t epoch;
	struct journal journal;
	struct writes writes;
	struct image image;
};

static inline struct format_page *store_page(const struct store *store, enum format_file file)
{
	return (struct format_page *)(void *)store->maps[file].at;
}

#endif
