/* Requests to replies: bytes in, bytes out. Knows messages and the service, no sockets and no loop.
 * Nothing a client sends can do more than be answered with a status, and nothing half-done stays behind one. */
#ifndef RPC_RPC_H
#define RPC_RPC_H

#include "daemon/rpc/buffer.h"
#include "daemon/rpc/prepare.h"
#include "daemon/service/session.h"
#include "daemon/service/tensors.h"
#include "proto/budget.h"

/* One per daemon: what all requests use in turn, so that an ordinary one takes no memory from the heap. */
struct rpc {
	struct service *service;
	const struct heap *heap;
	struct budget budget;
	struct npumem_error error;
	struct prepare_op prepared;
	struct device_request requests[TENSORS_ALLOC_MAX];
	const char *names[TENSORS_ALLOC_MAX];
	struct tensor *tensors[TENSORS_ALLOC_MAX];
};

/* `service` and `heap` outlive it. Large: not for the stack. */
void rpc_init(struct rpc *rpc, struct service *service, const struct heap *heap);
void rpc_deinit(struct rpc *rpc);

/* Answers one message (without its length), appending one delimited Response to `out`. Whatever the message is,
 * the connection can go on. 0; -ENOMEM: not even an error could be written, and nothing was done. */
int rpc_handle(struct rpc *rpc, struct session *session, const uint8_t *message, size_t bytes, struct buffer *out);

/* Appends a Response with id 0: why a connection ends. 0 or -ENOMEM. */
int rpc_refuse(struct buffer *out, int status, const char *message);

#endif
