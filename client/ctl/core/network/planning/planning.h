/* What a network takes of a device, and of time, before it runs. */
#ifndef CTL_CORE_NETWORK_PLANNING_PLANNING_H
#define CTL_CORE_NETWORK_PLANNING_PLANNING_H

#include <npumem/types.h>

#include "client/ctl/core/network/network.h"

/* lives.c. What a network takes of a device: which tensors live when, the peak, and whether it fits. */

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

/* rates.c. --cost: how many cycles the user says that work takes. */

struct rates {
	int64_t macs_per_cycle;	     /* of one NPU; from 1 on */
	int64_t dma_bytes_per_cycle; /* of the device; from 1 on */
	int64_t overhead;	     /* cycles of each operation; from 0 on */
};

enum { RATES_TEXT_BYTES = 320 };

/* Reads "macs_per_cycle=M,dma_bytes_per_cycle=D[,overhead=O]"; a text without '=' is the path of a file that has
 * these keys, separated by commas or lines, '#' begins a comment. 0, or INVALID: which key is wrong, and why. */
int rates_parse(const char *text, struct rates *rates, struct npumem_error *error);
/* The formula of a cycle, with the rates. Returns `text`. */
const char *rates_formula(const struct rates *rates, char text[RATES_TEXT_BYTES]);

/* costs.c. What the operations of a network cost: facts of shapes and places, and cycles by rates that the user
 * declares.
 */

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

/* The costs of operation i, whose tensors fit the geometry (lives_compute has passed). `told`: the costs that a
 * daemon told, used where they cannot be computed here; or NULL. `rates` may be NULL. 0; INVALID where a number
 * leaves 64 bits. */
int costs_compute(const struct network *network, const struct npumem_geometry *geometry, const struct rates *rates,
		  size_t i, const struct npumem_costs *told, struct costs_operation *cost,
		  struct npumem_error *error);
/* Adds to a sum, whose npus and lanes are those of the operation with most. 0 or INVALID. */
int costs_add(struct costs_operation *sum, const struct costs_operation *cost, struct npumem_error *error);

/* batches.c. The largest batch of a network: the greatest N of its input with which it fits. */

struct batches {
	int64_t most; /* the largest N that fits; 0: none does */
	int64_t peak; /* bytes per NPU with it */
	int64_t next; /* the peak of the next larger one; NPUMEM_ANY: no NPU is so large */
};

/* Makes N of tensor `input`, and of all that is computed from it, larger. 0; INVALID where there is no such
 * tensor, or an operation on it mixes samples. */
int batches_most(const struct network *network, const struct npumem_geometry *geometry, const char *input,
		 struct batches *batches, struct npumem_error *error);

/* optimize.c. Layouts and places of a network's tensors that take less of an NPU. */

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

/* timeline.c. The lives of a network's tensors as SVG: operations go right, offsets on an NPU go down, heights are
 * to scale.
 */

/* Light or dark as the reader has it; a tensor's colour follows from its name. Those without room are left out. */
void timeline_draw(FILE *out, const struct network *network, const struct lives *lives,
		   const struct npumem_geometry *geometry);

#endif
