/* Takes up a state: makes the files of a new one, or maps those of a found one. */
#ifndef STORE_TAKE_UP_H
#define STORE_TAKE_UP_H

#include "daemon/store/opening.h"

/* Makes the files of a new state; all are blank. 0; -errno with its line, and they are empty. */
int take_up_new(struct opening *opening);

/* Maps the files of a state that was found good and takes it up where it was left. 0 or -errno with its line. */
int take_up_found(struct opening *opening, const struct format_page *pages);

#endif
