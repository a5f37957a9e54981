/* The socket file and its lock. The daemon removes both when it ends. */
#ifndef SERVER_ADDRESS_H
#define SERVER_ADDRESS_H

#include <sys/types.h>

#include "daemon/server/process/options.h"

struct address {
	int fd;	     /* listening, non-blocking; -1: closed */
	int lock_fd; /* has the lock on PATH.lock; -1: the daemon does not own the socket file */
	char path[OPTIONS_PATH_BYTES];
};

enum { ADDRESS_ERROR_BYTES = 768 };

/* Locks, removes a stale socket file, binds and listens; makes the directory if it is missing. `group`: the
 * file's, a name or a number; NULL: the process's. 0; -errno, with one line in `error`: -EADDRINUSE: another
 * daemon has the file; -ENOENT: unknown group. */
int address_open(struct address *address, const char *path, mode_t mode, const char *group,
		 char error[ADDRESS_ERROR_BYTES]);
/* Takes over a listening socket of systemd, which owns the file: no lock is taken, and the file stays. */
void address_adopt(struct address *address, int fd);
/* Removes the socket file and releases the lock. Returns the listening socket, the caller's now; -1: it is closed
 * already. */
int address_release(struct address *address);
/* The same, and closes the socket. */
void address_close(struct address *address);

#endif
