/* The order in which requests begin to run: one that has begun goes before those that it conflicts with. */
#ifndef TESTS_RANDOM_BEGUN_H
#define TESTS_RANDOM_BEGUN_H

#include <stdint.h>

struct session;

/* Told of each request of any daemon of this process. NULL: nobody. */
void begun_tell(void (*to)(void *ctx, const struct session *session, uint64_t id), void *ctx);

#endif
