/* Every way in which files of a state can be wrong: it is refused, or what is lost is told, and nothing else is
 * believed than what was stored. */
#include <errno.h>
#include <stddef.h>
#include <zlib.h>

#include "daemon/store/cells.h"
#include "tests/unit/daemon/store/state.h"

enum { N_CELLS = 6 };

static const char *texts[] = {"a cell", "another cell", "one with rather more in it, as tensors have: 0123456789"};

static const char *text_of(enum store_table table, uint32_t index)
{
	return texts[((uint32_t)table + index) % 3];
}

/* Some cells in use in each table, an empty one that was dropped, and one write under way. */
static void fill(void)
{
	struct store_write *write;
	state_open();
	for (enum store_table table = 0; table < STORE_TABLES; table++) {
		ck_assert_int_eq(store_prepare(state.store, table, N_CELLS, N_CELLS + 1), 0);
		for (uint32_t index = 0; index < N_CELLS; index++)
			store_put(state.store, table, index, text_of(table, index), strlen(text_of(table, index)));
		store_drop(state.store, table, 4, 4444);
		store_commit(state.store);
	}
	ck_assert_int_eq(store_write_begin(state.store, 99, 1, 2, &write), 0);
	strcpy(store_memory(state.store), "memory");
	state_keep(store_memory(state.store), 7);
	ck_assert_int_eq(store_flush(state.store), 0);
}

/* Each cell is what it was, or lost and told. */
static unsigned look(void)
{
	unsigned n_lost[STORE_TABLES] = {0}, sum = 0;
	size_t bytes;
	for (enum store_table table = 0; table < STORE_TABLES; table++) {
		for (uint32_t index = 0; index < store_n_cells(state.store, table); index++) {
			if (store_is_lost(state.store, table, index)) {
				n_lost[table]++;
				ck_assert_ptr_null(store_cell(state.store, table, index, &bytes));
				continue;
			}
			bool is_used = index < N_CELLS && index != 4;
			ck_assert_int_eq(store_cell(state.store, table, index, &bytes) != NULL, is_used);
			ck_assert(!is_used || state_has(table, index, text_of(table, index)));
			ck_assert_uint_eq(store_stamp(state.store, table, index), index == 4 ? 4444 : 0);
		}
		ck_assert_uint_eq(state.report.tables[table].n_lost, n_lost[table]);
		sum += n_lost[table];
	}
	return sum;
}

/* The files as they are, to be put back. */
static struct {
	char *text;
	size_t bytes;
} kept[STATE_FILES];

static void keep(void)
{
	for (unsigned i = 0; i < STATE_FILES; i++)
		kept[i].text = state_read(state_path(state_files[i]), &kept[i].bytes);
}

static void put_back(void)
{
	for (unsigned i = 0; i < STATE_FILES; i++) {
		state_write(state_path(state_files[i]), kept[i].text, kept[i].bytes, 0);
		ck_assert_int_eq(truncate(state_path(state_files[i]), (off_t)kept[i].bytes), 0);
	}
}

static void forget(void)
{
	for (unsigned i = 0; i < STATE_FILES; i++)
		free(kept[i].text);
}

/* Where a flip must not go without a word: what the file says, and not what it leaves free. */
static bool matters(unsigned file, size_t at)
{
	static const size_t run = offsetof(struct format_page, runs) + offsetof(struct format_run, crc) + 4;
	if (file == FORMAT_MEMORY && at >= FORMAT_PAGE_BYTES)
		return false;
	if (at < FORMAT_PAGE_BYTES) /* of the two runs the first one is the last */
		return at < sizeof(struct format_header) || (at >= 1024 && at < 1032) ||
		       (file >= FORMAT_TENSORS && ((at >= 1032 && at < 1040) || (at >= 1048 && at < 1056))) ||
		       (file == FORMAT_JOURNAL && ((at >= 1040 && at < 1048) || (at >= 2048 && at < run)));
	if (file == FORMAT_JOURNAL)
		return at < FORMAT_PAGE_BYTES + sizeof(struct store_write);
	size_t cell_bytes = format_cell_bytes((enum store_table)(file - FORMAT_TENSORS));
	const struct format_cell *cell = (const void *)(kept[file].text + FORMAT_PAGE_BYTES +
							(at - FORMAT_PAGE_BYTES) / cell_bytes * cell_bytes);
	return (at - FORMAT_PAGE_BYTES) % cell_bytes < (size_t)FORMAT_CELL_BYTES + cell->bytes;
}

/* What an open that is not refused writes to. */
static void put_back_beginnings(void)
{
	for (unsigned i = 0; i < STATE_FILES; i++) {
		const char *path = state_path(state_files[i]);
		state_write(path, kept[i].text, kept[i].bytes < 8192 ? kept[i].bytes : 8192, 0);
		if (i == FORMAT_JOURNAL)
			state_write(path, kept[i].text + FORMAT_RECORDS_OFF, 8192, FORMAT_RECORDS_OFF);
	}
}

/* Which bytes are flipped: all that matter, and a few of what is large and alike. */
static size_t next_byte(unsigned file, size_t at)
{
	size_t end = at + (at >= FORMAT_PAGE_BYTES + 1024 && file == FORMAT_JOURNAL ? 40961 : 97);
	for (at++; at < end && at < kept[file].bytes; at++)
		if (matters(file, at))
			break;
	return at;
}

/* What became of one flip: refused, or told, or nothing was lost. */
static bool see_flip(unsigned file, size_t at, unsigned bit)
{
	const struct store_found_write *found;
	int status = state_try();
	if (status) {
		ck_assert_int_eq(status, -EINVAL);
		ck_assert_msg(strstr(state.error, state_files[file]) || strstr(state.error, "journal"), "%s",
			      state.error);
		return true;
	}
	ck_assert(!state.report.is_new);
	bool is_told = look() || state.report.is_stale || state_tells("damaged");
	ck_assert_msg(is_told || !matters(file, at), "bit %u of byte %zu of %s went unnoticed", bit, at,
		      state_files[file]);
	if (store_writes_found(state.store, &found) == 1)
		ck_assert(found->handle == 99 && found->first == 1 && found->count == 2);
	else
		ck_assert(state.report.is_stale);
	state_close(false);
	put_back_beginnings();
	return is_told;
}

/* A bit of each byte; all of them where NPUMEM_STORE_EVERY_BIT is set, which takes seconds. */
TEST(every_bit, .to = STATE_FILES, .is_slow = true)
{
	unsigned n_told = 0, file = (unsigned)_i;
	unsigned step = getenv("NPUMEM_STORE_EVERY_BIT") ? 1 : 8;
	fill();
	state_close(false);
	keep();
	for (size_t at = 0; at < kept[file].bytes; at = next_byte(file, at))
		for (unsigned bit = at % step; bit < 8; bit += step) {
			char byte = (char)(kept[file].text[at] ^ 1 << bit);
			state_write(state_path(state_files[file]), &byte, 1, at);
			n_told += see_flip(file, at, bit);
			state_write(state_path(state_files[file]), &kept[file].text[at], 1, at);
		}
	ck_assert_uint_ge(n_told, 8 / step * (sizeof(struct format_header) + 8));
	state_open();
	ck_assert_uint_eq(look(), 0);
	ck_assert(!state_tells("damaged"));
	state_close(false);
	forget();
}

/* A file that ends early, whether in its page, its cells or its records. */
TEST(every_length, .to = STATE_FILES)
{
	unsigned file = (unsigned)_i;
	fill();
	state_close(false);
	keep();
	for (size_t bytes = 0; bytes < kept[file].bytes;
	     bytes += bytes < FORMAT_PAGE_BYTES ? 61 : kept[file].bytes / 20 + 1) {
		ck_assert_int_eq(truncate(state_path(state_files[file]), (off_t)bytes), 0);
		int status = state_try();
		bool is_whole = file == FORMAT_MEMORY && bytes >= FORMAT_PAGE_BYTES + STATE_MEMORY_BYTES;
		ck_assert_msg(is_whole ? !status : status == -EINVAL, "%zu: %d %s", bytes, status, state.error);
		ck_assert(is_whole || strstr(state.error, "cut short") ||
			  strstr(state.error, "not of an npumem state") ||
			  (file == FORMAT_JOURNAL && !bytes && strstr(state.error, "is missing")));
		if (!status)
			state_close(false);
		state.store = NULL;
		put_back();
	}
	state_open();
	ck_assert_uint_eq(look(), 0);
	ck_assert_str_eq(store_memory(state.store), "memory");
	state_close(true);
	forget();
}

TEST(a_file_that_is_missing, .to = STATE_FILES)
{
	fill();
	state_close(true);
	keep();
	unlink(state_path(state_files[_i]));
	state_refused(-EINVAL,
		      _i == FORMAT_JOURNAL ? "is missing, and other files are there" : "is missing or cut short");
	/* And that attempt made nothing of it. */
	state_refused(-EINVAL,
		      _i == FORMAT_JOURNAL ? "is missing, and other files are there" : "is missing or cut short");
	put_back();
	/* A new file, though of the same bytes. */
	state_refused(-EINVAL, "some files of the state are copies");
	forget();
}

/* Whatever it begins with. */
TEST(a_foreign_file, .to = STATE_FILES)
{
	char text[9000] = {0};
	memset(text + 1500, 'x', sizeof(text) - 1500);
	state_write(state_path(state_files[_i]), text, sizeof(text), 0);
	state_refused(-EINVAL, "");
	size_t bytes;
	char *after = state_read(state_path(state_files[_i]), &bytes);
	ck_assert_uint_eq(bytes, sizeof(text));
	ck_assert_mem_eq(after, text, bytes);
	free(after);
	unlink(state_path(state_files[_i]));
	/* The others are empty as that attempt left them. */
	state_open();
	ck_assert(state.report.is_new);
	state_close(false);
	state_write(state_path(state_files[_i]), text, sizeof(text), 0);
	state_refused(-EINVAL, "is not of an npumem state");
}

TEST(another_version, .to = 2)
{
	uint32_t version = _i ? FORMAT_VERSION + 1 : FORMAT_VERSION_LEAST - 1;
	struct format_header header;
	fill();
	state_close(true);
	keep();
	/* Without its checksum it is a flip of bits. */
	state_write(state_path("sessions"), &version, sizeof(version), offsetof(struct format_header, version));
	state_refused(-EINVAL, "sessions: is damaged: the version in its header is wrong");
	ck_assert_int_eq(state.report.verdict, STORE_DAMAGED);
	memcpy(&header, kept[FORMAT_SESSIONS].text, sizeof(header));
	header.version = version;
	header.crc = (uint32_t)crc32_z(0, (const uint8_t *)&header, offsetof(struct format_header, crc));
	state_write(state_path("sessions"), &header, sizeof(header), 0);
	forget();
	state_refused(-EINVAL,
		      _i ? "sessions: is of version 5 of the state's format; this npumemd reads versions 1 to 4"
			 : "sessions: is of version 0 of the state's format; this npumemd reads versions 1 to 4");
	ck_assert_int_eq(state.report.verdict, _i ? STORE_NEWER_FORMAT : STORE_OLDER_FORMAT);
}

TEST(another_geometry)
{
	fill();
	state_close(true);
	state.options.geometry = "5 NPUs";
	state.options.geometry_text = "five NPUs";
	state_refused(-EINVAL,
		      "the state is of a device of four NPUs (12388 bytes), not of five NPUs (12388 bytes)");
	state.options.geometry = "4 NPUs";
	state.options.geometry_text = "four NPUs";
	state.options.memory_bytes++;
	state_refused(-EINVAL, "of four NPUs (12388 bytes), not of four NPUs (12389 bytes)");
	state.options.memory_bytes--;
	state.options.geometry_bytes--;
	state_refused(-EINVAL, "not of four NPUs");
	state.options.geometry_bytes++;
	state.options.memory_bytes = UINT64_MAX - 5;
	ck_assert_int_eq(state_try(), -EFBIG);
	state.options.memory_bytes = STATE_MEMORY_BYTES;
	state_open();
	ck_assert_uint_eq(look(), 0);
}

/* Files that are whole but do not belong together. */
TEST(files_of_another_state)
{
	char first[sizeof(state.directory)];
	fill();
	state_close(true);
	strcpy(first, state.directory);
	state_set_up();
	fill();
	state_close(true);
	rename(state_path_in(first, "results"), state_path("results"));
	state_refused(-EINVAL, "results: is of another state than journal");
	rename(state_path("sessions"), state_path("results"));
	state_refused(-EINVAL, "is missing or cut short");
	state_remove(first);
}

TEST(a_file_of_another_time, .to = STATE_FILES)
{
	unsigned file = (unsigned)_i;
	fill();
	state_close(true);
	keep();
	state_open();
	state_put(STORE_TENSORS, 0, "later");
	state_close(true);
	state_write(state_path(state_files[file]), kept[file].text, kept[file].bytes, 0);
	state_refused(-EINVAL, "is of another time than journal");
	forget();
}

static void copy_to(const char *directory)
{
	for (unsigned i = 0; i < STATE_FILES; i++) {
		size_t bytes;
		char *text = state_read(state_path(state_files[i]), &bytes);
		state_write(state_path_in(directory, state_files[i]), text, bytes, 0);
		free(text);
	}
}

TEST(a_copy)
{
	char original[sizeof(state.directory)], copy[sizeof(state.directory)];
	snprintf(copy, sizeof(copy), "%.50s-copy", state.directory);
	ck_assert_int_eq(mkdir(copy, 0700), 0);
	strcpy(original, state.directory);
	fill();
	copy_to(copy);
	state_close(false);
	state.options.directory = copy;
	state_refused(-EINVAL, "is a copy of a state that was not closed");
	/* Not of one that was killed either, which another boot does not change. */
	state.options.boot_id = "00000000000000000000000000000002";
	state_refused(-EINVAL, "is a copy of a state that was not closed");
	state.options.boot_id = "00000000000000000000000000000001";
	state.options.directory = original;
	state_reopen(false);
	state_close(true);
	state_remove(copy);
	ck_assert_int_eq(mkdir(copy, 0700), 0);
	copy_to(copy);
	state.options.directory = copy;
	state_open();
	ck_assert_uint_eq(look(), 0);
	ck_assert(state.report.was_clean && state_tells("a copy"));
	ck_assert_str_eq(store_memory(state.store), "memory");
	/* It is a state of its own from here on. */
	state_reopen(false);
	ck_assert(!state_tells("a copy"));
	state_close(true);
	state_remove(copy);
}

TEST(two_at_a_time)
{
	struct store *other = NULL;
	struct store_report report;
	fill();
	ck_assert_int_eq(store_open(&state.options, &other, &report, state.error), -EBUSY);
	ck_assert_ptr_nonnull(strstr(state.error, "journal: is in use by another npumemd"));
	ck_assert_ptr_null(other);
	ck_assert_uint_eq(look(), 0);
	state_reopen(false);
	ck_assert_uint_eq(look(), 0);
}

/* Power is lost where a state that was not closed is found by another boot. Told until it is dealt with. */
TEST(loss_of_power, .to = 2)
{
	state.options.durable = _i;
	fill();
	state_close(false);
	state.options.boot_id = "000000000000000000000000000000a2";
	state_open();
	ck_assert_int_eq(state.report.is_stale, !_i);
	ck_assert_uint_eq(look(), 0);
	state_reopen(false);
	ck_assert_int_eq(state.report.is_stale, !_i);
	ck_assert_int_eq(store_recovered(state.store), 0);
	state_reopen(false);
	ck_assert(!state.report.is_stale);
	state_close(true);
	state.options.boot_id = "000000000000000000000000000000a3";
	state_open();
	ck_assert(!state.report.is_stale && state.report.was_clean);
}

/* A table whose end did not reach the disk is as short for the next process as well. */
TEST(a_table_cut_short_by_a_loss_of_power)
{
	state_open();
	state_put(STORE_TENSORS, 3, "near");
	state_put(STORE_TENSORS, 500, "far");
	state_close(false);
	ck_assert_int_eq(
		truncate(state_path("tensors"), FORMAT_PAGE_BYTES + 40 * format_cell_bytes(STORE_TENSORS)), 0);
	state.options.boot_id = "000000000000000000000000000000a2";
	state_open();
	ck_assert(state.report.is_stale && state_tells("cells are lost at its end"));
	ck_assert_uint_eq(store_n_cells(state.store, STORE_TENSORS), 40);
	ck_assert_int_eq(store_recovered(state.store), 0);
	for (unsigned clean = 0; clean < 2; clean++) {
		state_reopen(clean);
		ck_assert(state_has(STORE_TENSORS, 3, "near"));
		ck_assert(!state_tells("lost"));
		state_put(STORE_TENSORS, 60 + clean, "new");
	}
}

TEST(ids_of_boots)
{
	static const char *const bad[] = {"", "1", "0000000000000000000000000000000g",
					  "000000000000000000000000000000001"};
	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		state.options.boot_id = bad[i];
		state_refused(-EINVAL, "is not the id of a boot");
	}
	state.options.boot_id = NULL;
	state_open();
	state_reopen(false);
	ck_assert(!state.report.is_stale);
}

/* A lost cell stays so until it is put or dropped, and its neighbours are whole. */
TEST(a_lost_cell_is_told_until_it_is_dealt_with)
{
	const off_t cell_bytes = format_cell_bytes(STORE_TENSORS);
	char byte = 'X';
	fill();
	state_close(true);
	state_write(state_path("tensors"), &byte, 1, FORMAT_PAGE_BYTES + 2 * cell_bytes + 20);
	state_write(state_path("tensors"), &byte, 1, FORMAT_PAGE_BYTES + 3 * cell_bytes + 20);
	for (unsigned i = 0; i < 2; i++) {
		state_open();
		ck_assert_uint_eq(look(), 2);
		ck_assert(state_tells("tensors: cell 2 is damaged and lost"));
		state_close(i);
	}
	state_open();
	state_put(STORE_TENSORS, 2, text_of(STORE_TENSORS, 2));
	ck_assert_int_eq(store_prepare(state.store, STORE_TENSORS, 0, 1), 0);
	store_drop(state.store, STORE_TENSORS, 3, 7);
	store_commit(state.store);
	state_reopen(false);
	ck_assert_uint_eq(state.report.tables[STORE_TENSORS].n_lost, 0);
	ck_assert_uint_eq(store_stamp(state.store, STORE_TENSORS, 3), 7);
}

/* A cell that is whole but stands at another's place, and a block of zeros. */
TEST(cells_elsewhere)
{
	const size_t cell_bytes = format_cell_bytes(STORE_TENSORS);
	const char zeros[512] = {0}; /* of two cells */
	size_t bytes;
	fill();
	state_close(true);
	char *text = state_read(state_path("tensors"), &bytes);
	state_write(state_path("tensors"), text + FORMAT_PAGE_BYTES, cell_bytes, FORMAT_PAGE_BYTES + cell_bytes);
	state_write(state_path("tensors"), zeros, sizeof(zeros), FORMAT_PAGE_BYTES + 5 * cell_bytes);
	free(text);
	text = state_read(state_path("sessions"), &bytes);
	state_write(state_path("results"), text + FORMAT_PAGE_BYTES, 128, FORMAT_PAGE_BYTES);
	free(text);
	state_open();
	ck_assert_uint_eq(look(), 4);
	ck_assert(store_is_lost(state.store, STORE_RESULTS, 0));
	ck_assert(store_is_lost(state.store, STORE_TENSORS, 1) && store_is_lost(state.store, STORE_TENSORS, 5) &&
		  store_is_lost(state.store, STORE_TENSORS, 6));
	ck_assert(state_tells("cell 1 ") && state_tells("cell 5 ") && state_tells("cell 6 "));
}

/* ---- the journal ---- */

static struct {
	char *journal;
	size_t bytes;
} caught;

static struct format_transaction *transaction_in(char *journal, size_t off)
{
	return (struct format_transaction *)(void *)(journal + FORMAT_RECORDS_OFF + off);
}

/* The journal as it is when its transaction has become valid. */
static void catch_journal(void *ctx)
{
	uint64_t valid = 0;
	int fd = open(state_path("journal"), O_RDONLY);
	(void)ctx;
	if (pread(fd, &valid, sizeof(valid), FORMAT_RECORDS_OFF) == sizeof(valid) && valid && !caught.journal)
		caught.journal = state_read(state_path("journal"), &caught.bytes);
	close(fd);
}

static void open_to_catch(void)
{
	static const struct store_hooks hooks = {.stored = catch_journal};
	state.options.hooks = &hooks;
	state_open();
	state.options.hooks = NULL;
}

/* Puts it into a state that was opened to catch: the journal of a process that died while it did, to be freed. */
static char *catch_put(const char *text)
{
	state_put(STORE_TENSORS, 1, text);
	ck_assert_ptr_nonnull(caught.journal);
	char *journal = caught.journal;
	caught.journal = NULL;
	return journal;
}

/* The same by a process of its own. */
static char *put_caught(const char *text)
{
	open_to_catch();
	char *journal = catch_put(text);
	state_close(false);
	return journal;
}

/* A transaction whose cells are there is no longer done where a later one wrote them. 0: of the same process. */
TEST(a_transaction_from_before, .to = 2)
{
	open_to_catch();
	char *journal = catch_put("the older one");
	if (_i) {
		state_close(false);
		open_to_catch();
	}
	free(catch_put("the newer one"));
	state_close(false);
	state_write(state_path("journal"), journal + FORMAT_RECORDS_OFF, transaction_in(journal, 0)->bytes,
		    FORMAT_RECORDS_OFF);
	free(journal);
	state_open();
	ck_assert(state_has(STORE_TENSORS, 1, "the newer one"));
	ck_assert(!state_tells("damaged"));
}

/* Version 1 kept several with --durable. Since then only one is read: behind it could be elements that a client
 * wrote when there was a log. */
TEST(a_transaction_behind_another, .to = 3)
{
	enum { FIRST = sizeof(struct format_transaction) + sizeof(struct format_record) + 8, BYTES = 2 * FIRST };
	char *journal = put_caught("first 8 ");
	struct format_transaction *first = transaction_in(journal, 0), *other = transaction_in(journal, FIRST);
	struct format_record *record = (void *)(other + 1);

	ck_assert_uint_eq(first->bytes, FIRST);
	memcpy(other, first, FIRST);
	memcpy(record->cell.payload, "other 8 ", 8);
	other->seq++;
	other->valid = format_mix(other->seq, other->bytes, other->n_records);
	cells_seal(&record->cell, FORMAT_USED, STORE_TENSORS, 1, other->seq, 8);
	state_write(state_path("journal"), first, BYTES, FORMAT_RECORDS_OFF);
	struct format_header *header = (void *)journal;
	header->version = 1U << _i;
	header->crc = (uint32_t)crc32_z(0, (const uint8_t *)header, offsetof(struct format_header, crc));
	state_write(state_path("journal"), header, sizeof(*header), 0);
	free(journal);
	state_open();
	ck_assert(state_has(STORE_TENSORS, 1, _i == 0 ? "other 8 " : "first 8 "));
	state_close(true);
}

/* The journal as it is on the disk after the last sync of any file. */
static void catch_synced(void *ctx, int fd)
{
	(void)ctx;
	(void)fd;
	free(caught.journal);
	caught.journal = state_read(state_path("journal"), &caught.bytes);
}

/* Nothing that clients wrote while there was a log is in a journal without one, where a loss of power could put it
 * in place of a transaction's records. */
TEST(elements_of_a_log_are_gone)
{
	static const struct store_hooks hooks = {.synced = catch_synced};
	enum { BYTES = 8000 };
	char *memory;

	state.options.durable = true;
	state.options.log_bytes = 2 * FORMAT_RECORDS_BYTES;
	state_open();
	memory = store_memory(state.store);
	memset(memory, 'e', BYTES);
	for (unsigned i = 0; i < 20; i++) {
		state_keep(memory, BYTES);
		ck_assert_int_eq(store_flush(state.store), 0);
	}
	state_close(true);
	state.options.durable = false;
	state.options.hooks = &hooks;
	state_open();
	for (size_t at = FORMAT_RECORDS_OFF; at < caught.bytes; at++)
		ck_assert_msg(!caught.journal[at], "byte %zu is %d", at, caught.journal[at]);
	state_close(true);
	free(caught.journal);
	caught.journal = NULL;
}

/* One of which a part did not reach the file: what stood there from an earlier one is none of it. 0: a flipped
 * bit; 1: a record of the one before; 2: one more record than there are; 3: longer than the file; 4: shorter than
 * itself. */
TEST(a_transaction_that_is_not_whole, .to = 5)
{
	size_t record = sizeof(struct format_transaction);
	char *earlier = put_caught("first"), *before, *journal;
	size_t bytes;
	before = state_read(state_path("tensors"), &bytes);
	journal = put_caught("other");
	state_write(state_path("tensors"), before + FORMAT_PAGE_BYTES, bytes - FORMAT_PAGE_BYTES,
		    FORMAT_PAGE_BYTES);
	struct format_transaction *transaction = transaction_in(journal, 0);
	if (_i == 0)
		journal[FORMAT_RECORDS_OFF + record + sizeof(struct format_record)] ^= 1;
	if (_i == 1)
		memcpy(journal + FORMAT_RECORDS_OFF + record, earlier + FORMAT_RECORDS_OFF + record,
		       transaction->bytes - record);
	transaction->n_records += _i == 2;
	transaction->bytes = _i == 3 ? UINT64_MAX - 7 : _i == 4 ? 8 : transaction->bytes;
	transaction->valid = format_mix(transaction->seq, transaction->bytes, transaction->n_records);
	state_write(state_path("journal"), journal + FORMAT_RECORDS_OFF, 4096, FORMAT_RECORDS_OFF);
	free(before);
	free(earlier);
	free(journal);
	state_open();
	ck_assert(state_has(STORE_TENSORS, 1, "first"));
	ck_assert(state_tells("journal: what stands in it is damaged"));
	ck_assert_uint_eq(state.report.tables[STORE_TENSORS].n_lost, 0);
}

/* Nor may a record lead out of its table, or of the tables. */
TEST(a_record_that_leads_astray, .from = 1, .to = 8)
{
	char *journal = put_caught("first");
	struct format_record *record = (void *)(transaction_in(journal, 0) + 1);
	record->index = _i & 1 ? UINT32_MAX : record->index;
	record->table = _i & 2 ? UINT32_MAX : record->table;
	record->cell.bytes = _i & 4 ? UINT16_MAX : record->cell.bytes;
	state_write(state_path("journal"), journal + FORMAT_RECORDS_OFF, 4096, FORMAT_RECORDS_OFF);
	free(journal);
	state_open();
	ck_assert(state_tells("journal: what stands in it is damaged"));
}

/* Whoever may write a file may cut it short under the daemon. */
TEST(files_that_others_may_write)
{
	state_open();
	state_close(true);
	chmod(state_path("tensors"), 0620);
	state_refused(-EPERM, "tensors: may be written by others (mode 0620)");
	chmod(state_path("tensors"), 0600);
	if (!geteuid()) {
		ck_assert_int_eq(chown(state_path("memory"), 1234, 0), 0);
		state_refused(-EPERM, "memory: belongs to uid 1234, not to uid 0");
		ck_assert_int_eq(chown(state_path("memory"), 0, 0), 0);
	}
	state_open();
	state_close(true);
	rename(state_path("memory"), state_path("elsewhere"));
	ck_assert_int_eq(symlink("elsewhere", state_path("memory")), 0);
	state_refused(-ELOOP, "memory: cannot be opened");
	unlink(state_path("memory"));
	ck_assert_int_eq(mkdir(state_path("memory"), 0700), 0);
	state_refused(-EISDIR, "memory: cannot be opened");
	rmdir(state_path("memory"));
	ck_assert_int_eq(mkfifo(state_path("memory"), 0600), 0);
	state_refused(-EINVAL, "memory: is not a file");
	unlink(state_path("elsewhere"));
}

TEST(a_directory_that_is_none)
{
	char path[100];
	snprintf(path, sizeof(path), "%s/new", state.directory);
	state.options.directory = path;
	state_open();
	struct stat stat_of;
	ck_assert_int_eq(stat(path, &stat_of), 0);
	ck_assert_uint_eq(stat_of.st_mode & 07777, 0700);
	state_close(true);
	state_remove(path);
	snprintf(path, sizeof(path), "%s/no/where", state.directory);
	state_refused(-ENOENT, "/no/where: cannot be opened: No such file or directory");
	state.options.directory = "/dev/null";
	state_refused(-ENOTDIR, "/dev/null: cannot be opened: Not a directory");
}

FIXTURE(state_set_up, state_tear_down)
