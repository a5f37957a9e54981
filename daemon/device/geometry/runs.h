/* The stretches of local memory that a tensor's data lies in. */
#ifndef DEVICE_RUNS_H
#define DEVICE_RUNS_H

#include <npumem/layout.h>

/* `n` stretches of `bytes` on one NPU, `pitch` apart, the first at `offset`. */
struct runs_series {
	int64_t npu, offset, bytes, n, pitch;
};

/* Work on a series, where a stretch takes one step and as much as 64 bytes do. A visited one takes about this many
 * at most, so that a visitor need look about only between them. */
enum { RUNS_BYTES_PER_STEP = 64, RUNS_STEPS_MAX = 16384 };

static inline int64_t runs_steps(const struct runs_series *series)
{
	return series->n * (1 + series->bytes / RUNS_BYTES_PER_STEP);
}

/* Return false to stop. */
typedef bool runs_visit(void *ctx, const struct runs_series *series);

/* Visits every stretch of data bytes of a placed tensor, and of dummy bytes with them where `with_dummies`; each
 * byte once, NPU after NPU, stretches that touch as one. False where the visitor stopped. */
bool runs_each(const struct npumem_geometry *geometry, const struct npumem_place *place, bool with_dummies,
	       runs_visit *visit, void *ctx);

/* The same for elements [first, first + count) in row-major order, without dummies. */
bool runs_each_of(const struct npumem_geometry *geometry, const struct npumem_place *place, int64_t first,
		  int64_t count, runs_visit *visit, void *ctx);

/* As runs_each_of, but in the order of the elements where no word holds several; takes longer. */
bool runs_each_in_order(const struct npumem_geometry *geometry, const struct npumem_place *place, int64_t first,
			int64_t count, runs_visit *visit, void *ctx);

#endif
