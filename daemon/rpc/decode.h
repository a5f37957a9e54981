/* A message's bytes to a Request. */
#ifndef RPC_DECODE_H
#define RPC_DECODE_H

#include <npumem/types.h>

#include "proto/decode.h"
#include "proto/npumem.pb-c.h"

/* Reads a message into the budget, which is begun anew; payloads stay where the message is. 0; INVALID (empty,
 * malformed, or with a text of more than DECODE_TEXT_BYTES_MAX), RESOURCE_EXHAUSTED (more fields or memory than a
 * request may have). *unknown: its first field that no Request has, which may be a later version's call; or 0. */
int decode_request(struct budget *budget, const uint8_t *message, size_t bytes,
		   const Npumem__V1__Request **request, const struct decode_borrowed **borrowed, uint32_t *unknown,
		   struct npumem_error *error);

/* The id of a message that cannot be read, where it comes first, as every protobuf runtime writes it; or 0. */
uint64_t decode_salvage_id(const uint8_t *message, size_t bytes);

#endif
