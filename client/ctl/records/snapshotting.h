/* A daemon's snapshot, into a directory. */
#ifndef CTL_SNAPSHOTTING_H
#define CTL_SNAPSHOTTING_H

#include "client/ctl/ctl.h"

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
