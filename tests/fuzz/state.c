/* A state's files, changed anywhere: cut, overwritten, with cells in the place of others, with checksums that are
 * right of contents that are not. The daemon refuses to start with a reason, or what it goes on with adds up and
 * can be served; without forged checksums every tensor that is there is what it was, or is lost.
 *
 * An input: a byte (bit 0: of a state that was closed; else of one whose process was killed), then changes of 8
 * bytes: what (low four bits) in which file (high ones), where (3 bytes), with what (4 bytes). */
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zlib.h>

#include "daemon/rpc/rpc.h"
#include "daemon/store/files/format.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/left.h"
#include "tests/fuzz/scene.h"
#include "tests/random/daemon.h"

enum { CHANGES_MAX = 32, RESUME_MS = 31000, CELLS = 32 };
enum change { SET_BYTE, SET_WORD, SET_LONG, XOR, ADD, CUT, GROW, COPY_CELL, FORGE_BYTE, FORGE_WORD, FORGE_LONG };

static struct left killed, closed;

/* ---- changes ---- */

static uint64_t number(const uint8_t *at, unsigned n)
{
	uint64_t value = 0;

	for (unsigned i = 0; i < n; i++)
		value |= (uint64_t)at[i] << 8 * i;
	return value;
}

/* The cell of a table's file that holds this byte has a right checksum again. */
static void forge(unsigned file, uint8_t *bytes, size_t n, size_t at)
{
	enum store_table table = (enum store_table)(file - FORMAT_TENSORS);
	size_t cell_bytes, index;
	struct format_cell *cell;

	if (file < FORMAT_TENSORS || at < FORMAT_PAGE_BYTES)
		return;
	cell_bytes = format_cell_bytes(table);
	index = (at - FORMAT_PAGE_BYTES) / cell_bytes;
	if (FORMAT_PAGE_BYTES + (index + 1) * cell_bytes > n)
		return;
	cell = (struct format_cell *)(void *)(bytes + FORMAT_PAGE_BYTES + index * cell_bytes);
	if (cell->bytes <= cell_bytes - FORMAT_CELL_BYTES)
		cell->crc = (uint32_t)crc32_z((uLong)index, (const uint8_t *)&cell->bytes,
					      offsetof(struct format_cell, payload) -
						      offsetof(struct format_cell, bytes) + cell->bytes);
}

static void copy_cell(unsigned file, uint8_t *bytes, size_t n, size_t from, size_t to)
{
	size_t cell_bytes =
		format_cell_bytes((enum store_table)(file < FORMAT_TENSORS ? 1 : file - FORMAT_TENSORS));

	from = FORMAT_PAGE_BYTES + from % 64 * cell_bytes;
	to = FORMAT_PAGE_BYTES + to % 64 * cell_bytes;
	if (from + cell_bytes <= n && to + cell_bytes <= n)
		memmove(bytes + to, bytes + from, cell_bytes);
}

/* What says how a change is believed. */
struct doubt {
	bool is_forged; /* checksums are right of what is not */
};

/* Where something is: a file is mostly room. Marks are behind local memory's bytes, and as little checked as
 * these: what is believed of them is wrong. */
static size_t spot(unsigned file, size_t n, size_t number_of)
{
	size_t at = number_of >> 2;

	if (file == FORMAT_MEMORY)
		at %= 1 << 16;
	else if (file != FORMAT_JOURNAL)
		at = number_of & 3
			     ? FORMAT_PAGE_BYTES +
				       at % (CELLS * format_cell_bytes((enum store_table)(file - FORMAT_TENSORS)))
			     : at % FORMAT_PAGE_BYTES;
	else if ((number_of & 3) < 2)
		at = FORMAT_PAGE_BYTES * (number_of & 1) + at % (number_of & 1 ? 256 : FORMAT_PAGE_BYTES);
	else
		at = FORMAT_RECORDS_OFF + at % 8192;
	return n ? at % n : 0;
}

static void change(const uint8_t *at, struct doubt *doubt)
{
	static const unsigned widths[] = {1, 4, 8, 1, 4, 0, 0, 0, 1, 4, 8};
	enum change what = (enum change)((at[0] & 15) % (FORGE_LONG + 1));
	unsigned file = (at[0] >> 4) % LEFT_FILES, width = widths[what];
	off_t n = lseek(left_fd(file), 0, SEEK_END);
	size_t where = spot(file, (size_t)n, number(at + 1, 3));
	uint64_t with = number(at + 4, 4), old;
	uint8_t *bytes;

	doubt->is_forged |= what >= COPY_CELL;
	if (what == CUT || what == GROW) {
		off_t to = what == CUT ? (off_t)where : n + (off_t)(with % 100000);

		if (ftruncate(left_fd(file), to))
			fuzz_fail("no file for the test itself");
		return;
	}
	if (!n)
		return;
	bytes = mmap(NULL, (size_t)n, PROT_READ | PROT_WRITE, MAP_SHARED, left_fd(file), 0);
	if (bytes == MAP_FAILED)
		fuzz_fail("no file for the test itself");
	if (what == COPY_CELL) {
		copy_cell(file, bytes, (size_t)n, where, (size_t)with);
	} else if (where + width <= (size_t)n) {
		old = number(bytes + where, width);
		with = what == XOR   ? old ^ with
		       : what == ADD ? old + with
		       : width == 8  ? (uint64_t)(int32_t)with
				     : with;
		memcpy(bytes + where, &with, width);
	}
	if (what >= COPY_CELL)
		forge(file, bytes, (size_t)n, what == COPY_CELL ? FORMAT_PAGE_BYTES + (size_t)(with % 64) : where);
	munmap(bytes, (size_t)n);
}

/* False: it was refused. `serves`: also somebody new, where all is free. */
static bool go_on(const struct left *left, const struct doubt *doubt, bool serves)
{
	static struct store_report report;
	char error[STORE_ERROR_BYTES];
	struct store *store;
	struct scene *scene;
	struct device *device;
	const char *wrong;
	int status = left_open(NULL, NULL, &store, &report, error);

	if (status) {
		if (status > 0 || !error[0] || strchr(error, '\n'))
			fuzz_fail("a state is refused with %d: '%s'", status, error);
		return false;
	}
	scene = left_scene(store, &report, NULL);
	if (!scene)
		fuzz_fail("a state that was opened cannot be gone on with");
	device = daemon_rpc(scene_daemon(scene))->service->device;
	/* Who is told by a right checksum that there is no tensor does not look for what it had. */
	if (doubt->is_forged)
		device_restore_end(device, true);
	wrong = device_check(device);
	if (wrong)
		fuzz_fail("after recovery: %s", wrong);
	if (!doubt->is_forged && !report.is_new)
		left_check(left, device);
	/* Whoever waits for a client has waited long enough. */
	scene_wait(scene, RESUME_MS);
	scene_close_all(scene);
	if (serves)
		scene_serve(scene);
	scene_free(scene);
	store_close(store, serves);
	return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
	const struct left *left = n && bytes[0] & 1 ? &closed : &killed;
	struct doubt doubt = {false};

	if (!killed.n[0])
		left_begin(&killed, &closed);
	left_put_back(left);
	for (unsigned i = 0; i < CHANGES_MAX && 1 + 8 * (i + 1) <= n; i++)
		change(bytes + 1 + 8 * (size_t)i, &doubt);
	/* What one process goes on with, the next one can. */
	if (go_on(left, &doubt, false) && !go_on(left, &doubt, true))
		fuzz_fail("a state that was gone on with is refused");
	return 0;
}
