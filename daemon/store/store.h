/* The state that outlives the process: the bytes of local memory, tables of fixed cells, and notes of running
 * writes. All of it is in mapped files whose blocks are allocated beforehand. Knows cells and bytes, no tensors.
 *
 * The next process finds all that was stored, however this one ends; with `durable` it finds all that was flushed
 * also after a loss of power. A change of many cells is found whole or not at all. A cell whose checksum is wrong
 * is lost: it is counted, reported by its number and never used. Flipped bits in local memory itself are not
 * noticed.
 *
 * All functions are for one thread unless they say otherwise. A pointer to a cell is good until the next
 * store_prepare or store_commit; store_memory() and struct store_write never move.
 *
 * The files are journal, memory, tensors, sessions and results. Only the same user may write them: cutting a
 * mapped file short ends the process. On file systems that copy on write (btrfs) allocated room may still be
 * denied later, which ends the process as well. */
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
	STORE_BYTES_FOUND_MAX =
		496, /* of the payload of any cell that store_cell returns: version 1 had larger ones */
	STORE_SESSION_BYTES_MAX = 112,
	STORE_RESULT_BYTES_MAX = 112,
	STORE_GEOMETRY_BYTES_MAX = 256,
	STORE_TEXT_BYTES_MAX = 256, /* of a geometry's text, with its 0 */
	STORE_ERROR_BYTES = 512,    /* room for a line with its 0 */
	STORE_LINES_MAX = 16,
	STORE_WRITES_MAX = 32640, /* under way at a time */
	STORE_RUNS_MAX = 48,	  /* requests that run at a time: those of the loop and of workers' slots */
};

struct store;
struct store_hooks;

struct store_options {
	/* The directory of the files; if it is missing it is made, for its user alone. NULL: `open` is called
	 * instead. */
	const char *directory;
	/* Returns a descriptor for reading and writing of the file of this name, empty if it is new, or -errno.
	 * The store closes it, also if store_open fails. */
	int (*open)(void *ctx, const char *name);
	void *ctx;

	/* Compared byte for byte with the geometry of the state; the text is for people. Copied. */
	const void *geometry;
	size_t geometry_bytes;
	const char *geometry_text;
	uint64_t memory_bytes;
	/* Local memory takes its room when it is used: for descriptors of memory, where no disk can be full, and
	 * beyond the limit the process ends in any case. */
	bool sparse;

	/* The id of the machine's boot: 32 hexadecimal digits, with or without hyphens (systemd's %b). NULL:
	 * /proc/sys/kernel/random/boot_id is read, which a unit with ProcSubset=pid cannot. */
	const char *boot_id;

	/* Writes into `words` how the geometry of a state differs from the one above. Returns OTHER_CELLS or
	 * OTHER_GEOMETRY. NULL: the message has only the two texts. */
	enum store_verdict (*compare)(const void *found, size_t bytes, char *words, size_t words_bytes);

	/* An unusable state is set aside (aside.h) and a new one begun, unless so many are set aside already. 0:
	 * it is refused. */
	unsigned aside_most;
	/* A state of `open` is copied to this directory. NULL: it cannot be set aside. */
	const char *aside_directory;

	bool durable;
	uint64_t log_bytes; /* size of the log on the disk; 0: 16 MiB */
	/* The user whose request the calling thread runs, NULL for none. With `durable` each user has an equal
	 * share of the log. NULL: all share one. */
	const void *(*user)(void);
	const struct heap *heap;	 /* outlives the store */
	const struct store_hooks *hooks; /* NULL but in tests (hooks.h) */
};

/* The report on a state that was opened. */
struct store_report {
	enum store_verdict verdict; /* of the state if it is refused; else USABLE or EMPTY */
	enum store_verdict aside_verdict;
	char aside[STORE_ERROR_BYTES]; /* a line: the state that was set aside before this one, its place and the
					  reason */
	bool is_new;		       /* there was no state: all is empty and zero */
	bool was_clean;		       /* the last process closed it */
	/* Local memory may be older than the tables, or have parts of writes without a note: after a loss of power
	 * without `durable`, or if notes of writes are damaged. No data may be trusted. */
	bool is_stale;
	struct {
		uint32_t n_kept, n_lost; /* cells in use, and damaged ones */
	} tables[STORE_TABLES];
	unsigned n_writes; /* that were under way */
	unsigned n_runs;   /* requests that ran */
	bool is_same_boot; /* as the last process's: if that did not close the state, it died by itself or by a
			      signal */
	unsigned n_lines;  /* lines for people, without newlines */
	char lines[STORE_LINES_MAX][STORE_ERROR_BYTES];
};

/* Opens a state or begins one. 0; -errno with one line for people in `error`, which names the file:
 *   -EBUSY     another process has it open
 *   -EINVAL    the state cannot be used, for the reason in report->verdict (verdict.def)
 *   -EPERM     a file that another user may write
 *   -ENOSPC, -EFBIG, -ENOMEM, -EMFILE, -EACCES, -EIO …: the error of a system call
 * If it fails, the files stay as they are. `report` and `error` may not be NULL; `error` has STORE_ERROR_BYTES. */
int store_open(const struct store_options *options, struct store **out, struct store_report *report, char *error);

/* `clean`: nothing is under way; all is synced and marked closed, so that the state may be copied. 0, or -errno if
 * that failed. Not `clean`: leaves the files as a kill would. Frees the store in either case. NULL is allowed. */
int store_close(struct store *store, bool clean);

/* memory_bytes, page-aligned, zero at first. */
void *store_memory(struct store *store);

/* The name of the file that is mapped at this address; NULL: none is. May be called in a signal handler. */
const char *store_file_at(const struct store *store, const void *address);

/* Cells are numbered from 0; there are at least as many as were ever prepared. */
uint32_t store_n_cells(const struct store *store, enum store_table table);

/* The committed payload of a cell, 8-byte aligned. NULL: it is empty or lost. */
const void *store_cell(const struct store *store, enum store_table table, uint32_t index, size_t *bytes);

/* The stamp with which an empty cell was dropped; 0 at first, and for cells in use or lost. */
uint64_t store_stamp(const struct store *store, enum store_table table, uint32_t index);

/* Whether a cell was found damaged, and was neither put nor dropped since. */
bool store_is_lost(const struct store *store, enum store_table table, uint32_t index);

/* Makes room for n_cells of a table (0: as many as it has), and for n_changes puts and drops, of all tables
 * together, in the next commit. To be called before the first change; if cells of several tables are needed, each
 * call has the sum of the changes. A prepared change need not be made. 0, or -ENOSPC, -EFBIG, -ENOMEM, -EIO …:
 * nothing was changed. */
int store_prepare(struct store *store, enum store_table table, uint32_t n_cells, uint32_t n_changes);

/* Changes of the next commit; later ones win. Prepared; `bytes` is at most the table's. Cannot fail. */
void store_put(struct store *store, enum store_table table, uint32_t index, const void *payload, size_t bytes);
void store_drop(struct store *store, enum store_table table, uint32_t index, uint64_t stamp);

/* Commits all puts and drops since the last commit: a later store_open finds all or none of them. Cannot fail. */
void store_commit(struct store *store);
/* The number of these puts and drops. */
uint64_t store_n_changes(const struct store *store);

/* ---- with `durable`: syncs ---- */

bool store_is_durable(const struct store *store);
/* Whether local memory is a file on a disk: a sync, of any process, makes its pages read-only until each is
 * written again. */
bool store_is_on_disk(const struct store *store);
/* Whether these few bytes of it are in memory. False: they may not be, or are on more than 16 pages. */
bool store_are_there(const void *at, size_t bytes);

/* Bytes of local memory have changed: a copy of them goes into the log, behind all earlier changes. On any thread,
 * before a conflicting operation begins. On threads other than the owner's (store_attach) it waits for the disk if
 * too much of its user (options->user) is not synced. */
void store_keep(struct store *store, uint64_t off, uint64_t bytes);

/* The position in the log of the last change: changes, commits and notes until now have this one or a lower one.
 * On any thread. */
uint64_t store_position(const struct store *store);
/* Changes up to this position are on the disk. */
uint64_t store_synced(const struct store *store);
/* Whether so much, of all users or of this one, is not synced that further changes of memory should be left to a
 * thread that may wait. */
bool store_is_backlogged(struct store *store, const void *user);

/* From here on changes of the thread that attached the store count as this user's. Users are only compared. */
void store_change_for(struct store *store, const void *user);
/* Whether the user has room for more in the round that is being filled (shares.h). False: the round begins as soon
 * as possible; the caller asks again when it is over. */
bool store_has_share(struct store *store, const void *user);

/* A round: writes all changes to the disk and waits for it. Calls synced(ctx), unless it is NULL, as soon as
 * store_synced() has risen; and also before, if store_has_share returned false, as the next round has room. 0;
 * -errno: it is unknown what the disk has, every later call returns the same, and nothing may be acknowledged any
 * more. One thread at a time. */
int store_write_out(struct store *store, void (*synced)(void *ctx), void *ctx);
/* The error of a round: 0, or -errno for good. On any thread. */
int store_failed(const struct store *store);
/* Another thread makes the rounds from now on, and this one no longer waits for the disk. */
void store_attach(struct store *store);
/* A client of the user waits for all changes until now; so the round is kept short. `round` is the client's: zero
 * at first, then the number of the round that it waited for last. */
void store_want(struct store *store, const void *user, uint64_t *round);
/* On that thread: waits until a client waits for unsynced changes, or there are many. Clients that the last round
 * has answered mostly send more at once: if it took half a millisecond or more, the next round waits for them for
 * a quarter of its time. Otherwise half of the clients would wait for each other's rounds. False:
 * store_stop_waiting was called, or the disk has failed. */
bool store_wait(struct store *store);
void store_stop_waiting(struct store *store);
/* That thread has ended. */
void store_detach(struct store *store);
/* Makes all rounds on this thread; no other one makes any. 0 at once without `durable`. */
int store_flush(struct store *store);

/* The note of a write to local memory that has begun and not ended; the caller defines its numbers. */
struct store_write;

/* The elements that a write changes, and its record from store_writes_begin on. */
struct store_note {
	uint64_t handle;
	int64_t first, count;
	struct store_write *write;
};

/* Begins writes, before the first byte of any is touched; on any thread. 0; -ENOSPC: more than STORE_WRITES_MAX
 * would be under way; -errno: the disk has failed. Then none has begun. */
int store_writes_begin(struct store *store, struct store_note *notes, unsigned n);
/* The same for one write. */
int store_write_begin(struct store *store, uint64_t handle, int64_t first, int64_t count,
		      struct store_write **out);
/* On any thread. With `durable` its bytes were given to store_keep before. */
void store_write_end(struct store *store, struct store_write *write);

struct store_found_write {
	uint64_t handle;
	int64_t first, count;
};
/* The writes that were under way when the last process ended, in no order; the store's until store_recovered. */
unsigned store_writes_found(const struct store *store, const struct store_found_write **out);

/* A request that runs. NULL stands for one that is not noted. */
struct store_run;

/* Takes a slot, on any thread; NULL: there is none. To give back NULL has no effect. */
struct store_run *store_run_take(struct store *store);
void store_run_give(struct store *store, struct store_run *run);
/* Notes that the request runs, instead of the one before; or that none runs. On any thread. */
void store_run_begin(const struct store *store, struct store_run *run, uint64_t session, uint64_t request,
		     uint32_t method);
void store_run_end(const struct store *store, struct store_run *run);

struct store_found_run {
	uint64_t session, request;
	uint32_t method;
};
/* The requests that ran when the last process ended, in no order; the store's until store_recovered. */
unsigned store_runs_found(const struct store *store, const struct store_found_run **out);

/* Ends recovery: clears is_stale and the notes of the last process, which the next store_open finds until then. To
 * be called once after each store_open, when local memory and cells have been repaired and committed. 0; -errno
 * with `durable`. */
int store_recovered(struct store *store);

#endif
