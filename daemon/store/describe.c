/* Owns its descriptors during a call. It tries a shared lock only to find out whether a daemon runs. */
#include "daemon/store/describe.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <unistd.h>

#include "daemon/store/cells.h"
#include "daemon/store/files/calls.h"
#include "daemon/store/files/files.h"
#include "daemon/store/files/identity.h"

static bool is_locked(int fd)
{
	if (flock(fd, LOCK_SH | LOCK_NB))
		return errno == EWOULDBLOCK;
	flock(fd, LOCK_UN);
	return false;
}

/* A file that is missing counts as empty. */
static int open_file(struct opening *opening, enum format_file file)
{
	struct statx stat;
	int status,
		fd = calls_open(NULL, opening->directory, opening_names[file], O_RDONLY | O_NOFOLLOW | O_NONBLOCK);

	if (fd == -ENOENT)
		return 0;
	if (fd < 0)
		return opening_refuse(opening, file, fd, "cannot be opened: %s", strerror(-fd));
	opening->store->fds[file] = fd;
	status = calls_stat(NULL, fd, &stat);
	if (status)
		return opening_refuse(opening, file, status, "cannot be read: %s", strerror(-status));
	files_note(opening, file, &stat);
	return 0;
}

static int open_all(struct opening *opening, struct format_page *pages, bool *is_blank)
{
	int status = 0;

	*is_blank = true;
	for (enum format_file file = FORMAT_JOURNAL; !status && file < FORMAT_FILES; file++) {
		status = open_file(opening, file);
		if (!status && opening->store->fds[file] >= 0)
			status = files_read_page(opening, file, &pages[file]);
		*is_blank = *is_blank && identity_is_blank(opening, file, &pages[file]);
	}
	return status;
}

static uint32_t count_tensors(const struct opening *opening, const struct format_page *page)
{
	enum { AT_A_TIME = 64 };
	uint32_t *bytes_of = &opening->store->cell_bytes[STORE_TENSORS], n_cells, n = 0;
	bool is_sound = cells_read_bytes(STORE_TENSORS, page, bytes_of) && format_number(page->n_cells, &n_cells);
	uint32_t bytes = *bytes_of;
	uint8_t *cells = heap_alloc(opening->options->heap, (size_t)AT_A_TIME * bytes);

	if (!cells || !is_sound)
		n_cells = 0;
	for (uint32_t index = 0; index < n_cells; index++) {
		const struct format_cell *cell = (const void *)(cells + (size_t)(index % AT_A_TIME) * bytes);
		if (index % AT_A_TIME == 0 &&
		    calls_read(NULL, opening->store->fds[FORMAT_TENSORS], cells, (size_t)AT_A_TIME * bytes,
			       FORMAT_PAGE_BYTES + (uint64_t)index * bytes) <= 0)
			break;
		n += cell->state == FORMAT_USED && cells_is_sound(opening->store, cell, STORE_TENSORS, index);
	}
	heap_free(opening->options->heap, cells);
	return n;
}

static void describe(struct opening *opening, const struct format_page *pages, struct store_description *out)
{
	const struct format_header *header = &pages[FORMAT_JOURNAL].header;
	uint32_t epoch;

	if (memcmp(header->magic, FORMAT_MAGIC, sizeof(header->magic)))
		return;
	out->format = header->version;
	if (header->version < FORMAT_VERSION_LEAST || header->version > FORMAT_VERSION)
		return;
	snprintf(out->geometry, sizeof(out->geometry), "%.*s", (int)sizeof(header->text) - 1, header->text);
	out->memory_bytes = header->memory_bytes;
	out->was_closed = format_number(pages[FORMAT_JOURNAL].epoch, &epoch) && !(epoch & (FORMAT_TURNING | 1));
	if (opening->store->fds[FORMAT_TENSORS] >= 0)
		out->n_tensors = count_tensors(opening, &pages[FORMAT_TENSORS]);
}

static int read_state(struct opening *opening, struct format_page *pages, struct store_description *out)
{
	bool is_blank;
	int status = files_check_partial(opening);

	if (!status)
		status = open_all(opening, pages, &is_blank);
	if (status)
		return status;
	out->is_in_use =
		opening->store->fds[FORMAT_JOURNAL] >= 0 && is_locked(opening->store->fds[FORMAT_JOURNAL]);
	describe(opening, pages, out);
	opening->report->verdict = STORE_EMPTY;
	if (is_blank)
		return 0;
	opening->report->verdict = STORE_USABLE;
	return identity_check(opening, pages);
}

int store_describe(const char *directory, const struct heap *heap, struct store_description *out, char *error)
{
	struct store_options options = {.directory = directory, .heap = heap};
	struct store_report *report = heap_zalloc(heap, 1, sizeof(*report));
	struct format_page *pages = heap_zalloc(heap, FORMAT_FILES, sizeof(*pages));
	struct store *store = heap_zalloc(heap, 1, sizeof(*store));
	struct opening opening = {.options = &options, .store = store, .report = report, .error = out->line};
	int status =
		report && pages && store ? calls_open(NULL, AT_FDCWD, directory, O_RDONLY | O_DIRECTORY) : -ENOMEM;

	*out = (struct store_description){.verdict = STORE_FAILED};
	opening.directory = status;
	for (enum format_file file = FORMAT_JOURNAL; store && file < FORMAT_FILES; file++)
		store->fds[file] = -1;
	if (opening.directory >= 0) {
		status = read_state(&opening, pages, out);
		out->verdict = report->verdict == STORE_USABLE && status ? STORE_FAILED : report->verdict;
		files_close(store);
		close(opening.directory);
		status = 0;
	} else {
		snprintf(error, STORE_ERROR_BYTES, "%.200s: cannot be read: %s", directory, strerror(-status));
	}
	heap_free(heap, store);
	heap_free(heap, pages);
	heap_free(heap, report);
	return status;
}
