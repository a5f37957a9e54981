/* The limits of one user and of all users: from the options, within the limits of this process. */
#include "daemon/server/process/set_limits.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

enum {
	SESSIONS_MAX = 16384,
	FDS_MAX = 32768,
	FDS_APART = 64,
};

/* More than FDS_MAX are of no use. */
void set_limits_of_process(void)
{
	struct rlimit limit;
	int fd;

	if (getrlimit(RLIMIT_NOFILE, &limit))
		return;
	limit.rlim_cur = limit.rlim_max < FDS_MAX ? limit.rlim_max : FDS_MAX;
	setrlimit(RLIMIT_NOFILE, &limit);
	/* The kernel's table grows now. Once there are threads, each growth makes the loop wait for 8 to 16 ms. */
	fd = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, (int)limit.rlim_cur - 1);
	if (fd >= 0)
		close(fd);
}

static uint64_t most_fds(void)
{
	struct rlimit limit;

	return getrlimit(RLIMIT_NOFILE, &limit) ? 0 : limit.rlim_cur;
}

/* As many sessions as there are fds for, with some left for the daemon's own and for shared memory on its way. */
static uint64_t most_sessions(void)
{
	uint64_t n = most_fds();

	if (n > SESSIONS_MAX)
		return SESSIONS_MAX;
	return n > 2 * FDS_APART ? n - FDS_APART : n / 2;
}

int set_limits(struct limits_table *table, const struct options *options)
{
	table->all[LIMITS_SESSIONS] = most_sessions();
	table->stop_percent = (unsigned)options->compact_percent;
	table->any_pins = options->allow_any_pins;
	/* One message brings up to 253, which are charged until they are closed: so that others can pass theirs,
	 * too. */
	if (table->all[LIMITS_DESCRIPTORS] < most_fds() / 4)
		table->all[LIMITS_DESCRIPTORS] = most_fds() / 4;
	if (options->share_device)
		table->all[LIMITS_DEVICE_BYTES] =
			(uint64_t)(options->device.geometry.n_npus * options->device.geometry.npu_bytes);
	for (int key = 0; key < LIMITS_N; key++) {
		if (!options->limits[key])
			continue;
		table->ordinary.most[key] = options->limits[key];
		/* What one may have there must be, where nothing else bounds it: descriptors do, and fault.c's
		 * table. */
		if (key != LIMITS_SESSIONS && key != LIMITS_SEGMENTS && table->all[key] &&
		    table->all[key] < options->limits[key])
			table->all[key] = options->limits[key];
	}
	for (unsigned i = 0; i < options->n_own_limits; i++)
		if (limits_set_own(table, options->own_limits[i].uid, (enum limits_key)options->own_limits[i].key,
				   options->own_limits[i].most))
			return -ENOMEM;
	return 0;
}
