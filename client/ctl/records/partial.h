/* A directory that is being written: beside its place under a name of its own, which it gives up for its place
 * once it is whole. Where it is not, by a failure or a signal that ends this process, nothing is left of it. */
#ifndef CTL_PARTIAL_H
#define CTL_PARTIAL_H

#include <limits.h>

#include "client/ctl/ctl.h"

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

#endif
