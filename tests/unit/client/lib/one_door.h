/* Each test of a file has a daemon at an address whose token the connection has, or another one within it. */
#ifndef TESTS_CLIENT_ONE_DOOR_H
#define TESTS_CLIENT_ONE_DOOR_H

#include "tests/unit/client/lib/door.h"

/* A request in flight would have its callback at the end, with pointers to variables of the test that no longer
 * exist. A test that leaves such requests closes the connection itself. */
static inline void door_end(struct door *of)
{
	ck_assert(!of->peer.npumem || !npumem_in_flight(of->peer.npumem));
	door_close(of);
}

FIXTURE_OBJECT(struct door, door, door_open(&door), door_end(&door))

/* One that has given no token yet. */
static inline void door_again(uint64_t resume_ms)
{
	door_end(&door);
	door_open_with(&door, &memory_libc, resume_ms);
}

#endif
