/* A private daemon: a child that serves one socket, and ends with it or with this process. Another program as the
 * other end of one. */
#ifndef CLIENT_LIB_SPAWN_H
#define CLIENT_LIB_SPAWN_H

#include <sys/types.h>

#include <npumem/types.h>

#include "client/lib/connection/memory.h"

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

#endif
