/* Tables of cells: what is in one, whether it can be believed, and room for more. */
#ifndef STORE_CELLS_H
#define STORE_CELLS_H

#include "daemon/store/internal.h"

struct opening;

enum { CELLS_AT_FIRST = 32 }; /* a table has whole pages of them */

/* Sets what is before the payload; `cell` has its payload. */
void cells_seal(struct format_cell *cell, enum format_state state, enum store_table table, uint32_t index,
		uint64_t seq, size_t bytes);
/* Whether a cell, here or in the journal, is what was once put or dropped as that number. */
bool cells_is_sound(const struct store *store, const struct format_cell *cell, enum store_table table,
		    uint32_t index);

static inline struct format_cell *cells_at(const struct store *store, enum store_table table, uint32_t index)
{
	return (struct format_cell *)(void *)(store->maps[format_file_of(table)].at + FORMAT_PAGE_BYTES +
					      (uint64_t)index * store->cell_bytes[table]);
}

static inline uint32_t cells_payload_max(const struct store *store, enum store_table table)
{
	return store->cell_bytes[table] - FORMAT_CELL_BYTES;
}

/* How large the table's cells are, by its first page; at least 128. False: the page is damaged. */
bool cells_read_bytes(enum store_table table, const struct format_page *page, uint32_t *bytes);

/* At least so many cells, the new ones empty. 0 or -errno, and nothing changed. */
int cells_grow(struct store *store, enum store_table table, uint32_t n_cells);

/* Makes the first cells of a new table, of whose file all is mapped. */
void cells_make(struct store *store, enum store_table table);

/* Looks at every cell: counts them in the report, marks the damaged ones as lost and tells of them. The highest
 * number of a transaction that wrote one. */
uint64_t cells_look(const struct opening *opening);

#endif
