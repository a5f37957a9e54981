/* One golden vector, placed in one way: written, run, read back, compared. */
#ifndef CTL_TRIAL_H
#define CTL_TRIAL_H

#include <npumem/async.h>

#include "client/ctl/core/vectors/variant.h"

/* 0 where every integer was right; else why not. UNAVAILABLE: the connection is over. */
int trial_run(struct npumem *npumem, const struct npumem_geometry *geometry, const struct vectors_case *one,
	      const struct npumem_kernel_row *row, const struct variant *variant, struct npumem_error *error);

#endif
