/* What outlives the process: the bytes of local memory, tables of fixed cells, and which writes were under way,
 * all in files that are mapped and whose every block is allocated beforehand. Knows cells and bytes; nothing of
 * tensors.
 *
 * What was stored is there for the next process however this one ends; with `durable`, what was flushed also after
 * a loss of power. A change of many cells is found whole or not at all. A cell whose checksum is wrong is lost:
 * counted, told by its number and never believed. Bits that flip in local memory itself are not noticed.
 *
 * All functions are for one thread. A pointer to a cell is good until the next store_prepare, store_commit or
 * store_flush; store_memory() and struct store_write never move.
 *
 * The files are journal, memory, tensors, sessions and results. Only the same user may write them: who cuts a
 * mapped file short ends the process. On file systems that copy on write (btrfs) room that was allocated may still
 * be denied later, which ends it as well. */
#ifndef STORE_STORE_H
#define STORE_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/device/memory/heap.h"

enum store_table { STORE_TENSORS, STORE_SESSIONS, STORE_RESULTS, STORE_TABLES };

enum {
	STORE_TENSOR_BYTES_MAX = 496, /* of a cell's payload */
	STORE_SESSION_BYTES_MAX = 112,
	STORE_RESULT_BYTES_MAX = 112,
	STORE_GEOMETRY_BYTES_MAX = 256,
	STORE_TEXT_BYTES_MAX = 256, /* of a geometry's text, with its 0 */
	STORE_ERROR_BYTES = 512,    /* room for a line with its 0 */
	STORE_LINES_MAX = 16,
	STORE_WRITES_MAX = 32640, /* under way at a time */
};

struct store;
struct store_hooks;

struct store_options {
	/* Where the files are; made, for its user alone, where it is missing. NULL: `open` is asked instead. */
	const char *directory;
	/* Answers a descriptor for reading and writing of the file of this name, empty where it is new; the
	 * store's to close, also where store_open fails. Or -errno. */
	int (*open)(void *ctx, const char *name);
	void *ctx;

	/* Compared with what the state was made for, byte for byte, with the text for people. Copied. */
	const void *geometry;
	size_t geometry_bytes;
	const char *geometry_text;
	uint64_t memory_bytes;
	/* Local memory takes its room as it is used: for descriptors of memory, where there is no disk to be full
	 * and no limit but the one that ends the process. */
	bool sparse;

	/* Tells one boot of the machine from another: 32 hexadecimal digits, with or without hyphens (systemd's
	 * %b). NULL: /proc/sys/kernel/random/boot_id is read, which a unit with ProcSubset=pid cannot. */
	const char *boot_id;

	bool durable;
	const struct heap *heap;	 /* outlives the store */
	const struct store_hooks *hooks; /* NULL but in tests (hooks.h) */
};

/* What a state was found to be. */
struct store_report {
	bool is_new;	/* nothing was there: all is empty and zero */
	bool was_clean; /* the last process closed it */
	/* Local memory may be older than the tables, or hold parts of writes that nothing tells of: after a loss
	 * of power without `durable`, or where notes of writes under way are damaged. No data may be believed. */
	bool is_stale;
	struct {
		uint32_t n_kept, n_lost; /* cells in use, and damaged ones */
	} tables[STORE_TABLES];
	unsigned n_writes; /* that were under way */
	unsigned n_lines;  /* what there is to tell people, a line each without its newline */
	char lines[STORE_LINES_MAX][STORE_ERROR_BYTES];
};

/* Opens a state or begins one. 0; -errno with one line for people in `error`, which names the file:
 *   -EBUSY     another process has it open
 *   -EINVAL    made for another geometry; another version; not a state of npumem; damaged or cut short beyond what
 *              can be told apart; a copy of a state in use; files of different states
 *   -EPERM     a file that another user may write
 *   -ENOSPC, -EFBIG, -ENOMEM, -EMFILE, -EACCES, -EIO …: what the system said.
 * What stood stays where it fails. `report` and `error` may not be NULL; `error` has STORE_ERROR_BYTES. */
int store_open(const struct store_options *options, struct store **out, struct store_report *report, char *error);

/* `clean`: nothing is under way, all is on disk and marked closed, so that it may be copied; 0 or -errno where
 * that failed. Without, everything is left as a kill would. Frees the store either way. NULL is fine. */
int store_close(struct store *store, bool clean);

/* memory_bytes, page-aligned, zero at first. */
void *store_memory(struct store *store);

/* Cells are numbered from 0; there are at least as many as were ever prepared. */
uint32_t store_n_cells(const struct store *store, enum store_table table);

/* What was last committed (with `durable`: flushed) to a cell: NULL where it is empty or lost. 8-byte aligned. */
const void *store_cell(const struct store *store, enum store_table table, uint32_t index, size_t *bytes);

/* What an empty cell was dropped with; 0 at first, of a cell in use and of a lost one. */
uint64_t store_stamp(const struct store *store, enum store_table table, uint32_t index);

/* Whether it was found damaged. It stays so until it is put or dropped. */
bool store_is_lost(const struct store *store, enum store_table table, uint32_t index);

/* Makes room: for so many cells of a table (0: as they are), and for n_changes puts and drops, of all tables
 * together, in the next commit. Comes before the first of them; where they need cells of several tables, each call
 * says the sum. A change that is then not made need not be given up. 0, -ENOSPC, -EFBIG, -ENOMEM, -EIO …: what was
 * there before still is. */
int store_prepare(struct store *store, enum store_table table, uint32_t n_cells, uint32_t n_changes);

/* Parts of the next commit; later ones win. Prepared; `bytes` up to the table's most. Cannot fail. */
void store_put(struct store *store, enum store_table table, uint32_t index, const void *payload, size_t bytes);
void store_drop(struct store *store, enum store_table table, uint32_t index, uint64_t stamp);

/* All puts and drops since the last one, or none of them, are what a later store_open finds. Cannot fail; nothing
 * to do where there are none. */
void store_commit(struct store *store);

/* With `durable`, what was committed and which writes ended are on disk, and local memory with them, when this
 * returns 0; without, 0 at once. Comes before any reply that tells of them, and not between a put and its commit.
 * -errno: what is on disk is not known, and every later call answers the same: nothing may be acknowledged any
 * more.
 */
int store_flush(struct store *store);

/* A write to local memory that was begun and not ended: what it means is the caller's. */
struct store_write;

/* Room for one that may begin: nobody finds it before. 0; -ENOSPC where there are STORE_WRITES_MAX. */
int store_write_plan(struct store *store, uint64_t handle, int64_t first, int64_t count, struct store_write **out);
/* Before the first byte of these is touched, which were planned and not begun; on any thread. 0; -EIO … with
 * `durable`, where it waits for the disk: then none has begun, and store_flush answers the same from now on. */
int store_writes_begin(struct store *store, struct store_write *const *writes, unsigned n);
/* Both of one. */
int store_write_begin(struct store *store, uint64_t handle, int64_t first, int64_t count,
		      struct store_write **out);
/* Also of one that was planned and has not begun. With `durable` what a loss of power finds ends at the next
 * store_flush, after its bytes are on disk. */
void store_write_end(struct store *store, struct store_write *write);

struct store_found_write {
	uint64_t handle;
	int64_t first, count;
};
/* What was under way when the last process ended, in no order; the store's until store_recovered. */
unsigned store_writes_found(const struct store *store, const struct store_found_write **out);

/* What the report told of is dealt with, in local memory and by commits: the next process need not be told of
 * is_stale and of the writes found. Until then it is. To be called once after each store_open, when recovery is
 * through. 0; -errno with `durable`. */
int store_recovered(struct store *store);

#endif
