/* The engine of a connection, and what it consists of. */
#ifndef LIB_CONNECTION_ENGINE_ENGINE_H
#define LIB_CONNECTION_ENGINE_ENGINE_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "client/lib/addresses/address.h"
#include "client/lib/connection/clock.h"
#include "client/lib/connection/memory.h"
#include "client/lib/messages/payload.h"
#include "client/lib/messages/request.h"
#include "client/lib/messages/staged.h"
#include "proto/budget.h"
#include "proto/frame.h"
#include "proto/npumem.pb-c.h"
#include "proto/spin.h"

/* watch.c. What an event loop watches in place of a socket that may be replaced by another: an epoll fd, readable
 * where there is something to do, that stays the same. A number that another socket is put at (dup2) would not do:
 * a set of epoll, which most loops sleep in, forgets it. */

struct watch {
	int fd;	    /* -1: the caller has not asked for it */
	int timer;  /* in its set */
	int socket; /* that is watched, or -1 */
	bool wants_write;
	int64_t at; /* that the timer is set to */
};

#define WATCH_INIT ((struct watch){.fd = -1, .timer = -1, .socket = -1, .at = CLOCK_NEVER})

/* Watches `socket` (-1: none yet). 0 or -errno, and nothing changed. */
int watch_open(struct watch *watch, int socket);
/* Each does nothing where it is not open. Another socket; before the one so far is closed. -errno: it is not
 * watched. */
int watch_replace(struct watch *watch, int socket);
/* Whether it is to be readable, too, where the socket can be written. */
void watch_write(struct watch *watch, bool wants_write);
/* It is to be readable from then on, too (clock.h), whatever the socket does, until it is set to another time. For
 * a caller that sleeps without a timeout, which is right while there is a daemon. */
void watch_timer(struct watch *watch, int64_t at);
void watch_close(struct watch *watch);

/* pending.c. The messages that are sent and not yet answered, by id: open addressing. Ids count up, so that a
 * connection whose answers come in order finds each at its home slot; one that stays open long costs the others a
 * probe. */

struct pending {
	uint64_t id;			/* 0: a free slot */
	struct npumem_request *request; /* NULL: the answer will be dropped */
	uint8_t *to;			/* where its data belong; NULL: it has none, or its request takes them */
	size_t bytes;
	struct kept *kept; /* the message, to be sent again; NULL: it is not */
	bool is_again;	   /* of the connection's own, to go on with a session: may not be refused */
};

struct pending_table {
	struct pending *slots;
	unsigned n_slots; /* a power of two, or 0 */
	unsigned used;
};

/* Room for one more: 0 or -ENOMEM. */
int pending_reserve(struct pending_table *table, const struct memory *memory);
/* Adds one whose id is > 0 and not in the table; there is room. */
void pending_add(struct pending_table *table, const struct pending *pending);
/* The one with this id, or NULL; until the table changes. */
struct pending *pending_find(const struct pending_table *table, uint64_t id);
/* Takes the one with this id out: false where there is none. */
bool pending_take(struct pending_table *table, uint64_t id, struct pending *pending);
void pending_deinit(struct pending_table *table, const struct memory *memory);

/* kept.c. A request as it was sent, kept until it is answered, so that it can be sent again to a daemon that took
 * the session over. */

/* What `again` may add to a message. */
enum { KEPT_AGAIN_BYTES = 3 };

struct kept {
	size_t bytes;	     /* of the message without its id and its data */
	const uint8_t *data; /* its end: borrowed of the caller, or `copy`; NULL: none */
	size_t data_bytes;
	uint8_t *copy;
	Npumem__V1__Request__CallCase call;
	uint64_t gives_back; /* the segment or list; 0: none */
	int fd;		     /* that goes with it, or -1 */
	bool was_sent;	     /* to a daemon, at least in part */
	uint8_t message[];
};

/* Packs a request, whose id is set, and which is so long packed: with `lends`, a write, whose data are borrowed
 * until kept_disown. `fd` is duplicated; -1: none. NULL: no memory, or no fd. */
struct kept *kept_new(const struct memory *memory, const Npumem__V1__Request *request, size_t packed, bool lends,
		      const void *data, size_t data_bytes, int fd);
/* NULL is allowed. */
void kept_free(struct kept *kept, const struct memory *memory);

/* Its data are copied, so that the caller's may go. 0 or -ENOMEM. */
int kept_disown(struct kept *kept, const struct memory *memory);

/* The size of its message, data included, and that of what kept_put writes: all but the data. */
size_t kept_size(const struct kept *kept, uint64_t id, bool again);
size_t kept_put(const struct kept *kept, uint64_t id, bool again, uint8_t *to);

/* inbox.c. What has arrived: complete frames one by one, and the payload of a frame that has not arrived yet
 * straight to where it belongs. */

struct inbox {
	struct buffer bytes;
	size_t cut;    /* what the first frame lacks of its length: its payload, and that one's tag */
	bool is_known; /* that the first frame has no payload that is wanted elsewhere */
	uint8_t *to;   /* the rest of its payload, which is still to come; NULL: is dropped */
	size_t left;
	uint64_t owner; /* the request that `to` belongs to */
};

enum inbox_result {
	INBOX_COMPLETE,	 /* *message, *bytes: until inbox_consume */
	INBOX_MORE,	 /* there is room for what comes next */
	INBOX_PAYLOAD,	 /* *payload: to be answered with inbox_direct */
	INBOX_TOO_LARGE, /* as frame_parse */
	INBOX_BAD_LENGTH,
	INBOX_NO_MEMORY,
};

enum inbox_result inbox_next(struct inbox *inbox, const struct memory *memory, const uint8_t **message,
			     size_t *bytes, struct payload *payload);
/* The payload of the frame of the last inbox_next: goes to `to`, or (NULL) remains in its message. */
void inbox_direct(struct inbox *inbox, const struct payload *payload, uint8_t *to);
/* Drops the complete frame. */
void inbox_consume(struct inbox *inbox);
/* What still comes for a request does not go to where it belongs any more. */
void inbox_disown(struct inbox *inbox, uint64_t request);

/* Receives without waiting. Bytes; 0: the end; -errno. *is_all: the socket had no more. */
ssize_t inbox_receive(struct inbox *inbox, int fd, bool *is_all);
/* Something of a frame has arrived, and not all. */
bool inbox_is_within(const struct inbox *inbox);
void inbox_deinit(struct inbox *inbox, const struct memory *memory);

/* outbox.c. What is to be written, in order: bytes of one's own, stretches of others' memory that are written from
 * where they lie, and fds that go with the first byte behind them. */

struct outbox {
	struct buffer bytes;
	uint64_t consumed; /* of own bytes, ever */
	struct outbox_piece *pieces;
	unsigned first, n_pieces, room;
};

/* Each: 0 or -ENOMEM, and nothing changed. */
int outbox_reserve(struct outbox *outbox, const struct memory *memory, size_t bytes, unsigned n_pieces);
/* Within what was reserved. The memory stays as it is until it is written, or outbox_disown. */
void outbox_borrow(struct outbox *outbox, const void *data, size_t bytes, const void *owner);
/* Takes over the fd. */
void outbox_fd(struct outbox *outbox, int fd);

bool outbox_is_empty(const struct outbox *outbox);
/* Writes what the socket takes without waiting. 0, or -errno where it takes no more, ever. */
int outbox_write(struct outbox *outbox, const struct memory *memory, int fd);

/* What is left to write of this owner's memory is copied, so that it may go. 0; -ENOMEM: it cannot be, and the
 * rest must not be written. */
int outbox_disown(struct outbox *outbox, const struct memory *memory, const void *owner);
void outbox_deinit(struct outbox *outbox, const struct memory *memory);

/* A session that outlives its connection: the token that the daemon gave for it, the search for a daemon that
 * continues the session, and the messages that this daemon gets before any new one.
 *
 * Where there is a token, all requests are kept until they are answered (kept.c). Where there is none, nothing is,
 * and a connection that ends is over. */

struct npumem;

enum { RESUME_TOKEN_BYTES_MAX = 64 };

enum resume_state {
	RESUME_NEVER, /* no token, and none will come */
	RESUME_ASKED, /* for a token */
	RESUME_READY,
	RESUME_AWAY,  /* without a connection */
	RESUME_KNOCKS /* connected, and not yet let in */
};

struct resume {
	enum resume_state state;
	struct address address;
	uint8_t token[RESUME_TOKEN_BYTES_MAX];
	size_t token_bytes;
	int64_t patience_ns, limit; /* for how long a daemon is looked for; until when, or CLOCK_NEVER */
	int64_t next;		    /* AWAY: the next try */
	unsigned n_tries;	    /* since the connection ended */
	unsigned n_fruitless;	    /* connections that ended before anything was answered */
	bool has_peer;
	uid_t peer;	 /* whose daemon it was */
	uint64_t asked;	 /* the request for a token, or with it */
	uint64_t lowest; /* no request below is unanswered */
	struct kept *subscribed;
	struct resume_segment *segments; /* that the daemon maps */
	unsigned n_segments, room;
	struct kept_keep *lists; /* that the daemon keeps */
	char why[128];		 /* why the last try failed */
};

/* Of a connection to `address`: asks for a token, with what is sent first. `patience_ms`: for how long another
 * daemon is looked for; 0: for as long as that keeps sessions. Where there is no memory for that, it does not. */
void resume_ask(struct npumem *npumem, const struct address *address, uint64_t patience_ms);
/* The connection is closed by its user: a session that would wait for another is not to. */
void resume_part(struct npumem *npumem);
/* From now on nothing is kept, and the connection's end is the end. */
void resume_forget(struct npumem *npumem);

/* Requests are kept. */
static inline bool resume_keeps(const struct resume *resume)
{
	return resume->state != RESUME_NEVER;
}
/* Requests wait for a connection that takes them. */
static inline bool resume_is_away(const struct resume *resume)
{
	return resume->state >= RESUME_AWAY;
}
/* The value of answered_below in a request; 0: none. */
uint64_t resume_below(struct npumem *npumem, Npumem__V1__Request__CallCase call);

/* The stream has ended, for `why`. True: another is looked for; false: it is over. */
bool resume_lost(struct npumem *npumem, const char *why);
/* The daemon answered a request UNAVAILABLE and `going_down`. True: it counts as not answered, and the stream is
 * waited for to end. */
bool resume_going(struct npumem *npumem, const struct pending *pending);
/* When resume_turn has something to do, or CLOCK_NEVER. */
int64_t resume_due(const struct resume *resume);
/* Looks for a daemon where it is time to, and breaks the connection where it is too late. */
void resume_turn(struct npumem *npumem);

/* Takes the answer to its own request; false: it is another's. Breaks the connection where that cannot be. */
bool resume_takes(struct npumem *npumem, const Npumem__V1__Response *response);
/* A request is answered: updates what a new daemon gets first, and frees the kept message. */
void resume_settle(struct npumem *npumem, struct pending *pending, const Npumem__V1__Response *response);
/* A request ends before its answer, and the caller's memory in it is no longer used. If there is no memory for a
 * copy, no request is kept from now on. */
void resume_disown(struct npumem *npumem, struct pending *pending);

/* engine.c. The engine of a connection: messages out, answers in, never waiting unless asked to. Knows no call by
 * name.
 *
 * Invariant: once broken, a connection stays broken, and all requests get the reason. One that is closed from
 * within a callback is freed when the outermost engine_turn or engine_wait returns. */

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

/* ---- for the engine itself ---- */

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
