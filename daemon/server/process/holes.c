/* One userfaultfd for all mappings; it is never read, as there are no events with UFFD_FEATURE_SIGBUS. Made for
 * faults of user mode alone, which needs no capability; a system call that gets such a page ends with EFAULT. A
 * page in swap space is there: st_blocks counts it, and it comes back at the cost of the process that made it. */
#include "daemon/server/process/holes.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <inttypes.h>
#include <linux/userfaultfd.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "daemon/server/process/log.h"

static int uffd = -1;
static bool are_refused;

/* ---- the daemon's memory cgroups ---- */

/* Whether the file has a number, and not "max" or what stands for it in the first version of cgroups. */
static bool has_limit(const char *path)
{
	enum { NO_LIMIT_BITS = 60 };
	FILE *file = fopen(path, "re");
	unsigned long long bytes;
	bool has = file && fscanf(file, "%llu", &bytes) == 1 && bytes >> NO_LIMIT_BITS == 0;

	if (file)
		fclose(file);
	return has;
}

/* Of a cgroup and all above it. */
static bool chain_has_limit(const char *root, const char *name, char *cgroup)
{
	char path[2 * PATH_MAX], *slash;

	for (;;) {
		snprintf(path, sizeof(path), "%s%s/%s", root, cgroup, name);
		if (has_limit(path))
			return true;
		slash = strrchr(cgroup, '/');
		if (!slash)
			return false;
		*slash = 0;
	}
}

/* A line is "NUMBER:CONTROLLERS:PATH"; the second version of cgroups has one line, without controllers. */
static bool line_has_limit(char *line)
{
	char *controllers = strchr(line, ':'), *cgroup = controllers ? strchr(controllers + 1, ':') : NULL;

	if (!cgroup)
		return false;
	*cgroup++ = 0;
	cgroup[strcspn(cgroup, "\n")] = 0;
	if (!controllers[1])
		return chain_has_limit("/sys/fs/cgroup", "memory.max", cgroup);
	return strstr(controllers, "memory") &&
	       chain_has_limit("/sys/fs/cgroup/memory", "memory.limit_in_bytes", cgroup);
}

static bool memory_has_limit(void)
{
	FILE *file = fopen("/proc/self/cgroup", "re");
	char line[PATH_MAX];
	bool has = false;

	while (file && !has && fgets(line, sizeof(line), file))
		has = line_has_limit(line);
	if (file)
		fclose(file);
	return has;
}

/* ---- userfaultfd ---- */

static int open_uffd(void)
{
	struct uffdio_api api = {.api = UFFD_API, .features = UFFD_FEATURE_SIGBUS | UFFD_FEATURE_MISSING_SHMEM};
	int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | UFFD_USER_MODE_ONLY), status;

	if (fd < 0)
		return -errno;
	if (ioctl(fd, UFFDIO_API, &api) == 0)
		return fd;
	status = -errno;
	close(fd);
	return status;
}

void holes_open(bool always)
{
	are_refused = always || memory_has_limit();
	if (!are_refused)
		return;
	uffd = open_uffd();
	if (uffd < 0)
		log_line(LOG_LEVEL_WARNING,
			 "userfaultfd: %s: clients can have pages of their shared memory made by the daemon, and "
			 "charged to its memory cgroup",
			 strerror(-uffd));
}

int holes_check(int fd, uint64_t bytes, struct npumem_error *error)
{
	enum { BLOCK_BYTES = 512 };
	struct stat stat;
	uint64_t there;

	if (fstat(fd, &stat))
		return npumem_error_set(error, NPUMEM_INVALID, "the fd that came: %s", strerror(errno));
	there = (uint64_t)stat.st_blocks * BLOCK_BYTES;
	if (!are_refused || there >= bytes)
		return 0;
	npumem_error_set(
		error, NPUMEM_INVALID,
		"%" PRIu64 " of the memfd's %" PRIu64
		" bytes are holes: allocate them with fallocate(2) before it is shared, as the daemon makes no "
		"pages for clients",
		bytes - there, bytes);
	npumem_error_number(error, "hole_bytes", (int64_t)(bytes - there));
	return NPUMEM_INVALID;
}

int holes_forbid(void *base, uint64_t bytes)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	struct uffdio_register wanted = {
		.range = {.start = (uint64_t)(uintptr_t)base, .len = (bytes + page - 1) / page * page},
		.mode = UFFDIO_REGISTER_MODE_MISSING};

	if (uffd < 0)
		return 0;
	return ioctl(uffd, UFFDIO_REGISTER, &wanted) ? -errno : 0;
}
