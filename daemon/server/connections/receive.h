/* A connection's turn: bytes from its socket, frames out of them, requests to rpc. */
#ifndef SERVER_RECEIVE_H
#define SERVER_RECEIVE_H

#include "daemon/server/connections/connection.h"

/* Handles frames that were kept, or receives once and handles what came: as much as is one's share of a turn. */
void receive_turn(struct connection *connection);

/* False where the frame that has begun has had its time. */
bool receive_is_in_time(const struct connection *connection, uint64_t now_ms);

#endif
