/* System memory that clients share: a memfd becomes a mapping that its owner cannot make fault. */
#ifndef SERVER_MEMORY_H
#define SERVER_MEMORY_H

#include "daemon/server/connections/channel.h"
#include "daemon/service/segments.h"

/* The source of a connection's segments: the fds of its channel, which outlives it. */
struct segments_source memory_source(struct channel *channel);

#endif
