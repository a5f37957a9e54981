/* What kind of file the user has named where a command refuses it. */
#ifndef CTL_CORE_KINDS_H
#define CTL_CORE_KINDS_H

#include <npumem/types.h>

/* If `error` is about the file `path`, and that is of another kind than the command takes, its message becomes:
 * what the file is not, what it is, and the commands that take it. */
void kinds_explain(const char *command, const char *path, struct npumem_error *error);

#endif
