/* A private daemon for one connection: npumem_open with "spawn:". */
#ifndef CLIENT_LIB_PRIVATE_H
#define CLIENT_LIB_PRIVATE_H

#include <npumem/client.h>

/* `words`: npumemd's options; `options` complete. 0; INVALID, UNAVAILABLE, DEADLINE_EXCEEDED. */
int private_open(const char *words, const struct npumem_options *options, struct npumem **out,
		 struct npumem_error *error);

#endif
