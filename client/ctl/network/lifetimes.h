/* What a network takes, told: for plan and for submit --dry-run. */
#ifndef CTL_NETWORK_LIFETIMES_H
#define CTL_NETWORK_LIFETIMES_H

#include "client/ctl/core/network/planning/lives.h"
#include "client/ctl/core/network/planning/rates.h"
#include "client/ctl/ctl.h"
#include "client/ctl/network/dry.h"

/* Prints the tensors with their lives, the peak, whether it fits, and what each operation costs (cycles only with
 * `rates`, which may be NULL); draws the lives into the file `svg`, where it is not NULL. CTL_OK; CTL_FAILED where
 * it does not fit, or the dry run was refused, after all of that, or could not be told. */
int lifetimes_print(struct ctl *ctl, const struct network *network, const struct npumem_geometry *geometry,
		    const struct rates *rates, const char *svg, const struct dry *dry);

#endif
