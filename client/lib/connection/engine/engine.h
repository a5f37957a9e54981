/* The engine of a connection: messages out, answers in, never waiting unless asked to. Knows no call by name.
 *
 * Invariant: once broken, a connection stays broken, and all requests get the reason. One that is closed from
 * within a callback is freed when the outermost engine_turn or engine_wait returns. */
#ifndef CLIENT_LIB_ENGINE_H
#define CLIENT_LIB_ENGINE_H

#include <signal.h>
#include <sys/types.h>

#include "client/lib/connection/engine/inbox.h"
#include "client/lib/connection/engine/outbox.h"
#include "client/lib/connection/engine/pending.h"
#include "client/lib/connection/engine/resume.h"
#include "client/lib/connection/engine/watch.h"
#include "client/lib/messages/request.h"
#include "client/lib/messages/staged.h"
#include "proto/budget.h"
#include "proto/spin.h"

struct npumem {
	const struct memory *memory;
	int fd; /* -1: there is none, and one is looked for */
	struct watch watch;
	struct resume resume;
	struct address remote; /* of another host; else its host is empty */
	bool is_greeted;       /* what came first from there is a daemon's */
	struct staged staged;
	struct outbox out;
	struct inbox in;
	struct pending_table pending;
	struct budget budget;
	struct result *results; /* all that were handed out and not given back */
	struct npumem_request *first_request, *last_request, *free_requests;
	unsigned n_requests; /* live ones */
	uint64_t last_id;
	uint64_t last_list;    /* ids of kept lists */
	uint32_t call_ms;      /* what a call may take; 0: as long as it does */
	int64_t next_deadline; /* of a request: no earlier than this */
	struct spin spin;
	bool no_more_writes; /* a write failed: what is left to read may say why */
	bool dispatching;    /* callbacks run */
	bool closing;
	volatile sig_atomic_t interrupted; /* npumem_interrupt */
	struct npumem_error broken;	   /* status UNAVAILABLE once the connection is over */
	struct npumem_error ending;	   /* the daemon's own reason for ending it, if it gave one */
	npumem_event_callback *on_event;   /* NULL: none */
	void *event_context;
	pid_t child;   /* a private daemon or ssh, or 0 */
	int child_log; /* what it wrote to stderr, or -1 */
	off_t said;    /* of that, before the daemon's first message: no reason why the connection ends */
};

/* Takes over `fd`, a connected socket, also where it fails. `options` are complete. 0 or -ENOMEM. */
int engine_new(const struct memory *memory, int fd, const struct npumem_options *options, struct npumem **out);
/* Answers all waiting requests with CANCELLED, closes the socket, ends what was handed out, and frees; from within
 * a callback, when that has returned. */
void engine_close(struct npumem *npumem);

/* Queues a message of a request (NULL: its answer is dropped); its id is filled in. Small ones wait in the
 * queue for the next engine_turn, so that a pipeline costs few system calls. As request_send. */
int engine_send(struct npumem *npumem, struct npumem_request *request, Npumem__V1__Request *message,
		const struct request_extra *extra, struct npumem_error *error);
/* Asks for a message to be taken back. Where there is no memory for that, it is not. */
void engine_cancel(struct npumem *npumem, uint64_t id);

/* What waits to be written of this owner's memory is copied, so that it may go. */
void engine_let_go(struct npumem *npumem, const void *owner);
bool engine_wants_write(const struct npumem *npumem);
/* When engine_turn has something to do, whatever the socket does; or CLOCK_NEVER. */
int64_t engine_due(const struct npumem *npumem);

/* Writes and reads what goes without waiting, and hands out the answers. 0; UNAVAILABLE; CANCELLED: a callback has
 * closed the connection, which is gone; INVALID from within a callback. */
int engine_turn(struct npumem *npumem, struct npumem_error *error);
/* The same, but first waits until there is something to do. */
int engine_wait(struct npumem *npumem, struct npumem_error *error);

/* Breaks the connection for a reason; the waiting requests are answered at the next turn. Returns UNAVAILABLE. */
int engine_break(struct npumem *npumem, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Why it broke. */
int engine_error(const struct npumem *npumem, struct npumem_error *error);

/* ---- for itself and resume.h ---- */

/* What the socket takes, or has, without waiting. *any: something came. */
void engine_write(struct npumem *npumem);
void engine_receive(struct npumem *npumem, bool *any);

/* Closes the socket, ends ssh, and drops what was to be written and what has come in part. */
void engine_hang_up(struct npumem *npumem);
/* Takes over a connected socket after that. 0, or -errno and it has not. */
int engine_connected(struct npumem *npumem, int fd);

/* Each queues a message, also while requests wait: 0 or -ENOMEM. _ask: a message of the connection itself, with an
 * fd that is duplicated (-1: none); `is_again`: its answer is expected, and dropped. _ask_kept: a kept message in
 * the same way. _send_again: an unanswered request, unchanged. */
int engine_ask(struct npumem *npumem, Npumem__V1__Request *message, int fd, bool is_again);
int engine_ask_kept(struct npumem *npumem, struct kept *kept);
int engine_send_again(struct npumem *npumem, const struct pending *pending);

#endif
