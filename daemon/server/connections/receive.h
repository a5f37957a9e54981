/* A connection's turn: receives bytes, finds the frames in them, and passes requests to rpc. */
#ifndef SERVER_RECEIVE_H
#define SERVER_RECEIVE_H

#include "daemon/server/connections/connection.h"

/* Handles kept frames, or receives once and handles the new bytes: at most one share of a turn. */
void receive_turn(struct connection *connection);

/* False: the frame that has begun is late. */
bool receive_is_in_time(const struct connection *connection, uint64_t now_ms);

#endif
