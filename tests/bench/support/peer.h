/* Processes of a bench: started, pinned, their processor time read, ended. What goes wrong here ends the
 * bench with a line on stderr, and the processes with it. */
#ifndef BENCH_PEER_H
#define BENCH_PEER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

struct peer {
	pid_t pid; /* 0: not there */
	clockid_t clock;
	char path[108]; /* of its socket; empty: none */
};

enum peer_pin {
	PEER_SAME,  /* the client's processor */
	PEER_SPLIT, /* another one */
	PEER_FREE,  /* the scheduler decides, for the client too */
};

/* Starts `arguments` (NULL at the end), which listens on `path`; waits until it does. `preload` and `count` (a
 * file of 8 bytes) may be NULL. Leaves peer->pid 0 where the program is not there. */
void peer_start(struct peer *peer, const char *const *arguments, const char *path, const char *preload,
		const char *count);
/* A child that runs function(fd) on one end of a pair of sockets; returns the other. */
int peer_fork(struct peer *peer, void (*function)(int fd, void *context), void *context);
void peer_end(struct peer *peer);

/* A connection with blocking reads and writes; ends the bench where there is none. */
int peer_connect(const struct peer *peer);

/* Puts all threads of the peer (NULL: of none), and the caller, where `pin` says. */
void peer_pin(const struct peer *peer, enum peer_pin pin);
/* Processor time of all its threads so far. */
uint64_t peer_cpu_ns(const struct peer *peer);

uint64_t peer_now_ns(void);
_Noreturn void peer_die(const char *what);

#endif
