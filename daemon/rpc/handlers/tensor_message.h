/* What a session is told of a tensor, as a message. Points into the tensor and into itself, so that neither may
 * change or move before it is packed; appends nothing. */
#ifndef RPC_TENSOR_MESSAGE_H
#define RPC_TENSOR_MESSAGE_H

#include "daemon/rpc/calls/call.h"
#include "proto/convert.h"

enum {
	TENSOR_MESSAGE_BYTES_MAX = 1024, /* a bound for one with its tag and length */
	TENSOR_MESSAGE_EXPECTED_BYTES = 140,
};

struct tensor_message {
	Npumem__V1__Tensor message;
	struct convert_place place;
	struct tensors_description description;
	Npumem__V1__Grant grants[RECORD_GRANTS_MAX], *pointers[RECORD_GRANTS_MAX];
};

/* `state`: what device_state says, where that is known; NULL: it is looked at here, which may take long. Returns
 * to->message.base. */
const ProtobufCMessage *tensor_message(const struct call *call, const struct tensor *tensor,
				       const struct device_state *state, struct tensor_message *to);

#endif
