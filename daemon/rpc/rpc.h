/* Requests to replies: bytes in, bytes out. Knows messages and the service, no sockets and no loop.
 * Nothing a client sends can do more than be answered with a status, and nothing half-done stays behind one. */
#ifndef RPC_RPC_H
#define RPC_RPC_H

#include "daemon/rpc/buffer.h"
#include "daemon/rpc/executor.h"
#include "daemon/rpc/prepare.h"
#include "daemon/service/session.h"
#include "daemon/service/tensors.h"
#include "proto/budget.h"

/* An answered request, for whoever looks on. */
struct rpc_answer {
	const struct session *session;
	const char *call;
	int status;
	const char *message; /* why it was refused, with what the client called things; else empty */
	uint64_t bytes_in, bytes_out, ns;
};

/* One per daemon: what all requests use in turn, so that an ordinary one takes no memory from the heap. */
struct rpc {
	struct service *service;
	const struct heap *heap;
	void (*answered)(const struct rpc_answer *answer); /* told of each; NULL: nobody looks on */
	struct executor executor; /* submit NULL: there are no threads, and everything runs at once */
	uint64_t (*now_ns)(void); /* a monotonic clock, for any thread; NULL: no times are told */
	/* Asks for rpc_tick at that time, instead of what was asked for before; UINT64_MAX: never. NULL: no
	 * deadlines. */
	void (*set_alarm)(void *ctx, uint64_t at_ns);
	void *alarm_ctx;
	uint64_t alarm_ns; /* that was asked for */
	uint64_t send_ns;  /* no more events before then; 0: there are none that wait */
	uint64_t look_ns;  /* whose progress is to be told is looked for then; UINT64_MAX: there is none */
	bool is_sending;   /* events */
	uint64_t serve_ns; /* nobody in line is tried before then; 0: there is nobody left over */
	struct budget budget;
	bool has_many_fields; /* the latest message had, and was not unpacked */
	struct npumem_error error;
	struct prepare_op prepared;
	struct device_request requests[TENSORS_ALLOC_MAX];
	const char *names[TENSORS_ALLOC_MAX];
	struct tensor *tensors[TENSORS_ALLOC_MAX];
};

/* The other end of a connection: whose requests may be answered later. The caller owns the storage. */
struct rpc_peer {
	struct session *session;
	/* One delimited Response that was not ready when its request came; takes the buffer's bytes, or leaves
	 * them. */
	void (*deliver)(void *ctx, struct buffer *reply);
	/* Whether events have to wait, as the client does not read; then rpc_peer_ready when it has. NULL: never.
	 */
	bool (*is_behind)(void *ctx);
	/* After rpc_peer_close: nothing runs for the session any more, and it must end now. The storage of the
	 * peer stays until the call that led here has returned. */
	void (*drained)(void *ctx);
	/* The long message that was received has been read. NULL: none is received. */
	void (*read)(void *ctx);
	void *ctx;

	/* rpc's own; zero at first. */
	bool is_reading;
	struct rpc *rpc;
	struct job *jobs;		      /* unfinished requests */
	struct events_subscriber *subscriber; /* NULL: wants no events */
	unsigned n_jobs;
	size_t job_bytes; /* of their messages and replies */
	bool is_closing, is_drained;
	struct order_entry ending; /* of the session, in the order of operations */
	struct ending_part *part;
};

/* `service` and `heap` outlive it. Large: not for the stack. */
void rpc_init(struct rpc *rpc, struct service *service, const struct heap *heap);
void rpc_deinit(struct rpc *rpc);

/* Answers one message (without its length), appending one delimited Response to `out`. Whatever the message is,
 * the connection can go on. 0; -ENOMEM: not even an error could be written, and nothing was done. */
int rpc_handle(struct rpc *rpc, struct session *session, const uint8_t *message, size_t bytes, struct buffer *out);

/* The same for a peer whose requests may be long or have to wait for others: those are answered by peer->deliver.
 */
int rpc_receive(struct rpc *rpc, struct rpc_peer *peer, const uint8_t *message, size_t bytes, struct buffer *out);

/* The same for a message that takes long to unpack, which is done elsewhere. `message` is from rpc->heap, and
 * rpc's from now on. Until peer->is_reading is false again nothing more may be received from this peer; then
 * peer->read is called.
 */
int rpc_receive_long(struct rpc *rpc, struct rpc_peer *peer, uint8_t *message, size_t bytes, struct buffer *out);

/* Answers a message of which only the beginning came, in `head`, and nothing more will: with `error`, and the id
 * that the beginning tells. 0 or -ENOMEM. */
int rpc_refuse_part(struct rpc *rpc, struct session *session, const struct npumem_error *error,
		    const uint8_t *head, size_t bytes, struct buffer *out);

/* The client is gone: what waits is dropped, what runs is stopped where it can be; nothing is delivered any more.
 * peer->drained is called once, at once or later. */
void rpc_peer_close(struct rpc *rpc, struct rpc_peer *peer);

/* The client has read. */
void rpc_peer_ready(struct rpc *rpc, struct rpc_peer *peer);

/* The daemon goes down: what waits for room is answered UNAVAILABLE. */
void rpc_peer_end_waiting(struct rpc *rpc, struct rpc_peer *peer);

/* What is due by the clock. */
void rpc_tick(struct rpc *rpc);

/* What follows from anything that happened: gives freed room to those who wait for it, sends
 * events. For rpc's own files, where
 * no reply is being written. */
void rpc_settle(struct rpc *rpc);

/* Appends a Response with id 0: why a connection ends. 0 or -ENOMEM. */
int rpc_refuse(struct buffer *out, int status, const char *message);

#endif
