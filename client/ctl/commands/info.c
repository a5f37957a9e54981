/* info: what the daemon and its device are. */
#include "client/ctl/command.h"

#include <inttypes.h>

#include "client/ctl/core/present.h"

static const char *name_or(const char *name)
{
	return name ? name : "unknown";
}

static json_t *info_object(const struct npumem_info *info)
{
	const struct npumem_geometry *g = &info->geometry;
	return json_pack("{s:s, s:I, s:I, s:I, s:I, s:I, s:s, s:s, s:b, s:I, s:I, s:I, s:I, s:s}", "version",
			 info->version, "features", (json_int_t)info->features, "npus", (json_int_t)g->n_npus,
			 "npu_bytes", (json_int_t)g->npu_bytes, "banks", (json_int_t)g->n_banks, "eu_bytes",
			 (json_int_t)g->eu_bytes, "rounding", name_or(npumem_rounding_name(info->rounding)),
			 "uninitialized", name_or(npumem_uninitialized_name(info->uninitialized)),
			 "unchecked_reuse", info->unchecked_reuse, "frame_bytes_max",
			 (json_int_t)info->frame_bytes_max, "uid", (json_int_t)info->uid, "pid",
			 (json_int_t)info->pid, "session", (json_int_t)info->session, "isa", info->isa);
}

static int info_run(struct ctl *ctl, const struct args *args)
{
	const struct npumem_info *info;
	(void)args;
	int code = ctl_connect(ctl);
	if (code)
		return code;
	if (npumem_info(ctl->npumem, &info, &ctl->error))
		return CTL_FAILED;
	if (ctl->json)
		return ctl_print(ctl, info_object(info));
	const struct npumem_geometry *g = &info->geometry;
	printf("npumemd %s, process %" PRIu32 "\n", info->version, info->pid);
	present_line(stdout, "device", "%" PRId64 " NPUs of %" PRId64 " bytes, in %" PRId64 " banks of %" PRId64,
		     g->n_npus, g->npu_bytes, g->n_banks, g->npu_bytes / g->n_banks);
	present_line(stdout, "aligned layout", "to %" PRId64 " bytes", g->eu_bytes);
	present_line(stdout, "rounding", "%s", name_or(npumem_rounding_name(info->rounding)));
	present_line(stdout, "unwritten bytes", "%s", name_or(npumem_uninitialized_name(info->uninitialized)));
	present_line(stdout, "unchecked reuse", "%s", info->unchecked_reuse ? "allowed" : "off");
	present_line(stdout, "kernels use", "%s", info->isa);
	present_line(stdout, "largest message", "%" PRId64 " bytes", info->frame_bytes_max);
	present_line(stdout, "you are", "uid %" PRIu32 ", session %" PRIu64, info->uid, info->session);
	return CTL_OK;
}

const struct command info_command = {.run = info_run};
