/* Where a daemon is: the address forms of npumem_open. */
#ifndef LIB_ADDRESSES_ADDRESS_H
#define LIB_ADDRESSES_ADDRESS_H

#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>

#include <npumem/types.h>

#include "client/lib/connection/memory.h"

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

/* folders.c. Whether other users can change where a path leads. */

/* Follows `path` link by link and checks each folder that an entry is read from, also those in the middle of a
 * chain of links. A folder is safe where root, the caller or `peer` owns it, and
 *   - its mode lets nobody else write, or
 *   - it is sticky and the entry belongs to root or the caller: others cannot rename or remove that entry.
 * 0: all are safe. 1: `folder` is the first that is not, without links in its path. -errno: `path` leads nowhere.
 */
int folders_check(const char *path, uid_t peer, char folder[PATH_MAX]);

/* peer.c. Which user's daemon answers at a path. In a folder that others can write, any user can listen at a path:
 * an impostor would get the data of each write, and choose the data of each read. */

/* The uid that the kernel knows of the socket's other end. */
bool peer_uid(int fd, uid_t *uid);

/* Of a socket that is connected to `path`. 0 where the daemon is root's, the caller's own, of uid
 * $NPUMEM_SERVER_UID, or where nobody but root, the caller and the daemon's own user can change a folder of the
 * path. PERMISSION_DENIED, with the field "uid"; INVALID: $NPUMEM_SERVER_UID is not a uid. */
int peer_check(const char *path, int fd, struct npumem_error *error);

/* spawn.c. A private daemon: a child that serves one socket, and ends with it or with this process. Another
 * program as the other end of one. */

struct spawned {
	pid_t pid;
	int log; /* what it writes to stderr, or -1: see spawn_last_words */
};

/* Starts what npumem_program finds, with `options` split at spaces. It serves `fd`, one end of a connection or a
 * listening socket, which is closed here in any case. 0; INVALID (too many options); UNAVAILABLE (it cannot be
 * started), RESOURCE_EXHAUSTED. */
int spawn_start(const struct memory *memory, const char *options, int fd, struct spawned *spawned,
		struct npumem_error *error);

/* Starts argv[0] of $PATH with `fd` as its stdin and stdout, which is closed here in any case. It stays in this
 * process's group, where it may ask at the terminal, and ignores a ^C. 0, or an errno. */
int spawn_filter(char *const *argv, int fd, struct spawned *spawned);

/* How much the child has written to stderr. */
off_t spawn_said(int log);
/* The last line of that, after its first `from` bytes; empty where there is none. */
void spawn_last_words(int log, off_t from, char *line, size_t bytes);

/* The first request failed with `why`, and its connection is closed: ends the child and says what it has said.
 * UNAVAILABLE or DEADLINE_EXCEEDED. */
int spawn_failed(const struct spawned *spawned, const struct npumem_error *why, struct npumem_error *error);
/* Waits for the child whose connection is closed, and forgets its log. */
void spawn_bury(const struct spawned *spawned);
/* Waits for the child, whose connection is closed by now; ends it by force if it does not go by itself. */
void spawn_reap(pid_t pid);
/* The same for a process that is not waited for: it is ended at once. */
void spawn_kill(pid_t pid);

/* remote.c. A daemon on another host: ssh as the other end of the connection, and npumemctl dial as the other end
 * of ssh. */

/* The command for the account's shell on the host: `to` has REMOTE_COMMAND_BYTES. */
enum { REMOTE_COMMAND_BYTES = 64 + 4 * ADDRESS_PATH_BYTES };
void remote_command(const struct address *address, char *to);

/* Starts $NPUMEM_SSH, or ssh, and does not wait: only the first answer shows that the host can be reached. The
 * socket to it in *fd. `again`: for a session that had a connection before; ssh then asks for no password, which
 * would interrupt the program, and gives up soon if the host does not answer. 0 or -errno. */
int remote_start(const struct address *address, bool again, struct spawned *spawned, int *fd);

/* What came first of a connection: 1, a daemon's message; 0, too few bytes to decide; -1, something else, whose
 * first line is in `line`, as far as it can be printed. */
int remote_greeting(const uint8_t *bytes, size_t n, char *line, size_t line_bytes);

/* What ssh said last, but for the first `from` bytes; empty: nothing. */
void remote_last_words(int log, off_t from, char *line, size_t bytes);
/* Why a connection ended: what ssh said last, but for the first `from` bytes, if anything. */
void remote_explain(const struct address *address, int log, off_t from, char *why, size_t bytes);

#endif
