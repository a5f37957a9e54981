/* Where long operations run: threads, or whatever a test puts in their place. */
#ifndef RPC_EXECUTOR_H
#define RPC_EXECUTOR_H

#include <stdint.h>

struct executor {
	/* Runs work(arg) on another thread, then done(arg) on the thread that called; uids take turns where there
	 * is more work than threads. 0; -ENOMEM, -EAGAIN: neither will be called. */
	int (*submit)(void *ctx, uint32_t uid, void (*work)(void *arg), void (*done)(void *arg), void *arg);
	void *ctx;
};

#endif
