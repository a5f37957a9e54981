/* A client's connection: its session, what it has sent, what it is told, and what it is charged for. */
#ifndef SERVER_CONNECTION_H
#define SERVER_CONNECTION_H

#include "daemon/rpc/rpc.h"
#include "daemon/server/connections/channel.h"
#include "daemon/server/connections/identity.h"
#include "daemon/server/connections/input.h"
#include "daemon/server/connections/outbox.h"
#include "daemon/server/connections/ripening.h"
#include "daemon/server/loop/pace.h"
#include "daemon/server/loop/turns.h"
#include "daemon/server/loop/workers.h"
#include "daemon/service/segments.h"
#include "daemon/service/session.h"

enum { CONNECTION_READ_BYTES = 64 << 10 };

/* What all connections of a daemon use. */
struct connection_host {
	uv_loop_t *loop;
	const struct heap *heap;
	struct service *service;
	struct rpc *rpc;
	struct turns *turns;
	struct workers *workers;	 /* learn which users send */
	struct closer *closer;		 /* closes connections, and what clients pass */
	const struct identity *identity; /* NULL: there is one client, and its identity does not matter */
	uint64_t frame_ms, drain_ms;	 /* what a client may take to send a frame, and to read its replies */
	struct store *store;	   /* durable: replies wait for it. NULL: they do not */
	bool has_lost_state;	   /* nothing may be told any more */
	void (*gone)(void *ctx); /* one of them is: it is not in `connections` any more */
	void *ctx;
	struct connection *connections;
	struct connection *waiting; /* some of them: for the disk */
	struct outbox_pool pool;
	/* Used by one at a time, so that an idle one costs nothing. */
	uint8_t input[INPUT_PART_BYTES + CONNECTION_READ_BYTES];
};

struct connection {
	struct channel channel; /* first, so that the one is the other */
	struct connection_host *host;
	struct session session;
	struct rpc_peer peer;
	struct segments_source memory;
	struct connection *next, *prev;
	struct connection *next_waiting, *prev_waiting;
	struct fair_work turn;	 /* it has requests to be handled, or to be received */
	struct turns_entry last; /* it has something to send, or to be looked after */
	struct input input;
	struct outbox outbox;
	struct ripening ripening;      /* of what is in the outbox */
	struct pace arriving, leaving; /* of the frame that is not complete; of replies */
	uint64_t charged_bytes;	       /* to its uid, for input and outbox */
	unsigned charged_fds;
	bool is_readable; /* says the kernel */
	bool has_frames;  /* whole frames are kept */
	bool is_paused;	  /* nothing is taken from it until it has read, or what it has asked for is done */
	bool is_sending;  /* replies that may leave and that the client has not taken; since then it has a time for it */
	bool is_waiting;  /* in the host's list: replies wait for the disk */
	bool may_send;	  /* the disk or the client has taken what replies wait for: its next turn sends some */
	bool is_late;	  /* its frame, or its reading, was late: its next turn looks again */
	uint64_t round;	  /* of the disk, that it waited for last: store_want */
	bool is_behind;	  /* events wait until it has read */
	bool is_ending;	  /* to be closed when all is answered and sent */
	bool is_broken;	  /* to be closed, as work of its user */
	bool is_closed;
};

/* Adds it, with its session and channel, to its host's. */
void connection_init(struct connection *connection);

/* Drops the client at once; session, socket and struct go when nothing runs for it any more. */
void connection_close(struct connection *connection);
/* Tells the client with a Response of id 0, and the log, why the connection ends; all that was asked before is
 * answered. */
void connection_refuse(struct connection *connection, int status, const char *reason);
/* To be closed when nothing uses it; `reason` is logged. */
void connection_break(struct connection *connection, const char *reason);

/* True where the client must read, or wait for what it has asked for, before more is taken from it. */
bool connection_is_full(const struct connection *connection);
/* Charges the uid for what is held now, neither more nor less. */
void connection_charge(struct connection *connection);
/* Queues its requests as work of its user. */
void connection_queue(struct connection *connection);
/* Before the loop waits: sends, goes on, or queues its end. */
void connection_settle(struct connection *connection);

/* The disk has more, or has failed. */
void connection_all_synced(struct connection_host *host);

/* Bytes that the client has not taken. */
static inline size_t connection_unsent(const struct connection *connection)
{
	return outbox_unsent(&connection->outbox);
}

#endif
