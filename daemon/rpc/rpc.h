/* Requests to replies: bytes in, bytes out. Knows messages and the service, no sockets and no loop.
 * Nothing a client sends can do more than be answered with a status, and nothing half-done stays behind one. */
#ifndef RPC_RPC_H
#define RPC_RPC_H

#include "daemon/rpc/reply.h"
#include "daemon/rpc/core.h"

/* `service` and `heap` outlive it. */
void rpc_init(struct rpc *rpc, struct service *service, const struct heap *heap);
/* Sessions that wait for their clients are left in the store. */
void rpc_deinit(struct rpc *rpc);

/* Before anything is received, with the clock set: has the service as its store was left (service/kept/recover.h),
 * whose sessions wait for their clients from now on. 0 or -errno. */
int rpc_recover(struct rpc *rpc, const struct store_report *found,
		void (*say)(void *ctx, bool is_loss, const char *line), void *ctx);

/* Takes one message (without its length), which is the caller's: answered by peer->deliver, before this returns or
 * later. Whatever the message is, the connection can go on. 0; -ENOMEM: not even an error could be written, and
 * nothing was done. */
int rpc_receive(struct rpc *rpc, struct rpc_peer *peer, const uint8_t *message, size_t bytes);
/* The same for a message from rpc->heap, which is rpc's from now on. */
int rpc_receive_owned(struct rpc *rpc, struct rpc_peer *peer, uint8_t *message, size_t bytes);

/* After work of service->queue was run: tries waiting allocations, sends events, sets the alarm. */
void rpc_settle(struct rpc *rpc);

/* Answers a message of which only the beginning came, in `head`, and nothing more will: with `error`, and the id
 * that is in the beginning. 0 or -ENOMEM. */
int rpc_refuse_part(struct rpc *rpc, struct rpc_peer *peer, const struct npumem_error *error, const uint8_t *head,
		    size_t bytes);

/* The client is gone: what waits is dropped, what runs is stopped where it can be; nothing is delivered any more.
 * peer->drained is called once, at once or later. */
void rpc_peer_close(struct rpc *rpc, struct rpc_peer *peer);

/* All that was delivered is in the client's socket. */
void rpc_peer_sent(struct rpc_peer *peer);

/* The client has read. */
void rpc_peer_ready(struct rpc *rpc, struct rpc_peer *peer);

/* The daemon goes down: what waits for room is answered UNAVAILABLE (field: going_down). */
void rpc_peer_end_waiting(struct rpc *rpc, struct rpc_peer *peer);

/* With a durable state: a round is on the disk. */
void rpc_synced(struct rpc *rpc);

/* What is due by the clock. */
void rpc_tick(struct rpc *rpc);

/* Appends a Response with id 0: why a connection ends. 0 or -ENOMEM. */
int rpc_refuse(struct buffer *out, int status, const char *message);

#endif
