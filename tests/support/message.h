/* The beginning of an initializer of a protobuf message: Npumem__V1__Ref ref = {MESSAGE(ref), .handle = 5}; */
#ifndef SUPPORT_MESSAGE_H
#define SUPPORT_MESSAGE_H

#include "proto/npumem.pb-c.h"

#define MESSAGE(name) PROTOBUF_C_MESSAGE_INIT(&npumem__v1__##name##__descriptor)

#endif
