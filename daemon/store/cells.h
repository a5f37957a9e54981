/* Tables of cells: their contents, their checksums, and room for more. */
#ifndef STORE_CELLS_H
#define STORE_CELLS_H

#include "daemon/store/internal.h"

struct opening;

enum { CELLS_AT_FIRST = 32 }; /* a table has whole pages of them */

/* Sets the members before the payload; `cell` has its payload. */
void cells_seal(struct format_cell *cell, enum format_state state, enum store_table table, uint32_t index,
		uint64_t seq, size_t bytes);
/* Whether a cell, in its table or in the journal, is one that was put or dropped under that index. */
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

/* Reads the size of the table's cells from its first page; at least 128. False: the page is damaged. */
bool cells_read_bytes(enum store_table table, const struct format_page *page, uint32_t *bytes);

/* Grows a table to n_cells or more; new cells are empty. 0 or -errno, and nothing changed. */
int cells_grow(struct store *store, enum store_table table, uint32_t n_cells);

/* Makes the first cells of a new table, whose file is mapped as a whole. */
void cells_make(struct store *store, enum store_table table);

/* Checks every cell: counts them in the report, marks damaged ones as lost and reports these. Returns the highest
 * number of a transaction that wrote one. */
uint64_t cells_look(const struct opening *opening);

#endif
