/* For how long a call looks for its answer before it sleeps (proto/spin.h). */
#ifndef CLIENT_LIB_SPIN_H
#define CLIENT_LIB_SPIN_H

#include <stdint.h>

/* `us` as npumem_options.spin_us. Nanoseconds; 0: never. */
uint64_t spin_most_ns(uint32_t us);

#endif
