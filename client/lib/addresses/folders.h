/* Whether other users can change where a path leads. */
#ifndef CLIENT_LIB_FOLDERS_H
#define CLIENT_LIB_FOLDERS_H

#include <limits.h>
#include <sys/types.h>

/* Follows `path` link by link and checks each folder that an entry is read from, also those in the middle of a
 * chain of links. A folder is safe where root, the caller or `peer` owns it, and
 *   - its mode lets nobody else write, or
 *   - it is sticky and the entry belongs to root or the caller: others cannot rename or remove that entry.
 * 0: all are safe. 1: `folder` is the first that is not, without links in its path. -errno: `path` leads nowhere.
 */
int folders_check(const char *path, uid_t peer, char folder[PATH_MAX]);

#endif
