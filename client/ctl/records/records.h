/* Recording, and directories that appear only when they are whole. */
#ifndef CTL_RECORDS_RECORDS_H
#define CTL_RECORDS_RECORDS_H

#include <limits.h>
#include <stdio.h>

#include <npumem/record.h>

#include "client/ctl/core/words/words.h"
#include "client/ctl/ctl.h"

/* partial.c. A directory that is being written: beside its place under a name of its own, which it gives up for
 * its place once it is whole. Where it is not, by a failure or a signal that ends this process, nothing is left of
 * it. */

enum { PARTIAL_FILES_MAX = 16 };

struct partial {
	char path[PATH_MAX]; /* empty: there is none */
	int directory;	     /* locked: an unlocked one is left over from a killed process; -1: none */
	int file;
	char names[PARTIAL_FILES_MAX][NAME_MAX + 1]; /* of its files; the last is open */
	unsigned n_files;
	uint64_t bytes; /* that were written */
};

/* Begins one at `prefix` and some letters; one at a time in a process. Says on stderr what a kill has left of
 * others with that prefix. CTL_OK, CTL_FAILED, CTL_USAGE; partial_end comes after either. */
int partial_begin(struct ctl *ctl, const char *prefix, struct partial *partial);
/* A piece of one of its files, which come one after the other. A name that has other bytes
 * than small letters is refused: the daemon may be hostile. */
int partial_write(struct ctl *ctl, struct partial *partial, const struct npumem_piece *piece);
/* All is written. */
int partial_close(struct ctl *ctl, struct partial *partial);
/* All is on disk, and the directory gets its name, which is free or an empty directory's. */
int partial_name(struct ctl *ctl, struct partial *partial, const char *name);
/* Removes what has no name yet. */
void partial_end(struct partial *partial);

/* recording.c. A record that is being taken until the user interrupts it. */

/* Connects, and writes the record to `fd`, which stays open; of NPUMEM_RECORD_SNAPSHOT its snapshot into
 * `directory`, which is new or empty. CTL_OK with how many entries it has, CTL_FAILED, CTL_USAGE. */
int recording_take(struct ctl *ctl, int fd, enum npumem_record_from from, const char *directory,
		   uint64_t *entries);

/* Says of a recording that has no end (`byte` is not 0, as from npumem_replay_cut) where it ends. */
void recording_warn_cut(const struct ctl *ctl, const char *path, uint64_t byte, uint64_t entries);

/* rendering.c. A record, of a file or of what is going on, as another file. */

/* RECORD OUT, or OUT with --live, which records until it is interrupted. */
extern const struct option rendering_options[];
/* `write` puts a chronicle (core/report/chronicle.h) into OUT, or on stdout where that is "-"; false: it could not
 * be written. CTL_OK, CTL_FAILED, CTL_USAGE. */
int rendering_run(struct ctl *ctl, const struct args *args, bool (*write)(FILE *out, const json_t *chronicle));

/* snapshotting.c. A daemon's snapshot, into a directory. */

/* Takes one into `directory`, which is new or empty, and there only once it is whole. `next` hands out its next
 * piece, the first time the first; what it returns ends it, unless CTL_OK. Tells how many bytes there were. Comes
 * before anything is asked of a daemon: `next` does that. CTL_OK, CTL_FAILED, CTL_USAGE. */
int snapshotting_take(struct ctl *ctl, const char *directory,
		      int (*next)(struct ctl *ctl, void *context, const struct npumem_piece **piece),
		      void *context, uint64_t *bytes);

/* A copy of the snapshot in `directory`, at a place of its own below $TMPDIR or /tmp: a daemon that starts from
 * one makes a state of it. Removed by partial_end, which comes after either: the daemon that has started needs no
 * names. CTL_OK or CTL_FAILED. */
struct partial;
int snapshotting_copy(struct ctl *ctl, const char *directory, struct partial *to);

#endif
