/* Preloaded into a daemon by test_state_durable.py: every sync takes NPUMEM_SYNC_MS, as on a slow disk, and
 * NPUMEM_SYNC_MS_PER_MIB more for each MiB that was written by a call since the last one. The machine's own disk
 * is not asked, so its other load does not count. A byte for each sync goes to the file NPUMEM_SYNC_LOG; while
 * there is none of this name, syncs take no time. Where the file NPUMEM_SYNC_FAILS is there, syncs fail. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static atomic_long written;

static long number(const char *name)
{
	const char *text = getenv(name);

	return text ? atol(text) : 0;
}

static int wait_instead(void)
{
	const char *log = getenv("NPUMEM_SYNC_LOG"), *fails = getenv("NPUMEM_SYNC_FAILS");
	long ns = number("NPUMEM_SYNC_MS") * 1000000 +
		  atomic_exchange(&written, 0) * number("NPUMEM_SYNC_MS_PER_MIB") * 1000000 / (1 << 20);
	struct timespec wait = {ns / 1000000000, ns % 1000000000};
	int to = log ? open(log, O_WRONLY | O_APPEND | O_CLOEXEC) : -1;

	if (!log || to >= 0)
		nanosleep(&wait, NULL);
	if (to >= 0) {
		if (write(to, "s", 1) != 1)
			abort();
		close(to);
	}
	if (fails && !access(fails, F_OK)) {
		errno = EIO;
		return -1;
	}
	return 0;
}

int fsync(int fd)
{
	(void)fd;
	return wait_instead();
}

int fdatasync(int fd)
{
	(void)fd;
	return wait_instead();
}

ssize_t pwrite(int fd, const void *from, size_t bytes, off_t off)
{
	ssize_t (*call)(int, const void *, size_t, off_t) =
		(ssize_t(*)(int, const void *, size_t, off_t))dlsym(RTLD_NEXT, "pwrite");

	atomic_fetch_add(&written, (long)bytes);
	return call(fd, from, bytes, off);
}
