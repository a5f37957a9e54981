/* Prints what a network needs of a device: for plan and for submit --dry-run. */
#ifndef CTL_NETWORK_LIFETIMES_H
#define CTL_NETWORK_LIFETIMES_H

#include "client/ctl/core/network/planning/lives.h"
#include "client/ctl/core/network/planning/rates.h"
#include "client/ctl/ctl.h"
#include "client/ctl/network/dry.h"

/* Prints the tensors with their lives, the peak, whether it fits, and what each operation costs (cycles only with
 * `rates`, which may be NULL); draws the lives into the file `svg`, where it is not NULL. CTL_OK; CTL_FAILED where
 * it does not fit, or the dry run was refused or could not be made; all is printed first. */
int lifetimes_print(struct ctl *ctl, const struct network *network, const struct npumem_geometry *geometry,
		    const struct rates *rates, const char *svg, const struct dry *dry);

#endif
