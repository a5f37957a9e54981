/* The structs that protoc-c generates to bytes, in one pass: what protobuf_c_message_pack of 1.4 writes, without
 * asking each message inside for its size beforehand. */
#ifndef PROTO_ENCODE_H
#define PROTO_ENCODE_H

#include <protobuf-c/protobuf-c.h>
#include <stddef.h>
#include <stdint.h>

/* Writes a message to where it has room, and returns its size. */
size_t encode_message(const ProtobufCMessage *message, uint8_t *to);

#endif
