/* What an operation costs: facts of shapes and places. */
#ifndef NPUMEM_COSTS_H
#define NPUMEM_COSTS_H

#include <npumem/kernels.h>
#include <npumem/layout.h>

#ifdef __cplusplus
extern "C" {
#endif

struct npumem_cost_operand {
	const char *role;
	struct npumem_dims shape; /* of a matrix nothing */
	int64_t rows, cols;	  /* of a matrix, else 0 */
};

enum { NPUMEM_COST_UNKNOWN = -1, NPUMEM_COST_OVERFLOW = -2 };

/* Multiply-accumulates of a run, as the daemon counts them: without padded taps. NPUMEM_COST_UNKNOWN where an
 * operand or a parameter is not one that the kernel can have, NPUMEM_COST_OVERFLOW beyond 64 bits. Extents are
 * above 0. */
int64_t npumem_cost_macs(int kernel, const struct npumem_cost_operand *operands, unsigned n_operands,
			 const struct npumem_param *params, unsigned n_params);
/* NPUs that hold elements of a place, and how many EU lanes of all NPUs do. */
void npumem_cost_lanes(const struct npumem_geometry *geometry, const struct npumem_place *place, int64_t *npus,
		       int64_t *lanes);

#ifdef __cplusplus
}
#endif

#endif
