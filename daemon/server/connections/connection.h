/* A client's connection: its session, its input, its replies, and its charges. */
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
	struct workers *workers;	 /* workers_hear: which users send */
	struct closer *closer;		 /* closes connections, and descriptors of clients */
	const struct identity *identity; /* NULL: there is one client, and its identity does not matter */
	uint64_t frame_ms, drain_ms;	 /* time that a client has to send a frame, and to read its replies */
	struct store *store;	   /* durable: replies wait for it. NULL: they do not */
	bool has_lost_state;	   /* no reply may be sent any more */
	void (*gone)(void *ctx);   /* a connection has left `connections` */
	void *ctx;
	struct connection *connections;
	struct connection *waiting; /* those that wait for the disk */
	struct outbox_pool pool;
	/* Used by one connection at a time, so that an idle one has no buffer. */
	uint8_t input[INPUT_PART_BYTES + CONNECTION_READ_BYTES];
};

struct connection {
	struct channel channel; /* first, so that their addresses are the same */
	struct connection_host *host;
	struct session session;
	struct rpc_peer peer;
	struct segments_source memory;
	struct connection *next, *prev;
	struct connection *next_waiting, *prev_waiting;
	struct fair_work turn;	 /* queued while it has requests to receive or handle */
	struct turns_entry last; /* queued while connection_settle is needed */
	struct input input;
	struct outbox outbox;
	struct ripening ripening;      /* of the outbox */
	struct pace arriving, leaving; /* of the incomplete frame; of replies */
	uint64_t charged_bytes;	       /* to its uid, for input and outbox */
	/* allowed_fds: how many of charged_fds passed the uid's limit. */
	unsigned charged_fds, allowed_fds;
	bool is_readable; /* as the kernel has reported */
	bool has_frames;  /* whole frames are kept */
	bool is_paused;	  /* nothing is received until it has read replies, or its requests are done */
	bool is_sending;  /* replies wait for the client to read; its time for that has begun */
	bool is_waiting;  /* in the host's list: replies wait for the disk */
	bool may_send;	  /* the disk or the client is ready for more replies: its next turn sends some */
	bool is_late;	  /* its frame, or its reading, was late: its next turn checks again */
	uint64_t round;	  /* the round of the disk that it waited for last (store_want) */
	bool is_behind;	  /* events wait until it has read its replies */
	bool is_ending;	  /* to be closed when all replies are sent */
	bool is_broken;	  /* to be closed, as work of its user */
	bool is_closed;
};

/* Adds a connection, with its session and channel, to its host. */
void connection_init(struct connection *connection);

/* Drops the client at once; session, socket and struct go when nothing runs for it any more. */
void connection_close(struct connection *connection);
/* Ends the connection: sends the reason in a Response of id 0, and logs it; earlier requests are answered. */
void connection_refuse(struct connection *connection, int status, const char *reason);
/* The connection is closed when nothing uses it; `reason` is logged. */
void connection_break(struct connection *connection, const char *reason);

/* True: the client must read replies, or wait for its requests, before more is received from it. */
bool connection_is_full(const struct connection *connection);
/* Makes the charge equal to the memory and descriptors that are held now. */
void connection_charge(struct connection *connection);
/* Queues its requests as work of its user. */
void connection_queue(struct connection *connection);
/* At the end of a turn: sends replies, receives again, or queues the connection's end. */
void connection_settle(struct connection *connection);

/* The disk has synced more, or has failed. */
void connection_all_synced(struct connection_host *host);

/* Bytes that the client has not taken. */
static inline size_t connection_unsent(const struct connection *connection)
{
	return outbox_unsent(&connection->outbox);
}

#endif
