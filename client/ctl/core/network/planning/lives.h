/* What a network takes of a device: which tensors live when, the peak, and whether it fits. */
#ifndef CTL_CORE_NETWORK_LIVES_H
#define CTL_CORE_NETWORK_LIVES_H

#include "client/ctl/core/network/network.h"

struct lives_tensor {
	int tensor;
	size_t from, to, last; /* operations: allocated at, there before, last used by */
	struct npumem_place place;
	int64_t offset; /* on an NPU, as lives_compute places it; NPUMEM_ANY: there was no room */
};

struct lives {
	struct lives_tensor *list; /* in the order of their allocation */
	size_t n;
	int64_t peak;	   /* bytes per NPU at once, at the most */
	size_t peak_at;	   /* the operation that reaches it */
	int64_t least;	   /* the peak where each were freed right after its last use */
	int64_t reach;	   /* bytes per NPU with each at the lowest offset that is free */
	size_t crowded;	   /* index of the first tensor without room; n: all have some */
	unsigned n_opened; /* the device's own, which are not counted */
};

/* 0; INVALID, naming the tensor that can lie on no such device. */
int lives_compute(const struct network *network, const struct npumem_geometry *geometry, struct lives *lives,
		  struct npumem_error *error);

#endif
