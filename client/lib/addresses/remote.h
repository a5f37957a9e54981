/* A daemon on another host: ssh as the other end of the connection, and npumemctl dial as the other end of ssh. */
#ifndef CLIENT_LIB_REMOTE_H
#define CLIENT_LIB_REMOTE_H

#include "client/lib/addresses/address.h"
#include "client/lib/addresses/spawn.h"

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
