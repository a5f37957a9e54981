#include "daemon/server/process/mappings.h"

#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <uv.h>

enum {
	LONG_MS = 20,
	NS_PER_MS = 1000000,
	/* A compaction stops others for a millisecond at a time, this for as long as a client chooses. */
	PRICE = 10,
};

static pthread_mutex_t one_at_a_time = PTHREAD_MUTEX_INITIALIZER;

struct watch {
	uint64_t since_ns;
	long n_sleeps;
};

/* How often this thread slept; while others have its processor it does not sleep. */
static long n_sleeps(void)
{
	struct rusage usage;

	return getrusage(RUSAGE_THREAD, &usage) ? 0 : usage.ru_nvcsw;
}

static struct watch begin(void)
{
	pthread_mutex_lock(&one_at_a_time);
	return (struct watch){uv_hrtime(), n_sleeps()};
}

static uint64_t end(struct watch watch)
{
	uint64_t ns = uv_hrtime() - watch.since_ns;
	bool slept = n_sleeps() != watch.n_sleeps;

	pthread_mutex_unlock(&one_at_a_time);
	return slept && ns >= (uint64_t)LONG_MS * NS_PER_MS ? ns * PRICE : 0;
}

void *mappings_add(int fd, uint64_t bytes, bool writable, uint64_t *stopped_ns)
{
	struct watch watch = begin();
	/* userfaultfd takes no shared mapping that cannot be written; a private one that is only read has the same
	 * pages. */
	void *base = writable ? mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0)
			      : mmap(NULL, bytes, PROT_READ, MAP_PRIVATE, fd, 0);

	*stopped_ns = end(watch); /* which leaves errno as it is */
	return base == MAP_FAILED ? NULL : base;
}

uint64_t mappings_remove(void *base, uint64_t bytes)
{
	struct watch watch = begin();

	munmap(base, bytes);
	return end(watch);
}
