/* Checks of what only the wire can get wrong, before it becomes a struct of the layers below. */
#ifndef PROTO_WIRE_H
#define PROTO_WIRE_H

#include <npumem/layout.h>

#include "proto/npumem.pb-c.h"

/* 0; INVALID naming `what` and the value, where the enum has no such value. */
int wire_check_enum(const ProtobufCEnumDescriptor *descriptor, const char *what, int value,
		    struct npumem_error *error);

/* A spec with values of its enums, and no number below 0 where NPUMEM_ANY would be read into it. 0 or INVALID. */
int wire_spec(const Npumem__V1__Spec *message, struct npumem_spec *spec, struct npumem_error *error);

#endif
