/* Headers, epochs and runs. If the process dies during a change of epoch, the journal has FORMAT_TURNING, and the
 * other files may have an earlier epoch. The run of the last epoch stays until the next one's is written. */
#include "daemon/store/files/identity.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <unistd.h>
#include <zlib.h>

#include "daemon/store/files/calls.h"

static uint32_t header_crc(const struct format_header *header)
{
	return (uint32_t)crc32_z(0, (const uint8_t *)header, offsetof(struct format_header, crc));
}

static uint32_t run_crc(const struct format_run *run)
{
	return (uint32_t)crc32_z(0, (const uint8_t *)run, offsetof(struct format_run, crc));
}

/* Index of the run of the process that began or ended with this epoch. */
static unsigned run_of(uint32_t epoch)
{
	return (epoch - 1) >> 1 & 1;
}

static bool parse_boot(const char *text, uint8_t *boot)
{
	unsigned n = 0;

	memset(boot, 0, FORMAT_ID_BYTES);
	for (; *text && *text != '\n'; text++) {
		const char *digits = "0123456789abcdef", *digit = strchr(digits, *text);
		if (*text == '-')
			continue;
		if (!digit || n == 2 * FORMAT_ID_BYTES)
			return false;
		boot[n / 2] = (uint8_t)(boot[n / 2] << 4 | (digit - digits));
		n++;
	}
	return n == 2 * FORMAT_ID_BYTES;
}

int identity_read_boot(struct opening *opening)
{
	const struct store_options *options = opening->options;
	const char *path = "/proc/sys/kernel/random/boot_id", *text = options->boot_id;
	char read[64] = "";

	if (!text) {
		int fd = calls_open(options->hooks, AT_FDCWD, path, O_RDONLY);
		int64_t n = fd < 0 ? fd : calls_read(options->hooks, fd, read, sizeof(read) - 1, 0);
		if (fd >= 0)
			close(fd);
		if (n < 0) {
			snprintf(opening->error, STORE_ERROR_BYTES,
				 "%s: cannot be read, and without it a kill looks like a loss of "
				 "power: %s",
				 path, strerror((int)-n));
			return (int)n;
		}
		text = read;
	}
	if (parse_boot(text, opening->boot))
		return 0;
	snprintf(opening->error, STORE_ERROR_BYTES, "%.40s: is not the id of a boot", text);
	return -EINVAL;
}

/* A page that is not yet valid: the disk may have some of its sectors, but not the first. */
static bool is_empty(const struct format_page *page)
{
	enum { SECTOR_BYTES = 512 };
	static const struct format_page empty;
	struct format_page rest = *page;

	memset((uint8_t *)&rest + SECTOR_BYTES, 0, sizeof(rest.header) - SECTOR_BYTES);
	rest.n_cells = rest.cell_bytes = 0;
	memset(rest.runs, 0, sizeof(rest.runs));
	return !memcmp(&rest, &empty, sizeof(empty));
}

bool identity_is_blank(const struct opening *opening, enum format_file file, const struct format_page *page)
{
	bool is_ours = opening->bytes[file] >= FORMAT_PAGE_BYTES &&
		       !memcmp(page->header.magic, FORMAT_MAGIC, sizeof(page->header.magic));

	return is_ours ? !page->epoch : is_empty(page);
}

void identity_make(const struct opening *opening, enum format_file file, const uint8_t *state,
		   struct format_page *page)
{
	const struct store_options *options = opening->options;
	struct format_header *header = &page->header;

	memset(header, 0, sizeof(*header));
	memcpy(header->magic, FORMAT_MAGIC, sizeof(header->magic));
	header->version = FORMAT_VERSION;
	header->file = file;
	memcpy(header->state, state, FORMAT_ID_BYTES);
	header->memory_bytes = options->memory_bytes;
	header->geometry_bytes = (uint32_t)options->geometry_bytes;
	snprintf(header->text, sizeof(header->text), "%s", options->geometry_text);
	memcpy(header->geometry, options->geometry, options->geometry_bytes);
	header->crc = header_crc(header);
}

/* If a process died in raise_version, the checksum may be that of the earlier version. */
static bool header_is_sound(const struct format_header *header)
{
	struct format_header copy = *header;

	for (copy.version = FORMAT_VERSION_LEAST; copy.version <= FORMAT_VERSION; copy.version++)
		if (header_crc(&copy) == header->crc)
			return true;
	return false;
}

/* An earlier npumemd must refuse the new format. */
static void raise_version(const struct store *store, enum format_file file)
{
	struct format_header *to = &store_page(store, file)->header, header = *to;

	if (header.version == FORMAT_VERSION)
		return;
	header.version = FORMAT_VERSION;
	header.crc = header_crc(&header);
	mapping_copy(store->hooks, to, &header, sizeof(header));
}

/* An unknown version, whose checksum cannot be checked. If the checksum is right for a known version, a bit has
 * flipped. */
static int check_version(const struct opening *opening, enum format_file file, const struct format_header *header)
{
	if (header_is_sound(header))
		return opening_judge(opening, file, STORE_DAMAGED,
				     "is damaged: the version in its header is wrong");
	return opening_judge(opening, file,
			     header->version > FORMAT_VERSION ? STORE_NEWER_FORMAT : STORE_OLDER_FORMAT,
			     "is of version %u of the state's format; this npumemd reads versions %d to %d",
			     header->version, FORMAT_VERSION_LEAST, FORMAT_VERSION);
}

static bool one_has_magic(const struct format_page *pages)
{
	bool has_magic = false;

	for (enum format_file file = FORMAT_JOURNAL; file < FORMAT_FILES; file++)
		has_magic = has_magic ||
			    !memcmp(pages[file].header.magic, FORMAT_MAGIC, sizeof(pages[file].header.magic));
	return has_magic;
}

static int check_header(const struct opening *opening, enum format_file file, const struct format_page *pages)
{
	const struct format_header *header = &pages[file].header;

	if (opening->bytes[file] < FORMAT_PAGE_BYTES)
		return opening_judge(opening, file, STORE_CUT_SHORT, "is missing or cut short: it has %llu bytes",
				     (unsigned long long)opening->bytes[file]);
	if (memcmp(header->magic, FORMAT_MAGIC, sizeof(header->magic)))
		return one_has_magic(pages)
			       ? opening_judge(opening, file, STORE_DAMAGED,
					       "is damaged: its beginning is not of an npumem state")
			       : opening_judge(opening, file, STORE_FOREIGN, "is not of an npumem state");
	if (header->version < FORMAT_VERSION_LEAST || header->version == FORMAT_VERSION_NEVER ||
	    header->version > FORMAT_VERSION)
		return check_version(opening, file, header);
	if (!header_is_sound(header))
		return opening_judge(opening, file, STORE_DAMAGED,
				     "is damaged: the checksum of its header is wrong");
	if (header->file != file)
		return opening_judge(opening, file, STORE_MIXED, "is the file %s of a state",
				     header->file < FORMAT_FILES ? opening_names[header->file] : "?");
	if (memcmp(header->state, pages[FORMAT_JOURNAL].header.state, FORMAT_ID_BYTES))
		return opening_judge(opening, file, STORE_MIXED, "is of another state than journal");
	return 0;
}

static int check_geometry(const struct opening *opening, const struct format_header *header)
{
	const struct store_options *options = opening->options;
	enum store_verdict verdict;
	char words[STORE_TEXT_BYTES_MAX] = "";

	if (!options->geometry) /* for store_describe */
		return 0;
	if (header->geometry_bytes == options->geometry_bytes && header->memory_bytes == options->memory_bytes &&
	    !memcmp(header->geometry, options->geometry, options->geometry_bytes))
		return 0;
	verdict = options->compare
			  ? options->compare(header->geometry, header->geometry_bytes, words, sizeof(words))
			  : STORE_OTHER_GEOMETRY;
	if (verdict == STORE_OTHER_CELLS)
		return opening_judge(opening, FORMAT_JOURNAL, verdict, "%s", words);
	return opening_judge(opening, FORMAT_JOURNAL, STORE_OTHER_GEOMETRY,
			     "the state is of a device of %.150s (%llu bytes), not of %.150s "
			     "(%llu bytes)%s%s",
			     header->text, (unsigned long long)header->memory_bytes, options->geometry_text,
			     (unsigned long long)options->memory_bytes, words[0] ? ": " : "", words);
}

/* Checks the run of the journal's epoch. */
static int check_run(struct opening *opening, const struct format_page *journal)
{
	uint32_t epoch, stale = 0;

	if (!format_number(journal->epoch, &epoch) || (journal->stale && !format_number(journal->stale, &stale)))
		return opening_judge(opening, FORMAT_JOURNAL, STORE_DAMAGED,
				     "is damaged: a word of its header is wrong");
	opening->version = journal->header.version;
	opening->turning = epoch & FORMAT_TURNING;
	opening->epoch = epoch &= ~FORMAT_TURNING;
	const struct format_run *run = &journal->runs[run_of(epoch)];
	if (!epoch || epoch > FORMAT_EPOCH_MAX || run->crc != run_crc(run) || run->epoch != ((epoch - 1) | 1))
		return opening_judge(opening, FORMAT_JOURNAL, STORE_DAMAGED,
				     "is damaged: the checksum of what it says of the last run is wrong");
	opening->report->was_clean = !(epoch & 1);
	opening->report->is_same_boot = !memcmp(run->boot, opening->boot, FORMAT_ID_BYTES);
	opening->report->is_stale =
		stale || (epoch & 1 && !run->durable && memcmp(run->boot, opening->boot, FORMAT_ID_BYTES));
	return 0;
}

static int check_copy(struct opening *opening, const struct format_run *run)
{
	unsigned n_same = 0;

	for (enum format_file file = FORMAT_JOURNAL; file < FORMAT_FILES; file++)
		n_same += !memcmp(&run->files[file], &opening->identities[file], sizeof(run->files[file]));
	opening->is_copy = !n_same;
	if (n_same == FORMAT_FILES || (!n_same && opening->report->was_clean))
		return 0;
	return opening_judge(
		opening, FORMAT_JOURNAL, n_same ? STORE_MIXED : STORE_COPY,
		n_same ? "some files of the state are copies"
		       : "is a copy of a state that was not closed; npumemd can have written what the copy lacks");
}

/* After a loss of power without `durable` a file may have any epoch. */
static int check_epochs(const struct opening *opening, const struct format_page *pages)
{
	for (enum format_file file = FORMAT_MEMORY; file < FORMAT_FILES; file++) {
		uint32_t epoch = 0;
		if (pages[file].epoch && !format_number(pages[file].epoch, &epoch))
			return opening_judge(opening, file, STORE_DAMAGED,
					     "is damaged: a word of its header is wrong");
		uint32_t behind = opening->epoch - epoch;
		if (behind > (opening->turning ? 2 : 0) && !opening->report->is_stale)
			return opening_judge(opening, file, STORE_MIXED,
					     "is of another time than journal (epoch %u, not %u)", epoch,
					     opening->epoch);
	}
	return 0;
}

int identity_check(struct opening *opening, const struct format_page *pages)
{
	int status = 0;

	for (enum format_file file = FORMAT_JOURNAL; !status && file < FORMAT_FILES; file++)
		status = check_header(opening, file, pages);
	if (!status)
		status = check_geometry(opening, &pages[FORMAT_JOURNAL].header);
	if (!status)
		status = check_run(opening, &pages[FORMAT_JOURNAL]);
	if (!status)
		status = check_copy(opening, &pages[FORMAT_JOURNAL].runs[run_of(opening->epoch)]);
	return status ? status : check_epochs(opening, pages);
}

/* The journal is changed first and last, and synced before any other change: after a loss of power a state in use
 * must not look closed. */
static int turn(struct store *store, uint32_t epoch, bool wait)
{
	struct format_page *journal = store_page(store, FORMAT_JOURNAL);

	mapping_store(store->hooks, &journal->epoch, format_word(epoch | FORMAT_TURNING));
	int status = calls_sync(store->hooks, store->fds[FORMAT_JOURNAL]);
	for (enum format_file file = FORMAT_MEMORY; !status && file < FORMAT_FILES; file++) {
		mapping_store(store->hooks, &store_page(store, file)->epoch, format_word(epoch));
		status = wait ? calls_sync(store->hooks, store->fds[file]) : 0;
	}
	if (status)
		return status;
	mapping_store(store->hooks, &journal->epoch, format_word(epoch));
	store->epoch = epoch;
	return wait ? calls_sync(store->hooks, store->fds[FORMAT_JOURNAL]) : 0;
}

int identity_begin(const struct opening *opening)
{
	struct store *store = opening->store;
	int status = opening->turning ? turn(store, opening->epoch, opening->options->durable) : 0;

	if (status)
		return status;
	uint32_t epoch = (opening->epoch + 1) | 1;
	struct format_run *to = &store_page(store, FORMAT_JOURNAL)->runs[run_of(epoch)];
	bool durable = opening->options->durable;
	struct format_run run = {.epoch = epoch, .durable = durable};

	memcpy(run.boot, opening->boot, sizeof(run.boot));
	memcpy(run.files, opening->identities, sizeof(run.files));
	run.crc = run_crc(&run);
	mapping_copy(store->hooks, to, &run, sizeof(run));
	for (enum format_file file = FORMAT_JOURNAL; file < FORMAT_FILES; file++)
		raise_version(store, file);
	if (opening->report->is_stale)
		mapping_store(store->hooks, &store_page(store, FORMAT_JOURNAL)->stale, format_word(1));
	/* The disk must not have an epoch without its run. */
	status = calls_sync(store->hooks, store->fds[FORMAT_JOURNAL]);
	return status ? status : turn(store, epoch, durable || opening->report->is_new);
}

int identity_end(struct store *store)
{
	return turn(store, store->epoch + 1, true);
}

void identity_close_copy(const struct store *store, enum format_file file, struct format_page *page)
{
	struct format_run *run = &page->runs[run_of(store->epoch + 1)];

	page->epoch = format_word(store->epoch + 1);
	if (file != FORMAT_JOURNAL)
		return;
	memset(run->files, 0, sizeof(run->files));
	run->crc = run_crc(run);
}
