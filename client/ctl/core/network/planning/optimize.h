/* Layouts and places of a network's tensors that take less of an NPU. */
#ifndef CTL_CORE_NETWORK_OPTIMIZE_H
#define CTL_CORE_NETWORK_OPTIMIZE_H

#include "client/ctl/core/network/planning/lives.h"

struct optimized {
	int64_t peak_before, reach_before; /* bytes per NPU */
	int64_t peak, reach;
	size_t n_compact, n_placed; /* tensors that have another layout; that were given an address */
	unsigned n_orders;	    /* of placing them, that were tried */
};

/* Gives tensors that say no layout the compact one, where they live at the peak and that lowers it; then each that
 * says no address one, by first fit in the best of many orders. The tensors' specs and the document's JSON change
 * with it. A layout, start NPU, address or reuse that a tensor says stays, and so does the layout of one that has
 * views. 0 or INVALID. */
int optimize_network(struct network *network, const struct npumem_geometry *geometry, struct optimized *optimized,
		     struct npumem_error *error);

#endif
