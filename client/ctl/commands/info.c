/* info: what the daemon and its device are. */
#include "client/ctl/command.h"

#include <inttypes.h>

#include "client/ctl/core/output/output.h"
#include "client/ctl/ctl.h"

static void print_limits(const struct npumem_info *info)
{
	for (unsigned i = 0; i < info->n_limits; i++) {
		const struct npumem_limit *limit = &info->limits[i];
		char most[24] = "no limit";
		if (limit->most != UINT64_MAX)
			snprintf(most, sizeof(most), "%" PRIu64, limit->most);
		present_line(stdout, i ? "" : "your limits", "%-14s %" PRIu64 " of %s", limit->key, limit->now,
			     most);
	}
}

static void print_uptime(uint64_t seconds)
{
	present_line(stdout, "up", "%" PRIu64 " d %02" PRIu64 ":%02" PRIu64 ":%02" PRIu64, seconds / 86400,
		     seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
}

static int info_run(struct ctl *ctl, const struct args *args)
{
	const struct npumem_info *info;
	char user[USERS_TEXT_BYTES];
	(void)args;
	int code = ctl_info(ctl, &info);
	if (code)
		return code;
	if (ctl->json)
		return ctl_print(ctl, facts_object(info));
	const struct npumem_geometry *g = &info->geometry;
	printf("npumemd %s, process %" PRIu32 "\n", info->version, info->pid);
	if (*info->socket)
		present_line(stdout, "socket", "%s", info->socket);
	if (info->remote)
		present_line(stdout, "remote", "over ssh: system memory is staged and sent");
	print_uptime(info->uptime_ns / 1000000000);
	if (facts_chip(g))
		present_line(stdout, "chip", "%s", facts_chip(g));
	present_line(stdout, "device", "%" PRId64 " NPUs of %" PRId64 " bytes, in %" PRId64 " banks of %" PRId64,
		     g->n_npus, g->npu_bytes, g->n_banks, g->npu_bytes / g->n_banks);
	present_line(stdout, "aligned layout", "to %" PRId64 " bytes", g->eu_bytes);
	present_line(stdout, "rounding", "%s", facts_name(npumem_rounding_name(info->rounding)));
	present_line(stdout, "unwritten bytes", "%s", facts_name(npumem_uninitialized_name(info->uninitialized)));
	present_line(stdout, "unchecked reuse", "%s", info->unchecked_reuse ? "allowed" : "off");
	present_line(stdout, "kernels use", "%s", info->isa);
	present_line(stdout, "largest message", "%" PRId64 " bytes", info->frame_bytes_max);
	present_line(stdout, "you are", "uid %s, session %" PRIu64, users_text(ctl, info->uid, user),
		     info->session);
	print_limits(info);
	return CTL_OK;
}

const struct command info_command = {.run = info_run};
