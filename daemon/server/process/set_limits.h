/* What users may have of this daemon. */
#ifndef SERVER_SET_LIMITS_H
#define SERVER_SET_LIMITS_H

#include "daemon/server/process/options.h"
#include "daemon/service/limits.h"

/* Fills the table, and lets this process have as many fds as it may. Returns 0 or -ENOMEM. */
int set_limits(struct limits_table *table, const struct options *options);

#endif
