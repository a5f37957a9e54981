/* What the operations of a network cost: facts of shapes and places, and cycles by rates that the user declares.
 */
#ifndef CTL_CORE_NETWORK_COSTS_H
#define CTL_CORE_NETWORK_COSTS_H

#include "client/ctl/core/network/network.h"
#include "client/ctl/core/network/planning/rates.h"

struct costs_operation {
	bool is_known; /* false: a tensor of the device, whose shape is not known here, or one that is wrong */
	int64_t macs;  /* as the daemon counts them: without padded taps */
	int64_t dma_bytes;
	int64_t read_bytes, written_bytes; /* of local memory, each operand's elements once */
	int64_t npus;			   /* that hold elements of the first output, or of what DMA moves */
	int64_t lanes;			   /* EU lanes that do; of DMA 0 */
	int64_t cycles;			   /* 0 without rates */
};

/* True for the operations that cost: a run, and DMA. */
bool costs_has(const struct network_operation *operation);

/* The costs of operation i, whose tensors fit the geometry (lives_compute has passed). `told`: by a daemon, for
 * what is not known here, or NULL. `rates` may be NULL. 0; INVALID where a number leaves 64 bits. */
int costs_compute(const struct network *network, const struct npumem_geometry *geometry, const struct rates *rates,
		  size_t i, const struct npumem_costs *told, struct costs_operation *cost,
		  struct npumem_error *error);
/* Adds to a sum, whose npus and lanes are those of the operation with most. 0 or INVALID. */
int costs_add(struct costs_operation *sum, const struct costs_operation *cost, struct npumem_error *error);

#endif
