/* The stretches of local memory that a tensor's data lies in. */
#ifndef DEVICE_RUNS_H
#define DEVICE_RUNS_H

#include <npumem/layout.h>

/* A stretch of one NPU; return false to stop. */
typedef bool runs_visit(void *ctx, int64_t npu, int64_t offset, int64_t bytes);

/* Visits every stretch of data bytes of a placed tensor, and of dummy bytes with them where `with_dummies`; each
 * byte once, in no promised order. False where the visitor stopped. */
bool runs_each(const struct npumem_geometry *geometry, const struct npumem_place *place, bool with_dummies,
	       runs_visit *visit, void *ctx);

/* The same for elements [first, first + count) in row-major order, without dummies. */
bool runs_each_of(const struct npumem_geometry *geometry, const struct npumem_place *place, int64_t first,
		  int64_t count, runs_visit *visit, void *ctx);

/* Iterates over the rows (all w of one n, c, h) of a range of elements: the common walk of runs and moves. */
struct runs_row {
	int64_t n, c, h;
	int64_t w, n_w;	     /* the elements of the row that are in the range */
	int64_t npu, offset; /* of element w: NPU and byte */
	int64_t index;	     /* row-major index of element w */
};
struct runs_walk {
	const struct npumem_geometry *geometry;
	const struct npumem_place *place;
	int64_t n, c, h;
	int64_t index, end; /* row-major index of the next row's first element in range; end of the range */
	int64_t skip;	    /* elements of the next row before the range */
};
void runs_walk_init(struct runs_walk *walk, const struct npumem_geometry *geometry,
		    const struct npumem_place *place, int64_t first, int64_t count);
bool runs_walk_next(struct runs_walk *walk, struct runs_row *row);

#endif
