/* Looking again for a moment before sleeping: a small answer arrives sooner than a sleeper wakes up. Pays where
 * another core makes the answer meanwhile; stops by itself where it does not. */
#ifndef CLIENT_LIB_SPIN_H
#define CLIENT_LIB_SPIN_H

#include <stdbool.h>
#include <stdint.h>

struct spin {
	int64_t most;  /* nanoseconds; 0: never */
	unsigned hope; /* how many more times it is tried in vain */
	unsigned rest; /* how many waits until it is tried again */
};

/* `us` as npumem_options.spin_us. */
void spin_init(struct spin *spin, uint32_t us);
/* How long to look this time: nanoseconds, or 0. */
int64_t spin_begin(struct spin *spin);
/* Whether that paid: an answer came meanwhile. */
void spin_end(struct spin *spin, bool paid);

#endif
