/* Where a daemon is: the address forms of npumem_open. */
#ifndef CLIENT_LIB_ADDRESS_H
#define CLIENT_LIB_ADDRESS_H

#include <npumem/types.h>

enum {
	ADDRESS_PATH_BYTES = 108, /* what a Unix socket's address holds, with the final 0 */
	ADDRESS_HOST_BYTES = 256,
};

struct address {
	bool spawn;
	const char *options;	       /* spawn: of the daemon; points into the text that was parsed */
	char host[ADDRESS_HOST_BYTES]; /* of another host: [USER@]HOST; else empty */
	char path[ADDRESS_PATH_BYTES]; /* else; of another host, where empty is what is usual there */
};

/* `text` NULL: the default of client.h. 0 or INVALID (an empty or too long path, a host that ssh or a shell could
 * take for something else). */
int address_parse(const char *text, struct address *address, struct npumem_error *error);

static inline bool address_is_remote(const struct address *address)
{
	return address->host[0];
}

/* The rest is of paths alone. */

/* A socket in *fd that listens at the address. 0 or UNAVAILABLE (something is there). */
int address_listen(const struct address *address, int *fd, struct npumem_error *error);

/* A connected socket, blocking, in *fd, by `until` (clock.h). 0 or UNAVAILABLE, DEADLINE_EXCEEDED, and as
 * peer_check. */
int address_connect(const struct address *address, int64_t until, int *fd, struct npumem_error *error);
/* The same without waiting, not even for room in a queue of connections. 0 or -errno. */
int address_try(const struct address *address, int *fd);

#endif
