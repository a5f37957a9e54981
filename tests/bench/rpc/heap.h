/* How often the daemon asks the heap for memory, a request: counted by a library that is preloaded into it. */
#ifndef BENCH_RPC_HEAP_H
#define BENCH_RPC_HEAP_H

#include "tests/bench/support/peer.h"

/* Calls tell(name, calls of malloc and the like per request) for each kind of request, with a daemon of
 * `arguments` on `path` of its own. False: the program or the library is not there. */
bool heap_measure(const char *const *arguments, const char *path, const char *library,
		  void (*tell)(const char *name, double calls));

#endif
