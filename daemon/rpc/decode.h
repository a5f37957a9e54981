/* A message's bytes to a Request. */
#ifndef RPC_DECODE_H
#define RPC_DECODE_H

#include "daemon/rpc/calls/call.h"

/* Reads the call's message into its budget, which is begun anew; payloads stay where the message is. Sets request,
 * method and id. 0, or a status that call->error explains: INVALID (empty, malformed, or with a text of more than
 * DECODE_TEXT_BYTES_MAX), RESOURCE_EXHAUSTED (more fields or memory than a request may have), UNIMPLEMENTED, or
 * what lists_expand says. */
int decode_call(struct call *call);

/* The id of a message that cannot be read, where it comes first, as every protobuf runtime writes it; or 0. */
uint64_t decode_salvage_id(const uint8_t *message, size_t bytes);

#endif
