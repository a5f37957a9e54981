/* Opens, makes and locks the files of a state, and checks that no other user can write them. */
#ifndef STORE_FILES_H
#define STORE_FILES_H

#include "daemon/store/opening.h"

/* Opens and locks all files of the opening's store; sets `bytes` and `identities`. 0 or -errno with its line; in
 * both cases the store owns the open descriptors. */
int files_open(struct opening *opening);
/* Refuses the directory of an unfinished snapshot; changes nothing. 0 or -EINVAL with its line. */
int files_check_partial(const struct opening *opening);
/* Sets `bytes` and `identities` of a file. */
void files_note(struct opening *opening, enum format_file file, const struct statx *stat);
void files_close(struct store *store);

/* Reads a file's first page; bytes that the file does not have are zero. 0 or -errno with its line. */
int files_read_page(const struct opening *opening, enum format_file file, struct format_page *page);

#endif
