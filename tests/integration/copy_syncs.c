/* Preloaded into a daemon by test_state_power.py: when a file of the state in SHIM_DIR is synced, all its files
 * are copied to a numbered folder in SHIM_OUT first, and a line goes to SHIM_OUT/log: number, file, when the
 * copies began, when the sync had ended. One sync at a time, so that no copy is newer than the sync that it stands
 * for. */
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { PART_BYTES = 1 << 20, PAGE_BYTES = 4096, PATH_BYTES = 600 };

static const char *const names[] = {"journal", "memory", "tensors", "sessions", "results"};
enum { N_NAMES = sizeof(names) / sizeof(names[0]) };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char part[PART_BYTES], path[PATH_BYTES], to_path[PATH_BYTES];
static unsigned number;

static long long now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000LL + now.tv_nsec;
}

/* With holes where there are zeros. */
static void copy_file(const char *from_path, const char *copy_path)
{
	static const char zeros[PAGE_BYTES];
	int from = open(from_path, O_RDONLY | O_CLOEXEC),
	    to = open(copy_path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	off_t off = 0;
	ssize_t n;

	while (from >= 0 && (n = read(from, part, sizeof(part))) > 0) {
		for (ssize_t at = 0; at < n; at += PAGE_BYTES) {
			size_t bytes = (size_t)(n - at < PAGE_BYTES ? n - at : PAGE_BYTES);
			if (memcmp(part + at, zeros, bytes) && pwrite(to, part + at, bytes, off + at) < 0)
				abort();
		}
		off += n;
	}
	if (ftruncate(to, off))
		abort();
	close(from);
	close(to);
}

static void copy_all(const char *directory, const char *out)
{
	snprintf(to_path, sizeof(to_path), "%s/%05u", out, number);
	mkdir(to_path, 0700);
	for (unsigned i = 0; i < N_NAMES; i++) {
		snprintf(path, sizeof(path), "%s/%s", directory, names[i]);
		snprintf(to_path, sizeof(to_path), "%s/%05u/%s", out, number, names[i]);
		copy_file(path, to_path);
	}
}

/* The last part of the descriptor's path, if it is a file of the state. */
static const char *name_of(int fd)
{
	static char link[PATH_BYTES];
	char from[64];

	snprintf(from, sizeof(from), "/proc/self/fd/%d", fd);
	ssize_t n = readlink(from, link, sizeof(link) - 1);
	link[n > 0 ? n : 0] = 0;
	for (unsigned i = 0; i < N_NAMES; i++) {
		const char *slash = strrchr(link, '/');
		if (slash && !strcmp(slash + 1, names[i]))
			return names[i];
	}
	return NULL;
}

static int sync_and_copy(const char *call_name, int fd)
{
	int (*call)(int) = (int (*)(int))dlsym(RTLD_NEXT, call_name);
	const char *directory = getenv("SHIM_DIR"), *out = getenv("SHIM_OUT");

	pthread_mutex_lock(&lock);
	const char *name = directory && out ? name_of(fd) : NULL;
	long long from = now_ns();
	if (name)
		copy_all(directory, out);
	int status = call(fd);
	if (name) {
		snprintf(path, sizeof(path), "%s/log", out);
		FILE *log = fopen(path, "a");
		fprintf(log, "%u %s %lld %lld\n", number++, name, from, now_ns());
		fclose(log);
	}
	pthread_mutex_unlock(&lock);
	return status;
}

int fsync(int fd)
{
	return sync_and_copy("fsync", fd);
}

int fdatasync(int fd)
{
	return sync_and_copy("fdatasync", fd);
}
