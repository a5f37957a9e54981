/* The descriptors of a state: found or made, locked, and safe from other users. */
#ifndef STORE_FILES_H
#define STORE_FILES_H

#include "daemon/store/opening.h"

/* Opens and locks all files of the opening's store; sets `bytes` and `identities`. 0 or -errno with its line; what
 * is open then is the store's either way. */
int files_open(struct opening *opening);
/* Refuses a directory of a snapshot that was not finished; changes nothing. 0 or -EINVAL with its line. */
int files_check_partial(const struct opening *opening);
/* Sets `bytes` and `identities` of a file. */
void files_note(struct opening *opening, enum format_file file, const struct statx *stat);
void files_close(struct store *store);

/* Reads a file's page; what the file does not have of it is zero. 0 or -errno with its line. */
int files_read_page(const struct opening *opening, enum format_file file, struct format_page *page);

#endif
