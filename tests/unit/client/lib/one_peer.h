/* Each test of a file has a peer of its own, which may be another one within it. */
#ifndef TESTS_CLIENT_ONE_PEER_H
#define TESTS_CLIENT_ONE_PEER_H

#include "tests/unit/client/lib/peer.h"

/* A request in flight would have its callback at the end, with pointers to variables of the test that no longer
 * exist. A test that leaves such requests closes the connection itself. */
static inline void peer_end(struct peer *of)
{
	ck_assert(!of->npumem || !npumem_in_flight(of->npumem));
	peer_close(of);
}

FIXTURE_OBJECT(struct peer, peer, peer = peer_open(), peer_end(&peer))

static inline void peer_again(void)
{
	peer_end(&peer);
	peer = peer_open();
}

#endif
