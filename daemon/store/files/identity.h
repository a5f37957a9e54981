/* The identity of a state: its id, the process that had it last, and whether its files belong together. */
#ifndef STORE_IDENTITY_H
#define STORE_IDENTITY_H

#include "daemon/store/opening.h"

/* Reads the id of the boot from the options or the system. 0 or -errno with a line. */
int identity_read_boot(struct opening *opening);

/* Whether the page can be of an unfinished new state: empty, or not yet valid. */
bool identity_is_blank(const struct opening *opening, enum format_file file, const struct format_page *page);

/* Writes the header of one of a new state's files. */
void identity_make(const struct opening *opening, enum format_file file, const uint8_t *state,
		   struct format_page *page);

/* Checks the pages of all files against the options and against each other. Sets opening's epoch, turning and
 * is_copy, and the report's was_clean, is_same_boot and is_stale. 0 or the verdict's status with its line. */
int identity_check(struct opening *opening, const struct format_page *pages);

/* Notes in all files that this process has the state open: stores the next odd epoch. 0 or -errno. */
int identity_begin(const struct opening *opening);
/* Notes that it has closed the state; all else is on the disk. */
int identity_end(struct store *store);
/* Changes a copy of a file's first page to that of a copied state that was closed at this moment. */
void identity_close_copy(const struct store *store, enum format_file file, struct format_page *page);

#endif
