/* The identity of a state: its id, the process that had it last, and whether its files belong together. */
#ifndef STORE_IDENTITY_H
#define STORE_IDENTITY_H

#include "daemon/store/opening.h"

/* The boot's id of the options or of the system. 0 or -errno with a line. */
int identity_read_boot(struct opening *opening);

/* Whether a state's making can have left this: nothing, or what is not yet valid. */
bool identity_is_blank(const struct opening *opening, enum format_file file, const struct format_page *page);

/* Writes the header of one of a new state's files. */
void identity_make(const struct opening *opening, enum format_file file, const uint8_t *state,
		   struct format_page *page);

/* Holds what stands there against the options and against each other; `pages` are all files'. Sets is_copy, the
 * report's is_new, was_clean and is_stale, and epoch. 0 or -EINVAL with its line. */
int identity_check(struct opening *opening, const struct format_page *pages);

/* Says in all files that this process has the state: its first epoch after opening->epoch. 0 or -errno. */
int identity_begin(const struct opening *opening);
/* Says that it closed it; all else is on the disk. */
int identity_end(struct store *store);
/* Makes the first page of one of its files that of a copy of the state, closed at this moment. */
void identity_close_copy(const struct store *store, enum format_file file, struct format_page *page);

#endif
