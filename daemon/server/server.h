/* The daemon as a whole. */
#ifndef SERVER_SERVER_H
#define SERVER_SERVER_H

#include "daemon/server/connections/address.h"
#include "daemon/server/process/options.h"

/* Runs the daemon until a signal or a request stops it. 0, or -errno with one line in `error` where it cannot
 * start. */
int server_run(const struct options *options, char error[ADDRESS_ERROR_BYTES]);

#endif
