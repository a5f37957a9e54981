/* The daemon under test without sockets, threads or time: clients send bytes, tasks for threads are a list that
 * the test works off in any order, and the clock stands until it is told. The only file here that knows
 * daemon/rpc. */
#ifndef TESTS_RANDOM_DAEMON_H
#define TESTS_RANDOM_DAEMON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct daemon;
struct heap;
struct rpc;
struct session;

struct daemon_options {
	int64_t n_npus, npu_bytes;
	bool threads;		 /* else everything runs at once */
	int isa;		 /* enum isa; 0: the best */
	const struct heap *heap; /* that may run dry; NULL: one that does not */
	/* Where the device lives, which is the caller's: of a state, that keeps tensors. NULL: its own. */
	void *memory;
	/* The service goes on as the state has it; false: it cannot. NULL: there is none. */
	bool (*go_on)(void *ctx, struct rpc *rpc);
	bool keeps_state; /* in files of its own: for daemon_crash */
	/* One Response, without its length. */
	void (*answered)(void *ctx, unsigned peer, const uint8_t *message, size_t bytes);
	void *ctx;
};

/* One at a time in a process that uses a clock. NULL: options->heap has run dry, or options->go_on says so. */
struct daemon *daemon_new(const struct daemon_options *options);
/* NULL, or what is left that should not be: all clients are closed, no task is left, all tensors are freed that no
 * state keeps. */
const char *daemon_free(struct daemon *daemon);

/* 0, or why there is no session: options.heap has run dry. */
int daemon_open(struct daemon *daemon, unsigned peer, uint32_t uid);
/* 0, or -ENOMEM of options.heap: then the peer can only be closed. */
int daemon_send(struct daemon *daemon, unsigned peer, const uint8_t *message, size_t bytes);
void daemon_close(struct daemon *daemon, unsigned peer);
/* All but the state is gone, as by a kill, and the daemon is started again. Nobody is connected. */
void daemon_crash(struct daemon *daemon);
/* Of a client that was closed: nothing of it is left. */
bool daemon_is_drained(const struct daemon *daemon, unsigned peer);

/* For tests that look deeper. The session is NULL where the peer is not open. */
struct rpc *daemon_rpc(struct daemon *daemon);
struct session *daemon_session(struct daemon *daemon, unsigned peer);
const uint8_t *daemon_memory(const struct daemon *daemon, size_t *bytes);

unsigned daemon_tasks(const struct daemon *daemon);
/* Does the work of task i, as a thread would; once. */
void daemon_work(struct daemon *daemon, unsigned i);
/* Tells the loop that it is done, which may add tasks. */
void daemon_done(struct daemon *daemon, unsigned i);

uint64_t daemon_now_ns(const struct daemon *daemon);
/* What is due by then happens on the way. */
void daemon_clock(struct daemon *daemon, uint64_t at_ns);

/* With no task left: NULL, or which invariant does not hold, or which charge was not given back. */
const char *daemon_check(struct daemon *daemon);

#endif
