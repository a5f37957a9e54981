/* Pooling: windows of kernel=, stride=, padding= and dilation= over each feature by itself.
 * Roles in [N,C,H,W] and out [N,C,Ho,Wo], of one type (fx8 or fx16); their formats are the kernel's business.
 *
 * Rows of outputs are folded first down the columns, then along the rows: a window of kh x kw costs kh + kw steps.
 * Ordinary windows by vectors, padding being elements that change nothing: in containers where these hold every
 * result, else in 32 bits. Any other in 64, tap by tap.
 *
 *	for (pool_begin(&pool, call, FOLD_SUM); pool_next(&pool);)
 *		… pool.n_values to pool.out: pool.rows.n_rows of pool.rows.to, from row pool.y on; where that
 *		is NULL, of pool.values, of row pool.y from pool.x on …
 *
 * Where windows are whole features the outputs of many features are a row. */
#ifndef DEVICE_POOL_H
#define DEVICE_POOL_H

#include "daemon/device/fixed/rows/folds.h"
#include "daemon/device/fixed/rows/rows.h"
#include "daemon/device/kernel_support/windows/window.h"

enum { POOL_IN, POOL_OUT };
enum { POOL_BY_FEATURE = 1 << POOL_IN | 1 << POOL_OUT };

/* Types, parameters and shapes: 0 or INVALID. Every window then meets the input. */
int pool_check(const struct kernel_call *call, struct npumem_error *error);
/* For a call that passed: its window, H and W exchanged where rows are short and there are many: then the
 * features are folded in their transpose. */
struct window pool_window(const struct kernel_call *call);
size_t pool_scratch_bytes(const struct kernel_call *call);

/* What it takes to fold all rows, and to make results of them, `apart` of which each row divides by itself. */
int64_t pool_steps(const struct kernel_call *call, int64_t apart);
/* Whether results are folded in 64 bits, tap by tap. */
bool pool_is_wide(const struct kernel_call *call);

struct pool {
	const struct kernel_call *call;
	struct window window;
	enum fold fold;
	unsigned bytes;	    /* of an element */
	bool global;	    /* windows are whole features, and out is dense */
	bool turned;	    /* H and W are exchanged, and rows have more than one element */
	int64_t n, c, y, x; /* x: the output of a row that values begin with; 0 where windows are ordinary */
	int64_t feature, n_values;
	const uint8_t *in; /* the feature */
	uint8_t *out;	   /* output x of the row */
	uint8_t *turned_in, *turned_out;
	uint8_t *copied;       /* rows of the input that windows see, with their padding */
	struct fold_pool rows; /* of outputs; `to` NULL: windows are not ordinary, and it is one row */
	int64_t *columns, *values;
	int64_t pending, looked;
};

/* Of a row whose windows are ordinary. */
static inline struct row_source pool_source(const struct pool *pool)
{
	return (struct row_source){.data = pool->rows.to, .bytes = pool->rows.width, .mask = -1};
}

void pool_begin(struct pool *pool, const struct kernel_call *call, enum fold fold);
/* Folds the next rows of outputs, or stretch of one. False where there are no more, or no more is wanted. */
bool pool_next(struct pool *pool);

#endif
