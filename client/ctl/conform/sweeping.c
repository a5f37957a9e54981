/* What conform, check and replay share as sweeps. */
#include "client/ctl/conform/conform.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

int sweeping_begin(struct ctl *ctl, const struct args *args, const char *command, struct sweep *sweep)
{
	const char *shard = args_value(args, "--shard");
	sweep_init(sweep, command);
	if (!shard && args_has(args, "--costs"))
		return ctl_usage(ctl, "--costs has no meaning without --shard");
	return shard && sweep_shard(sweep, shard, &ctl->error) ? CTL_USAGE : CTL_OK;
}

void sweeping_mix(struct sweep *sweep, const struct npumem_info *info, const struct variants *variants)
{
	char text[128];
	snprintf(text, sizeof(text), "%" PRId64 " NPUs, %" PRId64 " bytes, EU %" PRId64 ", %d",
		 info->geometry.n_npus, info->geometry.npu_bytes, info->geometry.eu_bytes, (int)info->rounding);
	sweep_mix(sweep, text, strlen(text) + 1);
	for (unsigned i = 0; variants && i < variants->n; i++) {
		variant_text(&variants->list[i], text, sizeof(text));
		sweep_mix(sweep, text, strlen(text) + 1);
	}
}

int sweeping_share(struct ctl *ctl, const struct args *args, struct sweep *sweep)
{
	const char *costs = args_value(args, "--costs");
	if (costs && sweep_costs(sweep, costs, &ctl->error))
		return CTL_FAILED;
	sweep_assign(sweep);
	return CTL_OK;
}

void sweeping_ran(struct sweep *sweep, size_t item, double since)
{
	sweep->items[item].ran = true;
	sweep->items[item].seconds = ctl_now() - since;
}

void sweeping_tell(const struct sweep *sweep, const char *items)
{
	if (sweep->is_shared)
		printf("shard %u of %u: %zu of %zu %s\n", sweep->shard, sweep->n_shards, sweep_n_ours(sweep),
		       sweep->n, items);
}

int sweeping_print(struct ctl *ctl, const struct sweep *sweep, const struct sweep_part *part, json_t *report)
{
	sweep_json(sweep, part, report);
	return ctl_print(ctl, report);
}
