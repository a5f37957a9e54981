/* A record's entries without what only a replay needs. */
#include "client/ctl/core/report/report.h"

static int add_entry(void *ctx, const char *json)
{
	json_t *entry = json_loads(json, 0, NULL);
	json_object_del(entry, "digest");
	json_object_del(entry, "handles");
	json_array_append_new(ctx, entry);
	return 0;
}

static json_t *device_of(const struct npumem_info *info)
{
	return json_pack("{s:s, s:I, s:I, s:I, s:I}", "version", info->version, "n_npus",
			 (json_int_t)info->geometry.n_npus, "npu_bytes", (json_int_t)info->geometry.npu_bytes,
			 "n_banks", (json_int_t)info->geometry.n_banks, "eu_bytes",
			 (json_int_t)info->geometry.eu_bytes);
}

json_t *chronicle_read(const char *path, struct npumem_error *error)
{
	struct npumem_replay *replay;
	json_t *entries = json_array(), *whole = NULL;
	if (npumem_replay_open(path, &replay, error))
		return NULL;
	int status = npumem_replay_each(replay, add_entry, entries, error);
	if (!status)
		whole = json_pack("{s:o, s:O, s:o}", "device", device_of(npumem_replay_info(replay)), "entries",
				  entries, "operations", operations_of(entries));
	npumem_replay_close(replay);
	return whole;
}
