/* One operation that is answered with a Done. */
#ifndef CLIENT_LIB_OPERATIONS_H
#define CLIENT_LIB_OPERATIONS_H

#include <npumem/async.h>

#include "proto/npumem.pb-c.h"

/* As npumem_X_async. */
int operations_start(struct npumem *npumem, Npumem__V1__Request *message, NPUMEM_ASYNC);

#endif
