/* The largest batch of a network: the greatest N of its input with which it fits. */
#ifndef CTL_CORE_NETWORK_BATCHES_H
#define CTL_CORE_NETWORK_BATCHES_H

#include "client/ctl/core/network/planning/lives.h"

struct batches {
	int64_t most; /* the largest N that fits; 0: none does */
	int64_t peak; /* bytes per NPU with it */
	int64_t next; /* the peak of the next larger one; NPUMEM_ANY: no NPU is so large */
};

/* Makes N of tensor `input`, and of all that is computed from it, larger. 0; INVALID where there is no such
 * tensor, or an operation on it mixes samples. */
int batches_most(const struct network *network, const struct npumem_geometry *geometry, const char *input,
		 struct batches *batches, struct npumem_error *error);

#endif
