/* A state's first files, and those of one that is there. */
#ifndef STORE_CREATE_H
#define STORE_CREATE_H

#include "daemon/store/opening.h"

/* Makes the files of a new state; all are blank. 0; -errno with its line, and they are empty. */
int create_state(struct opening *opening);

/* Maps the files of a state that was found good and takes it up where it was left. 0 or -errno with its line. */
int load_state(struct opening *opening, const struct format_page *pages);

#endif
