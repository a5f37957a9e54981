/* A session that outlives its connection: the token that the daemon gave for it, the search for a daemon that
 * continues the session, and the messages that this daemon gets before any new one.
 *
 * Where there is a token, all requests are kept until they are answered (kept.h). Where there is none, nothing is,
 * and a connection that ends is over. */
#ifndef CLIENT_LIB_RESUME_H
#define CLIENT_LIB_RESUME_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "client/lib/addresses/address.h"
#include "client/lib/connection/engine/kept.h"
#include "client/lib/connection/engine/pending.h"
#include "proto/npumem.pb-c.h"

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

#endif
