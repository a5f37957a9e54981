/* What npumem_info returned, as JSON. Owns nothing. */
#include "client/ctl/core/output/present.h"

const char *facts_name(const char *name)
{
	return name ? name : "unknown";
}

const char *facts_chip(const struct npumem_geometry *geometry)
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

json_t *facts_object(const struct npumem_info *info)
{
	const struct npumem_geometry *g = &info->geometry;
	return json_pack(
		"{s:s, s:I, s:s?, s:I, s:I, s:I, s:I, s:s, s:s, s:b, s:I, s:I, s:I, s:I, s:s, s:s, s:f, s:o, s:b}",
		"version", info->version, "features", (json_int_t)info->features, "chip", facts_chip(g), "npus",
		(json_int_t)g->n_npus, "npu_bytes", (json_int_t)g->npu_bytes, "banks", (json_int_t)g->n_banks,
		"eu_bytes", (json_int_t)g->eu_bytes, "rounding", facts_name(npumem_rounding_name(info->rounding)),
		"uninitialized", facts_name(npumem_uninitialized_name(info->uninitialized)), "unchecked_reuse",
		info->unchecked_reuse, "frame_bytes_max", (json_int_t)info->frame_bytes_max, "uid",
		(json_int_t)info->uid, "pid", (json_int_t)info->pid, "session", (json_int_t)info->session, "isa",
		info->isa, "socket", info->socket, "uptime_seconds", (double)info->uptime_ns / 1e9, "limits",
		limits_object(info), "remote", info->remote);
}
