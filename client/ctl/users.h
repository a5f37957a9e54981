/* Users of this machine, by name. */
#ifndef CTL_USERS_H
#define CTL_USERS_H

#include "client/ctl/ctl.h"

enum { USERS_TEXT_BYTES = 48 };

/* False: no user has this name. */
bool users_find(const char *name, int64_t *uid);

/* "1000 (alice)"; "1000" if no user has this uid, or if the daemon is on another host, whose users are others.
 * Returns `text`, USERS_TEXT_BYTES long. */
const char *users_text(const struct ctl *ctl, uint32_t uid, char *text);

#endif
