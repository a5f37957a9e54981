/* Where long operations run: threads, or whatever a test puts in their place. */
#ifndef RPC_EXECUTOR_H
#define RPC_EXECUTOR_H

#include <stdbool.h>
#include <stdint.h>

struct executor {
	/* Runs work(arg) on another thread, then done(arg) on the thread that called; uids take turns where there
	 * is more work than threads. 0; -ENOMEM, -EAGAIN: neither will be called. */
	int (*submit)(void *ctx, uint32_t uid, void (*work)(void *arg), void (*done)(void *arg), void *arg);
	/* Takes back what was submitted for that uid with that arg, on the thread that called. True: it had not
	 * begun, and neither will be called; false: it has, or is not there. NULL: nothing can be taken back. */
	bool (*withdraw)(void *ctx, uint32_t uid, void *arg);
	void *ctx;
};

#endif
