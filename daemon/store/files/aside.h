/* A state that cannot be used is kept in a folder of its directory, aside-TIME, with the reason in the file `why`.
 * Nothing here removes such a folder. */
#ifndef STORE_ASIDE_H
#define STORE_ASIDE_H

#include "daemon/store/opening.h"

#define ASIDE_PREFIX "aside-"
#define ASIDE_WHY "why"

enum { ASIDE_NAME_BYTES = 48 };

struct aside_note {
	char time[32], verdict[32], line[STORE_ERROR_BYTES];
};

/* Moves the files of a state that was just refused; opening->error has the reason. A state of options->open is
 * copied to aside_directory and emptied instead. The journal is locked. 0: the next store_open begins a new state,
 * and report->aside says so. -errno: nothing was moved, or aside_finish will go on; opening->error has the
 * error. */
int aside_set(const struct opening *opening);

/* Finishes a move that a process began before it died. The journal is locked; *is_moved: it has left the
 * directory. 0 or -errno with its line. */
int aside_finish(const struct opening *opening, bool *is_moved);

/* Calls each(ctx, name, note) for every folder of a directory, in the order of readdir. Returns their number, or
 * -errno. */
int aside_each(int directory, void (*each)(void *ctx, const char *name, const struct aside_note *note), void *ctx);

#endif
