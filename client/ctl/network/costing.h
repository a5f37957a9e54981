/* Costs of a network, as text and as JSON: for plan and for submit --dry-run. */
#ifndef CTL_NETWORK_COSTING_H
#define CTL_NETWORK_COSTING_H

#include "client/ctl/core/network/planning/costs.h"
#include "client/ctl/ctl.h"
#include "client/ctl/network/dry.h"

/* Computes them all. NULL: ctl->error says why not. The tensors fit the geometry.
 * Costs that cannot be computed here are the daemon's, from the dry run. */
struct costs_operation *costing_compute(struct ctl *ctl, const struct network *network,
					const struct npumem_geometry *geometry, const struct rates *rates,
					const struct dry *dry, struct costs_operation *sum);
/* Prints the table, the sums, and the formula where rates are declared. */
void costing_print(const struct network *network, const struct rates *rates, const struct costs_operation *costs,
		   const struct costs_operation *sum);
/* {"operations": […], "sums": {…}}, and with rates "cost". */
json_t *costing_object(const struct network *network, const struct rates *rates,
		       const struct costs_operation *costs, const struct costs_operation *sum);

#endif
