/* Small random tensors of every layout and storage mode. */
#ifndef TESTS_DEVICE_PLACES_H
#define TESTS_DEVICE_PLACES_H

#include "tests/support/oracle.h"
#include "tests/unit/daemon/device/rig.h"

/* Its reuse and dma_only are left to the caller. Not all of them resolve. */
static inline struct device_request places_request(uint64_t *random, int64_t n_npus)
{
	static const int dtypes[] = {NPUMEM_INT8, NPUMEM_INT16, NPUMEM_FP32};
	int mode = (int)oracle_between(random, 0, 3), dtype = dtypes[oracle_between(random, 0, 2)];
	struct device_request request =
		rig_request(dtype, oracle_between(random, 1, 5), oracle_between(random, 1, 2 * n_npus + 1),
			    oracle_between(random, 1, 3), oracle_between(random, 1, 5));
	struct npumem_spec *spec = &request.spec;
	spec->layout = (int)oracle_between(random, 1, 4);
	spec->start_npu = oracle_between(random, 0, n_npus - 1);
	if (mode == 1)
		spec->mode = dtype == NPUMEM_INT8    ? NPUMEM_MODE_4N
			     : dtype == NPUMEM_INT16 ? NPUMEM_MODE_2N
						     : NPUMEM_MODE_2IC;
	if (spec->layout == NPUMEM_STRIDED) {
		spec->stride = (struct npumem_dims){0, 0, 11, 2};
		spec->stride.c = 3 * 11 + oracle_between(random, 0, 9);
		spec->stride.n = 5 * spec->stride.c;
		if (spec->shape.w == 1)
			spec->stride.w = 0;
		if (spec->shape.h == 1)
			spec->stride.h = 0;
	}
	if (spec->layout == NPUMEM_MATRIX) {
		spec->rows = spec->shape.n;
		spec->cols = oracle_between(random, 1, 4 * n_npus);
		spec->w = oracle_between(random, 1, spec->cols);
		spec->shape = (struct npumem_dims){0, 0, 0, 0};
	}
	return request;
}

#endif
