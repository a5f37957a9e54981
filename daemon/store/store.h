/* What outlives the process: the bytes of local memory, tables of fixed cells, and which writes were under way,
 * all in files that are mapped and whose every block is allocated beforehand. Knows cells and bytes; nothing of
 * tensors.
 *
 * What was stored is there for the next process however this one ends; with `durable`, what was flushed also after
 * a loss of power. A change of many cells is found whole or not at all. A cell whose checksum is wrong is lost:
 * counted, told by its number and never believed. Bits that flip in local memory itself are not noticed.
 *
 * All functions are for one thread unless they say otherwise. A pointer to a cell is good until the next
 * store_prepare or store_commit; store_memory() and struct store_write never move.
 *
 * The files are journal, memory, tensors, sessions and results. Only the same user may write them: cutting a
 * mapped file short ends the process. On file systems that copy on write (btrfs) room that was allocated may still
 * be denied later, which ends it as well. */
#ifndef STORE_STORE_H
#define STORE_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/device/memory/heap.h"
#include "daemon/store/verdict.h"

enum store_table { STORE_TENSORS, STORE_SESSIONS, STORE_RESULTS, STORE_TABLES };

enum {
	STORE_TENSOR_BYTES_MAX = 240, /* of a cell's payload */
	STORE_BYTES_FOUND_MAX = 496,  /* of the payload of any cell that store_cell answers: of version 1 */
	STORE_SESSION_BYTES_MAX = 112,
	STORE_RESULT_BYTES_MAX = 112,
	STORE_GEOMETRY_BYTES_MAX = 256,
	STORE_TEXT_BYTES_MAX = 256, /* of a geometry's text, with its 0 */
	STORE_ERROR_BYTES = 512,    /* room for a line with its 0 */
	STORE_LINES_MAX = 16,
	STORE_WRITES_MAX = 32640, /* under way at a time */
	STORE_RUNS_MAX = 48,	  /* requests that run at a time and are noted */
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

	/* Says in `words` how what a state was made for differs from the geometry above: OTHER_CELLS, or
	 * OTHER_GEOMETRY. NULL: the two texts are said. */
	enum store_verdict (*compare)(const void *found, size_t bytes, char *words, size_t words_bytes);

	/* A state that cannot be used is set aside (aside.h) and a new one begun, unless so many are set aside
	 * there already. 0: it is refused. */
	unsigned aside_most;
	/* Where a state of `open` is copied to. NULL: it cannot be set aside. */
	const char *aside_directory;

	bool durable;
	uint64_t log_bytes; /* that changes take on the disk before they are put in their places; 0: 16 MiB */
	/* The user whose request the calling thread runs, NULL for none. With `durable` each of them has an equal
	 * share of the log. NULL: all have one. */
	const void *(*user)(void);
	const struct heap *heap;	 /* outlives the store */
	const struct store_hooks *hooks; /* NULL but in tests (hooks.h) */
};

/* What a state was found to be. */
struct store_report {
	enum store_verdict verdict; /* of what stands there, where it is refused; else USABLE or EMPTY */
	enum store_verdict aside_verdict;
	char aside[STORE_ERROR_BYTES]; /* a line: what was set aside before this state was begun, where to and why
					*/
	bool is_new;		       /* nothing was there: all is empty and zero */
	bool was_clean;		       /* the last process closed it */
	/* Local memory may be older than the tables, or hold parts of writes that nothing tells of: after a loss
	 * of power without `durable`, or where notes of writes under way are damaged. No data may be believed. */
	bool is_stale;
	struct {
		uint32_t n_kept, n_lost; /* cells in use, and damaged ones */
	} tables[STORE_TABLES];
	unsigned n_writes; /* that were under way */
	unsigned n_runs;   /* requests that ran */
	bool is_same_boot; /* as the last process's: if that one was not closed, it died by itself or by a signal
			    */
	unsigned n_lines;  /* what there is to tell people, a line each without its newline */
	char lines[STORE_LINES_MAX][STORE_ERROR_BYTES];
};

/* Opens a state or begins one. 0; -errno with one line for people in `error`, which names the file:
 *   -EBUSY     another process has it open
 *   -EINVAL    the state cannot be used: report->verdict says why (verdict.def)
 *   -EPERM     a file that another user may write
 *   -ENOSPC, -EFBIG, -ENOMEM, -EMFILE, -EACCES, -EIO …: what the system said.
 * What stood stays where it fails. `report` and `error` may not be NULL; `error` has STORE_ERROR_BYTES. */
int store_open(const struct store_options *options, struct store **out, struct store_report *report, char *error);

/* `clean`: nothing is under way, all is on disk and marked closed, so that it may be copied; 0 or -errno where
 * that failed. Without, everything is left as a kill would. Frees the store either way. NULL is fine. */
int store_close(struct store *store, bool clean);

/* memory_bytes, page-aligned, zero at first. */
void *store_memory(struct store *store);

/* The name of the file that is mapped at this address; NULL: none is. In a handler of signals, too. */
const char *store_file_at(const struct store *store, const void *address);

/* Cells are numbered from 0; there are at least as many as were ever prepared. */
uint32_t store_n_cells(const struct store *store, enum store_table table);

/* What was last committed to a cell: NULL where it is empty or lost. 8-byte aligned. */
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
/* How many these are. */
uint64_t store_n_changes(const struct store *store);

/* ---- with `durable`: what the disk has ---- */

bool store_is_durable(const struct store *store);
/* Local memory is a file on a disk: a sync by anybody makes its pages read-only until each is written again. */
bool store_is_on_disk(const struct store *store);

/* Bytes of local memory have changed: a copy of them goes to the disk, behind all that changed before. On any
 * thread, before anything that conflicts with the change begins. On threads other than the owner's (store_attach)
 * it waits for the disk where much of its user (options->user) is not there yet. */
void store_keep(struct store *store, uint64_t off, uint64_t bytes);

/* All that was changed, committed, begun and ended until now has a lower position, or this one. On any thread. */
uint64_t store_position(const struct store *store);
/* What has a position up to this one is on the disk. */
uint64_t store_synced(const struct store *store);
/* So much is not there yet, or so much of the user's, that what changes more memory should be left to a thread that
 * may wait. */
bool store_is_backlogged(struct store *store, const void *user);

/* Whose changes the thread that attached the store makes from here on. Users are only compared. */
void store_change_for(struct store *store, const void *user);
/* Whether the user has room for more in the round that is being filled (shares.h). false: the round is begun as
 * soon as can be; the caller asks again when it is over. */
bool store_has_share(struct store *store, const void *user);

/* A round: writes what has changed to the disk and waits for it. Calls synced(ctx), where that is not NULL, as
 * soon as store_synced() has risen, and before where somebody lacked a share that the next round has. 0; -errno:
 * what the disk has is not known, every later call answers the same, and nothing may be acknowledged any more. One
 * thread at a time. */
int store_write_out(struct store *store, void (*synced)(void *ctx), void *ctx);
/* What the disk has answered: 0, or -errno for good. On any thread. */
int store_failed(const struct store *store);
/* Another thread makes the rounds from now on, and this one no longer waits for the disk. */
void store_attach(struct store *store);
/* A client of the user waits for all that has changed until now, so that others keep the round short. `round` is the
 * client's: zero at first, and then the number of the round that it waited for last. */
void store_want(struct store *store, const void *user, uint64_t *round);
/* On that thread: waits until a client wants what is not on the disk, or that is much. Clients that have just been
 * answered mostly want something again: a round waits for them, for a quarter of the time that the last one took,
 * where that was half a millisecond or more. Else half of the clients would wait for each other's rounds. False:
 * store_stop_waiting was called, or the disk has failed. */
bool store_wait(struct store *store);
void store_stop_waiting(struct store *store);
/* That thread has ended. */
void store_detach(struct store *store);
/* All rounds, on this thread: there is no other, or it has ended. 0 at once without `durable`. */
int store_flush(struct store *store);

/* A write to local memory that was begun and not ended: what it means is the caller's. */
struct store_write;

/* What a write changes, and its record from store_writes_begin on. */
struct store_note {
	uint64_t handle;
	int64_t first, count;
	struct store_write *write;
};

/* Before the first byte of these is touched; on any thread. 0; -ENOSPC where more than STORE_WRITES_MAX would be
 * under way, -errno where the disk has failed: then none has begun. */
int store_writes_begin(struct store *store, struct store_note *notes, unsigned n);
/* Of one. */
int store_write_begin(struct store *store, uint64_t handle, int64_t first, int64_t count,
		      struct store_write **out);
/* On any thread. With `durable` its bytes were given to store_keep before. */
void store_write_end(struct store *store, struct store_write *write);

struct store_found_write {
	uint64_t handle;
	int64_t first, count;
};
/* What was under way when the last process ended, in no order; the store's until store_recovered. */
unsigned store_writes_found(const struct store *store, const struct store_found_write **out);

/* A request that runs. NULL stands for one that is not noted. */
struct store_run;

/* A slot, on any thread; NULL: there is none. Given back with NULL it does nothing. */
struct store_run *store_run_take(struct store *store);
void store_run_give(struct store *store, struct store_run *run);
/* The request runs from now on, in the place of the one before; or nothing runs there. On any thread. */
void store_run_begin(const struct store *store, struct store_run *run, uint64_t session, uint64_t request,
		     uint32_t method);
void store_run_end(const struct store *store, struct store_run *run);

struct store_found_run {
	uint64_t session, request;
	uint32_t method;
};
/* What ran when the last process ended, in no order; the store's until store_recovered. */
unsigned store_runs_found(const struct store *store, const struct store_found_run **out);

/* What the report told of is dealt with, in local memory and by commits: the next process need not be told of
 * is_stale and of the writes found. Until then it is. To be called once after each store_open, when recovery is
 * through. 0; -errno with `durable`. */
int store_recovered(struct store *store);

#endif
