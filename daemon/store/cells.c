/* Every cell has a checksum, also an empty one: a block that the disk returns as zeros is not a block of empty
 * cells. Cells change through the journal only, with two exceptions: new cells, which do not count until the
 * table's number of cells is stored, and damaged cells, which become lost ones. */
#include "daemon/store/cells.h"

#include <errno.h>
#include <stddef.h>
#include <zlib.h>

#include "daemon/store/files/calls.h"
#include "daemon/store/log/log.h"
#include "daemon/store/opening.h"

enum { AMPLE_CELLS = 256 }; /* the kernel makes their pages in 0.1 ms */

static const char *const names[STORE_TABLES] = {"tensors", "sessions", "results"};

/* At another index the same cell has another checksum. */
static uint32_t checksum(const struct format_cell *cell, uint32_t index)
{
	return (uint32_t)crc32_z(index, (const uint8_t *)&cell->bytes,
				 FORMAT_CELL_BYTES - offsetof(struct format_cell, bytes) + cell->bytes);
}

void cells_seal(struct format_cell *cell, enum format_state state, enum store_table table, uint32_t index,
		uint64_t seq, size_t bytes)
{
	cell->bytes = (uint16_t)bytes;
	cell->state = (uint8_t)state;
	cell->table = (uint8_t)table;
	cell->seq = seq;
	cell->crc = checksum(cell, index);
}

bool cells_is_sound(const struct store *store, const struct format_cell *cell, enum store_table table,
		    uint32_t index)
{
	if (cell->bytes > cells_payload_max(store, table) || cell->table != table ||
	    cell->crc != checksum(cell, index))
		return false;
	return cell->state == FORMAT_USED || (cell->state == FORMAT_EMPTY && cell->bytes == sizeof(uint64_t)) ||
	       (cell->state == FORMAT_LOST && !cell->bytes);
}

bool cells_read_bytes(enum store_table table, const struct format_page *page, uint32_t *bytes)
{
	uint32_t number;

	*bytes = format_cell_bytes_of_version_1(table);
	if (!page->cell_bytes)
		return true;
	if (!format_number(page->cell_bytes, &number) || number != format_cell_bytes(table))
		return false;
	*bytes = number;
	return true;
}

/* The new cells have the stamp 0. */
static void empty(struct store *store, enum store_table table, uint32_t from, uint32_t to)
{
	for (uint32_t index = from; index < to; index++) {
		struct format_cell *cell = cells_at(store, table, index);
		memset(cell->payload, 0, sizeof(uint64_t));
		cells_seal(cell, FORMAT_EMPTY, table, index, 0, sizeof(uint64_t));
	}
}

void cells_make(struct store *store, enum store_table table)
{
	enum format_file file = format_file_of(table);
	uint32_t n = (uint32_t)((store->maps[file].bytes - FORMAT_PAGE_BYTES) / format_cell_bytes(table));

	store->cell_bytes[table] = format_cell_bytes(table);
	empty(store, table, 0, n);
	mapping_store(store->hooks, &store_page(store, file)->cell_bytes, format_word(store->cell_bytes[table]));
	mapping_store(store->hooks, &store_page(store, file)->n_cells, format_word(n));
	store->n_cells[table] = n;
}

static int grow_to(struct store *store, enum store_table table, uint64_t n_cells)
{
	enum format_file file = format_file_of(table);
	uint64_t bytes = FORMAT_PAGE_BYTES + n_cells * store->cell_bytes[table];

	if (n_cells > UINT32_MAX)
		return -EFBIG;
	int status = mapping_grow(&store->maps[file], bytes);
	if (status)
		return status;
	empty(store, table, store->n_cells[table], (uint32_t)n_cells);
	struct format_page *page = (struct format_page *)(void *)store->maps[file].at;
	/* Cells before their number. */
	if (log_is_on(&store->log))
		log_add_all(store, file,
			    FORMAT_PAGE_BYTES + store->n_cells[table] * (uint64_t)store->cell_bytes[table], bytes);
	mapping_store(store->hooks, &page->n_cells, format_word((uint32_t)n_cells));
	if (log_is_on(&store->log))
		log_add(store, file, offsetof(struct format_page, n_cells), &page->n_cells, sizeof(page->n_cells));
	store->n_cells[table] = (uint32_t)n_cells;
	return 0;
}

int cells_grow(struct store *store, enum store_table table, uint32_t n_cells)
{
	uint64_t have = store->n_cells[table], in_page = FORMAT_PAGE_BYTES / store->cell_bytes[table];
	uint64_t ample = have + AMPLE_CELLS;

	if (n_cells <= have)
		return 0;
	/* Some more, so that tables do not grow for each tensor, but few, as one turn of the loop does it. If
	 * these do not fit, only the needed ones. */
	uint64_t pages = ((uint64_t)n_cells + in_page - 1) / in_page, ample_pages = ample / in_page;
	int status = ample_pages > pages ? grow_to(store, table, ample_pages * in_page) : -ENOSPC;
	return status ? grow_to(store, table, pages * in_page) : 0;
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

static void look_at(const struct opening *opening, enum store_table table, uint32_t index, uint64_t *seq)
{
	struct format_cell *cell = cells_at(opening->store, table, index);
	bool is_sound = cells_is_sound(opening->store, cell, table, index);

	if (is_sound && *seq < cell->seq)
		*seq = cell->seq;
	if (is_sound && cell->state != FORMAT_LOST) {
		opening->report->tables[table].n_kept += cell->state == FORMAT_USED;
		return;
	}
	if (!is_sound)
		cells_seal(cell, FORMAT_LOST, table, index, 0, 0);
	if (opening->report->tables[table].n_lost++ < 3)
		opening_tell(opening, "%s: cell %u is damaged and lost", names[table], index);
}

uint64_t cells_look(const struct opening *opening)
{
	uint64_t seq = 0;

	for (enum store_table table = 0; table < STORE_TABLES; table++) {
		for (uint32_t index = 0; index < opening->store->n_cells[table]; index++)
			look_at(opening, table, index, &seq);
		if (opening->report->tables[table].n_lost > 3)
			opening_tell(opening, "%s: %u cells are damaged and lost in all", names[table],
				     opening->report->tables[table].n_lost);
	}
	return seq;
}
