/* A message that comes twice, where there is one place for it. */
#ifndef PROTO_MERGE_H
#define PROTO_MERGE_H

#include "proto/borrowed.h"

/* What of `earlier` counts beside `later`, both of one type, becomes part of `later`, as protobuf-c 1.4 has it:
 * lists are joined; of a oneof, a string, bytes and an inner message what came earlier stays where nothing came
 * later; a plain number is the later message's even where that has not said it. `earlier` is not used any more.
 * `borrowed` gets the payloads that move. False: the budget ends, or a oneof has nothing in either. */
bool merge_messages(struct budget *budget, struct borrowed **borrowed, ProtobufCMessage *earlier,
		    ProtobufCMessage *later);

#endif
