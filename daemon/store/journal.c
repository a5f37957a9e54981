/* Owns the records and their order. A record is the new cell, with its checksum and with the number of its
 * transaction. So a record of an earlier transaction is not mistaken for it, and no record is applied to a cell of
 * a later one.
 *
 * `valid` is stored after all records, and cleared after all cells: a process that dies in between leaves a
 * transaction that can be applied again. */
#include "daemon/store/journal.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>

#include "daemon/store/cells.h"
#include "daemon/store/files/calls.h"
#include "daemon/store/image/pages.h"
#include "daemon/store/log/log.h"
#include "daemon/store/opening.h"

static struct format_transaction *transaction_at(const struct journal *journal, uint64_t off)
{
	return (struct format_transaction *)(void *)(journal->records.at + off);
}

static struct format_record *record_at(const struct journal *journal, uint64_t off)
{
	return (struct format_record *)(void *)(journal->records.at + off);
}

static uint64_t record_bytes(const struct format_record *record)
{
	return (sizeof(*record) + record->cell.bytes + 7) & ~UINT64_C(7);
}

static uint64_t mix_of(const struct format_transaction *transaction)
{
	return format_mix(transaction->seq, transaction->bytes, transaction->n_records);
}

/* Takes room for n_changes more. 0 or -errno. */
static int reserve(struct store *store, uint32_t n_changes)
{
	struct journal *journal = &store->journal;
	uint64_t end = journal->end ? journal->end : sizeof(struct format_transaction);
	uint64_t need = end + (uint64_t)n_changes * FORMAT_RECORD_BYTES_MAX, have = journal->records.bytes;

	/* As add_to_log counts. */
	if (log_is_on(&store->log)) {
		int status = need > LOG_BUFFER / 2 ? -ENOSPC : log_reserve(store, 2 * need);
		if (status)
			return status;
	}
	if (need <= have)
		return 0;
	uint64_t bytes = (need + FORMAT_PAGE_BYTES - 1) & ~(uint64_t)(FORMAT_PAGE_BYTES - 1);
	int status = bytes < 2 * have ? mapping_grow(&journal->records, 2 * have) : -ENOSPC;
	return status ? mapping_grow(&journal->records, bytes) : 0;
}

int store_prepare(struct store *store, enum store_table table, uint32_t n_cells, uint32_t n_changes)
{
	int status = cells_grow(store, table, n_cells);

	return status ? status : reserve(store, n_changes);
}

static void add(struct store *store, enum format_state state, enum store_table table, uint32_t index,
		const void *payload, size_t bytes)
{
	struct journal *journal = &store->journal;

	assert(index < store->n_cells[table] && bytes <= cells_payload_max(store, table));
	if (!journal->end)
		journal->end = sizeof(struct format_transaction);
	assert(journal->end + FORMAT_RECORD_BYTES_MAX <= journal->records.bytes);
	struct format_record *record = record_at(journal, journal->end);
	record->table = table;
	record->index = index;
	mapping_copy(store->hooks, record->cell.payload, payload, bytes);
	cells_seal(&record->cell, state, table, index, journal->seq, bytes);
	journal->end += record_bytes(record);
	journal->n_records++;
}

void store_put(struct store *store, enum store_table table, uint32_t index, const void *payload, size_t bytes)
{
	add(store, FORMAT_USED, table, index, payload, bytes);
}

void store_drop(struct store *store, enum store_table table, uint32_t index, uint64_t stamp)
{
	add(store, FORMAT_EMPTY, table, index, &stamp, sizeof(stamp));
}

/* Copies the records of a transaction into their cells. */
static void apply(struct store *store, uint64_t off)
{
	const struct format_transaction *transaction = transaction_at(&store->journal, off);

	off += sizeof(*transaction);
	for (uint64_t i = 0; i < transaction->n_records; i++) {
		const struct format_record *record = record_at(&store->journal, off);
		struct format_cell *cell = cells_at(store, record->table, record->index);
		image_before_cell(store, record->table, record->index);
		mapping_copy(store->hooks, cell, &record->cell, FORMAT_CELL_BYTES + record->cell.bytes);
		off += record_bytes(record);
	}
}

/* Records and changes of the log have about the same bytes. */
static void add_to_log(struct store *store)
{
	const struct format_transaction *transaction = transaction_at(&store->journal, 0);
	uint64_t off = sizeof(*transaction);

	log_unit_begin(store, 2 * transaction->bytes);
	for (uint64_t i = 0; i < transaction->n_records; i++) {
		const struct format_record *record = record_at(&store->journal, off);
		enum format_file file = format_file_of(record->table);
		uint64_t at = (uint64_t)((const uint8_t *)cells_at(store, record->table, record->index) -
					 store->maps[file].at);
		log_unit_add(store, file, at, &record->cell, FORMAT_CELL_BYTES + record->cell.bytes);
		off += record_bytes(record);
	}
	log_unit_end(store);
}

uint64_t store_n_changes(const struct store *store)
{
	return store->journal.end ? store->journal.n_records : 0;
}

void store_commit(struct store *store)
{
	struct journal *journal = &store->journal;
	struct format_transaction *transaction = transaction_at(journal, 0);

	if (!journal->end)
		return;
	transaction->seq = journal->seq++;
	transaction->bytes = journal->end;
	transaction->n_records = journal->n_records;
	mapping_store(store->hooks, &transaction->valid, mix_of(transaction));
	apply(store, 0);
	if (log_is_on(&store->log))
		add_to_log(store);
	mapping_store(store->hooks, &transaction->valid, 0);
	journal->end = journal->n_records = 0;
}

static bool record_is_whole(const struct store *store, const struct format_record *record, uint64_t most)
{
	return most >= sizeof(*record) && record->table < STORE_TABLES &&
	       record->index < store->n_cells[record->table] &&
	       record->cell.bytes <= cells_payload_max(store, record->table) && record_bytes(record) <= most &&
	       cells_is_sound(store, &record->cell, record->table, record->index);
}

/* Whether all records of a valid transaction are sound. */
static bool is_whole(const struct store *store, uint64_t off)
{
	const struct format_transaction *transaction = transaction_at(&store->journal, off);
	uint64_t n = 0, left = transaction->bytes - sizeof(*transaction);

	if (transaction->bytes < sizeof(*transaction) || transaction->bytes > store->journal.records.bytes - off)
		return false;
	for (off += sizeof(*transaction); left; n++) {
		const struct format_record *record = record_at(&store->journal, off);
		if (!record_is_whole(store, record, left) || record->cell.seq != transaction->seq)
			return false;
		off += record_bytes(record);
		left -= record_bytes(record);
	}
	return n == transaction->n_records;
}

/* Skips cells of later transactions: they are newer. */
static void apply_again(struct store *store, uint64_t off)
{
	const struct format_transaction *transaction = transaction_at(&store->journal, off);

	off += sizeof(*transaction);
	for (uint64_t i = 0; i < transaction->n_records; i++) {
		const struct format_record *record = record_at(&store->journal, off);
		struct format_cell *cell = cells_at(store, record->table, record->index);
		if (!cells_is_sound(store, cell, record->table, record->index) || cell->seq <= transaction->seq)
			mapping_copy(store->hooks, cell, &record->cell, FORMAT_CELL_BYTES + record->cell.bytes);
		off += record_bytes(record);
	}
}

/* Behind the first transaction, invalid bytes are only remains of earlier ones. */
static void tell_damage(const struct opening *opening, uint64_t valid)
{
	if (valid)
		opening_tell(
			opening,
			"journal: what stands in it is damaged; if a change was under way, it may be half done");
}

/* Where a log was, elements stay as clients wrote them. A transaction that a loss of power tears must not have
 * them in place of its records. */
static int forget_log(struct store *store)
{
	enum { END = FORMAT_RECORDS_OFF + FORMAT_RECORDS_BYTES };
	int fd = store->fds[FORMAT_JOURNAL], status;

	mapping_close(&store->journal.records);
	status = calls_truncate(store->hooks, fd, END);
	if (!status)
		status = calls_write_zeros(store->hooks, fd, FORMAT_RECORDS_OFF, END);
	if (!status)
		status = calls_sync(store->hooks, fd);
	return status ? status
		      : mapping_open(&store->journal.records, store->hooks, fd, FORMAT_RECORDS_OFF,
				     FORMAT_RECORDS_BYTES, false);
}

int journal_replay(const struct opening *opening)
{
	struct store *store = opening->store;
	struct journal *journal = &store->journal;
	uint64_t off = 0, most = journal->records.bytes - sizeof(struct format_transaction);
	unsigned n = 0, n_most = opening->version == 1 ? UINT_MAX : 1;
	int status = 0;

	for (; off <= most && n < n_most; n++) {
		const struct format_transaction *transaction = transaction_at(journal, off);
		bool is_next =
			transaction->valid == mix_of(transaction) && (!n || transaction->seq == journal->seq);
		if (!is_next || !is_whole(store, off)) {
			if (!n)
				tell_damage(opening, transaction->valid);
			break;
		}
		apply_again(store, off);
		journal->seq = transaction->seq + 1;
		off += transaction->bytes;
	}
	for (enum store_table table = 0; n && !status && table < STORE_TABLES; table++)
		status = calls_sync(store->hooks, store->fds[format_file_of(table)]);
	if (!status)
		mapping_store(store->hooks, &transaction_at(journal, 0)->valid, 0);
	if (!status && !opening->options->durable)
		status = forget_log(store);
	if (status)
		return opening_refuse(opening, FORMAT_JOURNAL, status, "cannot be replayed: %s",
				      strerror(-status));
	if (n)
		opening_tell(opening, "journal: %u changes that were under way are done", n);
	return 0;
}
