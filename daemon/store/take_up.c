/* In a new state the journal's epoch is stored last: until then all files count as empty. In a found state all
 * checks come before the first store into its files. */
#include "daemon/store/take_up.h"

#include <errno.h>

#include "daemon/store/cells.h"
#include "daemon/store/files/calls.h"
#include "daemon/store/files/identity.h"
#include "daemon/store/journal.h"
#include "daemon/store/under_way.h"

static uint64_t whole_pages(uint64_t bytes)
{
	return (bytes + FORMAT_PAGE_BYTES - 1) & ~(uint64_t)(FORMAT_PAGE_BYTES - 1);
}

/* All files are mapped. */
static int begin(struct opening *opening)
{
	int status = under_way_open(opening);

	return status ? status : identity_begin(opening);
}

/* ---- a new one ---- */

static uint64_t bytes_of(const struct opening *opening, enum format_file file)
{
	if (file == FORMAT_JOURNAL)
		return FORMAT_RECORDS_OFF;
	if (file != FORMAT_MEMORY)
		return 2 * FORMAT_PAGE_BYTES;
	return whole_pages(FORMAT_PAGE_BYTES + opening->options->memory_bytes);
}

static int create_file(struct opening *opening, enum format_file file, const uint8_t *state)
{
	struct store *store = opening->store;
	uint64_t bytes = bytes_of(opening, file);
	int status = mapping_open(&store->maps[file], store->hooks, store->fds[file], 0, bytes,
				  file == FORMAT_MEMORY && opening->options->sparse);

	if (!status && file == FORMAT_JOURNAL) {
		bytes += FORMAT_RECORDS_BYTES;
		status = mapping_open(&store->journal.records, store->hooks, store->fds[file], FORMAT_RECORDS_OFF,
				      FORMAT_RECORDS_BYTES, false);
	}
	if (status)
		return opening_refuse(opening, file, status, "%llu bytes cannot be taken: %s",
				      (unsigned long long)bytes, strerror(-status));
	identity_make(opening, file, state, store_page(store, file));
	if (file >= FORMAT_TENSORS)
		cells_make(store, (enum store_table)(file - FORMAT_TENSORS));
	status = calls_sync(store->hooks, store->fds[file]);
	return status ? opening_refuse(opening, file, status, "does not reach the disk: %s", strerror(-status))
		      : 0;
}

static int create_all(struct opening *opening)
{
	struct store *store = opening->store;
	uint8_t state[FORMAT_ID_BYTES];
	int status = calls_random(store->hooks, state, sizeof(state));

	for (unsigned file = FORMAT_FILES; !status && file-- > 0;)
		status = calls_truncate(store->hooks, store->fds[file], 0);
	if (status)
		return opening_refuse(opening, FORMAT_JOURNAL, status, "a state cannot be made: %s",
				      strerror(-status));
	for (enum format_file file = 0; !status && file < FORMAT_FILES; file++)
		status = create_file(opening, file, state);
	if (status)
		return status;
	status = begin(opening);
	return status ? opening_refuse(opening, FORMAT_JOURNAL, status, "a state cannot be made: %s",
				       strerror(-status))
		      : 0;
}

int take_up_new(struct opening *opening)
{
	struct store *store = opening->store;
	int status = create_all(opening);

	/* Gives the room back. The mappings of these files are not touched any more. */
	for (unsigned file = FORMAT_FILES; status && file-- > 0;)
		(void)calls_truncate(store->hooks, store->fds[file], 0);
	return status;
}

/* ---- one that was found ---- */

/* Reads the number of a table's cells. After a loss of power without `durable` the file may lack some. */
static int count_cells(struct opening *opening, enum store_table table, const struct format_page *page)
{
	enum format_file file = format_file_of(table);
	uint32_t *n_cells = &opening->store->n_cells[table], *cell_bytes = &opening->store->cell_bytes[table];
	uint64_t there;

	if (!format_number(page->n_cells, n_cells) || !cells_read_bytes(table, page, cell_bytes))
		return opening_judge(opening, file, STORE_DAMAGED, "is damaged: a word of its header is wrong");
	there = (opening->bytes[file] - FORMAT_PAGE_BYTES) / *cell_bytes;
	if (*n_cells <= there)
		return 0;
	if (!opening->report->is_stale)
		return opening_judge(opening, file, STORE_CUT_SHORT, "is cut short: it has %llu cells of %u",
				     (unsigned long long)there, *n_cells);
	opening_tell(opening, "%s: %u cells are lost at its end", opening_names[file], *n_cells - (uint32_t)there);
	*n_cells = (uint32_t)there;
	return 0;
}

static int check_sizes(struct opening *opening, const struct format_page *pages)
{
	uint64_t memory = FORMAT_PAGE_BYTES + opening->options->memory_bytes;
	int status = 0;

	if (opening->bytes[FORMAT_MEMORY] < memory)
		return opening_judge(
			opening, FORMAT_MEMORY, STORE_CUT_SHORT, "is cut short: it has %llu bytes of %llu",
			(unsigned long long)opening->bytes[FORMAT_MEMORY], (unsigned long long)memory);
	if (opening->bytes[FORMAT_JOURNAL] < FORMAT_RECORDS_OFF + FORMAT_RECORDS_BYTES)
		return opening_judge(opening, FORMAT_JOURNAL, STORE_CUT_SHORT, "is cut short: it has %llu bytes",
				     (unsigned long long)opening->bytes[FORMAT_JOURNAL]);
	for (enum store_table table = 0; !status && table < STORE_TABLES; table++)
		status = count_cells(opening, table, &pages[format_file_of(table)]);
	return status;
}

static int map_all(const struct opening *opening)
{
	struct store *store = opening->store;
	uint64_t bytes[FORMAT_FILES] = {
		[FORMAT_JOURNAL] = FORMAT_RECORDS_OFF,
		[FORMAT_MEMORY] = whole_pages(FORMAT_PAGE_BYTES + opening->options->memory_bytes),
	};
	uint64_t records =
		(opening->bytes[FORMAT_JOURNAL] - FORMAT_RECORDS_OFF) & ~(uint64_t)(FORMAT_PAGE_BYTES - 1);
	int status = mapping_open(&store->journal.records, store->hooks, store->fds[FORMAT_JOURNAL],
				  FORMAT_RECORDS_OFF, records, false);

	if (status)
		return opening_refuse(opening, FORMAT_JOURNAL, status, "cannot be mapped: %s", strerror(-status));
	for (enum store_table table = 0; table < STORE_TABLES; table++)
		bytes[format_file_of(table)] = whole_pages(FORMAT_PAGE_BYTES + (uint64_t)store->n_cells[table] *
										       store->cell_bytes[table]);
	for (enum format_file file = 0; file < FORMAT_FILES; file++) {
		status = mapping_open(&store->maps[file], store->hooks, store->fds[file], 0, bytes[file],
				      file == FORMAT_MEMORY && opening->options->sparse);
		if (status)
			return opening_refuse(opening, file, status, "cannot be mapped: %s", strerror(-status));
	}
	return 0;
}

/* Stores the number of cells of a table that lacks some, for the next process as well. */
static void store_n_cells_found(const struct opening *opening)
{
	const struct store *store = opening->store;

	for (enum store_table table = 0; table < STORE_TABLES; table++) {
		uint64_t *word = &store_page(store, format_file_of(table))->n_cells;
		if (*word != format_word(store->n_cells[table]))
			mapping_store(store->hooks, word, format_word(store->n_cells[table]));
	}
}

static void tell(const struct opening *opening)
{
	const struct store_report *report = opening->report;

	if (opening->is_copy)
		opening_tell(opening, "a copy of a state that was closed");
	if (!report->was_clean)
		opening_tell(opening, "the last process ended without closing the state; %u writes were under way",
			     report->n_writes);
	if (report->is_stale)
		opening_tell(opening, "local memory may not be what the tables say: no data is believed");
}

int take_up_found(struct opening *opening, const struct format_page *pages)
{
	struct store *store = opening->store;
	int status = check_sizes(opening, pages);

	if (!status)
		status = map_all(opening);
	if (status)
		return status;
	status = begin(opening);
	if (status)
		return opening_refuse(opening, FORMAT_JOURNAL, status, "cannot be taken up: %s",
				      strerror(-status));
	store_n_cells_found(opening);
	status = journal_replay(opening);
	if (status)
		return status;
	uint64_t seq = cells_look(opening) + 1;
	if (store->journal.seq < seq)
		store->journal.seq = seq;
	tell(opening);
	return 0;
}
