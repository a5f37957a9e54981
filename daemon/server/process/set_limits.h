/* What users may have of this daemon. */
#ifndef SERVER_SET_LIMITS_H
#define SERVER_SET_LIMITS_H

#include "daemon/server/process/options.h"
#include "daemon/service/limits.h"

/* Lets this process have as many fds as it may. Before there are threads. */
void set_limits_of_process(void);
/* Fills the table. Returns 0 or -ENOMEM. */
int set_limits(struct limits_table *table, const struct options *options);

#endif
