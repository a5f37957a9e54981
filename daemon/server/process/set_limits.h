/* Sets the limits of this process and of its users. */
#ifndef SERVER_SET_LIMITS_H
#define SERVER_SET_LIMITS_H

#include "daemon/server/process/options.h"
#include "daemon/service/limits.h"

/* Raises the process's limit of fds to the hard limit, at most FDS_MAX. Before there are threads. */
void set_limits_of_process(void);
/* Fills the table. Returns 0 or -ENOMEM. */
int set_limits(struct limits_table *table, const struct options *options);

#endif
