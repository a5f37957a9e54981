#include "client/ctl/network/networks.h"

#include <inttypes.h>

#include "client/ctl/core/memory.h"

void dry_run(struct ctl *ctl, const struct network *network, struct dry *dry)
{
	struct npumem_error before = ctl->error;
	struct execute execute;
	*dry = (struct dry){.costs = memory_new(network->n_operations, sizeof(*dry->costs))};
	int code = execute_init(&execute, ctl, network);
	if (!code) {
		execute.dry_costs = dry->costs;
		dry->is_checked = true;
		code = execute_run(&execute);
	}
	if (code)
		dry->why = ctl->error;
	if (dry->is_checked) {
		/* What it cannot free goes with the connection. */
		execute_reset(&execute);
		execute_deinit(&execute);
	}
	ctl->error = before;
}

static bool opens_any(const struct network *network)
{
	for (size_t i = 0; i < network->n_operations; i++)
		if (network->operations[i].kind == NETWORK_OPEN)
			return true;
	return false;
}

void dry_run_alone(const struct ctl *ctl, const struct network *network, const struct npumem_geometry *geometry,
		   struct dry *dry)
{
	struct ctl own = {.json = ctl->json};
	char address[128];
	*dry = (struct dry){.why = {.status = 0}};
	if (opens_any(network)) {
		npumem_error_set(&dry->why, NPUMEM_NOT_FOUND,
				 "it opens tensors of a device: npumemctl submit --dry-run checks it there");
		return;
	}
	snprintf(address, sizeof(address), "spawn:--npus %" PRId64 " --npu-bytes %" PRId64 " --banks %" PRId64,
		 geometry->n_npus, geometry->npu_bytes, geometry->n_banks);
	if (!npumem_open(address, NULL, &own.npumem, &dry->why))
		dry_run(&own, network, dry);
	npumem_close(own.npumem);
}
