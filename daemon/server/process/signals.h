/* The signals that end the daemon. Threads that are made between signals_hold and signals_open never receive one:
 * it would interrupt their work, while only the loop's thread can act on it. */
#ifndef SERVER_PROCESS_SIGNALS_H
#define SERVER_PROCESS_SIGNALS_H

#include <stdbool.h>
#include <sys/types.h>
#include <uv.h>

enum { SIGNALS = 3 };

struct signals {
	uv_signal_t handles[SIGNALS];
	pid_t parent;
	void (*stop)(void *ctx, const char *why); /* why: "terminated", "interrupted"; NULL: the parent is gone */
	void *ctx;
};

/* Before the first thread is made. Signals that arrive from now on wait for signals_open. */
void signals_hold(void);

/* Calls signals->stop on the loop for each signal, those that have waited too. `stop` and `ctx` are set.
 * `with_parent`: also when the parent process ends. 0 or -errno: then the loop closes the handles that it has. */
int signals_open(struct signals *signals, uv_loop_t *loop, bool with_parent);

void signals_close(struct signals *signals);

#endif
