/* Mutations of a message that keep it one: a field more, fewer, or of another value, as deep as it goes. */
#ifndef TESTS_FUZZ_MUTATE_H
#define TESTS_FUZZ_MUTATE_H

#include <protobuf-c/protobuf-c.h>
#include <stddef.h>
#include <stdint.h>

/* Changes n bytes in place to at most `room`; returns how many they are then. What is no message of the type
 * becomes a random one. */
size_t mutate_message(const ProtobufCMessageDescriptor *type, uint8_t *bytes, size_t n, size_t room,
		      uint64_t *random);

#endif
