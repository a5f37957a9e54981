/* A connection over an open socket with a heap of the caller's choice: for the tests. */
#ifndef CLIENT_LIB_CONNECTION_H
#define CLIENT_LIB_CONNECTION_H

#include <npumem/client.h>

#include "client/lib/memory.h"

/* Takes over `fd` in any case. 0 or UNAVAILABLE. */
int connection_new(const struct memory *memory, int fd, struct npumem **out, struct npumem_error *error);

#endif
