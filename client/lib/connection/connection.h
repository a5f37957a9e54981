/* A connection over an open socket with a heap of the caller's choice: for the tests. */
#ifndef CLIENT_LIB_CONNECTION_H
#define CLIENT_LIB_CONNECTION_H

#include <npumem/client.h>

#include "client/lib/addresses/address.h"
#include "client/lib/connection/memory.h"

/* Takes over `fd` in any case; `options` may be NULL. 0 or UNAVAILABLE, INVALID. */
int connection_new(const struct memory *memory, int fd, const struct npumem_options *options, struct npumem **out,
		   struct npumem_error *error);

/* The same of a socket that was connected to `address`, where another daemon may go on with the session. */
int connection_at(const struct memory *memory, const struct address *address, int fd,
		  const struct npumem_options *options, struct npumem **out, struct npumem_error *error);

/* What the caller gave, and the defaults for the rest; a time of 0 has no end. 0 or INVALID. */
int connection_options(const struct npumem_options *given, struct npumem_options *options,
		       struct npumem_error *error);

#endif
