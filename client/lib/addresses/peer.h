/* Which user's daemon answers at a path. In a folder that others can write, any user can listen at a path: an
 * impostor would get the data of each write, and choose the data of each read. */
#ifndef CLIENT_LIB_PEER_H
#define CLIENT_LIB_PEER_H

#include <stdbool.h>
#include <sys/types.h>

#include <npumem/types.h>

/* The uid that the kernel knows of the socket's other end. */
bool peer_uid(int fd, uid_t *uid);

/* Of a socket that is connected to `path`. 0 where the daemon is root's, the caller's own, of uid
 * $NPUMEM_SERVER_UID, or where nobody but root, the caller and the daemon's own user can change a folder of the
 * path. PERMISSION_DENIED, with the field "uid"; INVALID: $NPUMEM_SERVER_UID is not a uid. */
int peer_check(const char *path, int fd, struct npumem_error *error);

#endif
