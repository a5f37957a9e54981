/* A dry run of a network: its tensors are on a device for as long as it takes, and the daemon checks each
 * operation as if it ran. */
#ifndef CTL_NETWORK_DRY_H
#define CTL_NETWORK_DRY_H

#include "client/ctl/core/network/network.h"
#include "client/ctl/ctl.h"

struct dry {
	bool is_checked;	    /* else `why` says why not */
	struct npumem_error why;    /* the first refusal; status 0: there is none */
	struct npumem_costs *costs; /* by operation, from the daemon; npus 0: it sent none */
};

/* On the daemon that ctl is connected to, beside what is there. Files are neither read nor written. */
void dry_run(struct ctl *ctl, const struct network *network, struct dry *dry);
/* On a private daemon of this geometry, which nothing else is on: not of a network that opens tensors of a device.
 */
void dry_run_alone(const struct ctl *ctl, const struct network *network, const struct npumem_geometry *geometry,
		   struct dry *dry);

#endif
