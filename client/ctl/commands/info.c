/* info: what the daemon and its device are. */
#include "client/ctl/command.h"

#include <inttypes.h>

#include "client/ctl/core/present.h"

static const char *name_or(const char *name)
{
	return name ? name : "unknown";
}

/* Of a part that has this geometry; NULL: of none. */
static const char *chip_name(const struct npumem_geometry *geometry)
{
	static const char *const names[] = {
#define CHIP(name, npus, bytes, banks, eu) name,
#include <npumem/chips.def>
#undef CHIP
	};
	struct npumem_geometry chip;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (npumem_geometry_chip(names[i], &chip) && chip.n_npus == geometry->n_npus &&
		    chip.npu_bytes == geometry->npu_bytes && chip.n_banks == geometry->n_banks &&
		    chip.eu_bytes == geometry->eu_bytes)
			return names[i];
	return NULL;
}

static json_t *limits_object(const struct npumem_info *info)
{
	json_t *limits = json_object();
	for (unsigned i = 0; i < info->n_limits; i++) {
		const struct npumem_limit *limit = &info->limits[i];
		json_t *most = limit->most == UINT64_MAX ? json_null() : json_integer((json_int_t)limit->most);
		json_object_set_new(limits, limit->key,
				    json_pack("{s:o, s:I}", "most", most, "now", (json_int_t)limit->now));
	}
	return limits;
}

static json_t *info_object(const struct npumem_info *info)
{
	const struct npumem_geometry *g = &info->geometry;
	return json_pack(
		"{s:s, s:I, s:s?, s:I, s:I, s:I, s:I, s:s, s:s, s:b, s:I, s:I, s:I, s:I, s:s, s:s, s:f, s:o}",
		"version", info->version, "features", (json_int_t)info->features, "chip", chip_name(g), "npus",
		(json_int_t)g->n_npus, "npu_bytes", (json_int_t)g->npu_bytes, "banks", (json_int_t)g->n_banks,
		"eu_bytes", (json_int_t)g->eu_bytes, "rounding", name_or(npumem_rounding_name(info->rounding)),
		"uninitialized", name_or(npumem_uninitialized_name(info->uninitialized)), "unchecked_reuse",
		info->unchecked_reuse, "frame_bytes_max", (json_int_t)info->frame_bytes_max, "uid",
		(json_int_t)info->uid, "pid", (json_int_t)info->pid, "session", (json_int_t)info->session, "isa",
		info->isa, "socket", info->socket, "uptime_seconds", (double)info->uptime_ns / 1e9, "limits",
		limits_object(info));
}

static void print_limits(const struct npumem_info *info)
{
	for (unsigned i = 0; i < info->n_limits; i++) {
		const struct npumem_limit *limit = &info->limits[i];
		char most[24] = "no end";
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
	if (*info->socket)
		present_line(stdout, "socket", "%s", info->socket);
	print_uptime(info->uptime_ns / 1000000000);
	if (chip_name(g))
		present_line(stdout, "chip", "%s", chip_name(g));
	present_line(stdout, "device", "%" PRId64 " NPUs of %" PRId64 " bytes, in %" PRId64 " banks of %" PRId64,
		     g->n_npus, g->npu_bytes, g->n_banks, g->npu_bytes / g->n_banks);
	present_line(stdout, "aligned layout", "to %" PRId64 " bytes", g->eu_bytes);
	present_line(stdout, "rounding", "%s", name_or(npumem_rounding_name(info->rounding)));
	present_line(stdout, "unwritten bytes", "%s", name_or(npumem_uninitialized_name(info->uninitialized)));
	present_line(stdout, "unchecked reuse", "%s", info->unchecked_reuse ? "allowed" : "off");
	present_line(stdout, "kernels use", "%s", info->isa);
	present_line(stdout, "largest message", "%" PRId64 " bytes", info->frame_bytes_max);
	present_line(stdout, "you are", "uid %" PRIu32 ", session %" PRIu64, info->uid, info->session);
	print_limits(info);
	return CTL_OK;
}

const struct command info_command = {.run = info_run};
