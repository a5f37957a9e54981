/* What one user and all of them may have: as the options say, within what this process itself may have. */
#include "daemon/server/process/set_limits.h"

#include <errno.h>
#include <sys/resource.h>

enum {
	SESSIONS_MAX = 16384,
	FDS_APART = 64,
};

/* As many sessions as there are fds for, with some left for the daemon's own and for shared memory on its way. */
static uint64_t most_sessions(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit))
		return 0;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
	getrlimit(RLIMIT_NOFILE, &limit);
	if (limit.rlim_cur == RLIM_INFINITY || limit.rlim_cur > SESSIONS_MAX)
		return SESSIONS_MAX;
	return limit.rlim_cur > 2 * FDS_APART ? limit.rlim_cur - FDS_APART : limit.rlim_cur / 2;
}

int set_limits(struct limits_table *table, const struct options *options)
{
	table->all[LIMITS_SESSIONS] = most_sessions();
	if (options->share_device)
		table->all[LIMITS_DEVICE_BYTES] =
			(uint64_t)(options->device.geometry.n_npus * options->device.geometry.npu_bytes);
	for (int key = 0; key < LIMITS_N; key++) {
		if (!options->limits[key])
			continue;
		table->ordinary.most[key] = options->limits[key];
		/* What one may have there must be, but for sessions, of which there are no more than fds. */
		if (key != LIMITS_SESSIONS && table->all[key] && table->all[key] < options->limits[key])
			table->all[key] = options->limits[key];
	}
	for (unsigned i = 0; i < options->n_own_limits; i++)
		if (limits_set_own(table, options->own_limits[i].uid, (enum limits_key)options->own_limits[i].key,
				   options->own_limits[i].most))
			return -ENOMEM;
	return 0;
}
