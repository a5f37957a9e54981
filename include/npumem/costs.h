/* The costs of an operation, computed from shapes and places, without a daemon. */
#ifndef NPUMEM_COSTS_H
#define NPUMEM_COSTS_H

#include <npumem/kernels.h>
#include <npumem/layout.h>

#ifdef __cplusplus
extern "C" {
#endif

struct npumem_cost_operand {
	const char *role;
	struct npumem_dims shape; /* unused for a matrix */
	int64_t rows, cols;	  /* of a matrix; else 0 */
};

enum { NPUMEM_COST_UNKNOWN = -1, NPUMEM_COST_OVERFLOW = -2 };

/* Multiply-accumulates of a run, as the daemon counts them: without taps in the padding. All extents must be above
 * 0. NPUMEM_COST_UNKNOWN: the kernel cannot have such an operand or parameter. NPUMEM_COST_OVERFLOW: the number
 * has more than 64 bits. */
int64_t npumem_cost_macs(int kernel, const struct npumem_cost_operand *operands, unsigned n_operands,
			 const struct npumem_param *params, unsigned n_params);
/* The number of NPUs that hold elements of a place, and the number of EU lanes on all NPUs that do. */
void npumem_cost_lanes(const struct npumem_geometry *geometry, const struct npumem_place *place, int64_t *npus,
		       int64_t *lanes);

#ifdef __cplusplus
}
#endif

#endif
