/* The time that timeouts are measured by. */
#ifndef LIB_CONNECTION_CLOCK_H
#define LIB_CONNECTION_CLOCK_H

#include <stdint.h>
#include <time.h>

#define CLOCK_NEVER INT64_MAX

/* Nanoseconds, monotonic. */
static inline int64_t clock_now(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* So many milliseconds from now on; 0: never. */
static inline int64_t clock_after(uint32_t ms)
{
	return ms ? clock_now() + (int64_t)ms * 1000000 : CLOCK_NEVER;
}

/* Whole milliseconds from now until then, rounded up, as poll takes them; -1: never. */
static inline int clock_left(int64_t then)
{
	if (then == CLOCK_NEVER)
		return -1;
	int64_t left = (then - clock_now() + 999999) / 1000000;
	return left < 0 ? 0 : left > INT32_MAX ? INT32_MAX : (int)left;
}

/* spin.c. For how long a call looks for its answer before it sleeps (proto/spin.h). */

/* `us` as npumem_options.spin_us. Nanoseconds; 0: never. */
uint64_t spin_most_ns(uint32_t us);

#endif
