#include "daemon/server/process/mappings.h"

#include <errno.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <uv.h>

#include "daemon/service/order/stops.h"

enum {
	LONG_MS = 20,
	NS_PER_MS = 1000000,
	/* A compaction stops others for a millisecond at a time, this for as long as a client chooses. */
	PRICE = 10,
};

/* One that unmaps piece by piece would take the second lock again and again before one that waits for it. The
 * first is held by the next in line. */
static pthread_mutex_t next_in_line = PTHREAD_MUTEX_INITIALIZER, one_at_a_time = PTHREAD_MUTEX_INITIALIZER;

struct watch {
	uint64_t since_ns, since_cpu_ns;
	long n_sleeps;
};

static uint64_t cpu_ns(void)
{
	struct timespec time;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
	return (uint64_t)time.tv_sec * 1000 * NS_PER_MS + (uint64_t)time.tv_nsec;
}

/* How often this thread slept; while others have its processor it does not sleep. */
static long n_sleeps(void)
{
	struct rusage usage;

	return getrusage(RUSAGE_THREAD, &usage) ? 0 : usage.ru_nvcsw;
}

static struct watch begin(void)
{
	pthread_mutex_lock(&next_in_line);
	pthread_mutex_lock(&one_at_a_time);
	pthread_mutex_unlock(&next_in_line);
	return (struct watch){uv_hrtime(), cpu_ns(), n_sleeps()};
}

static uint64_t price_of(const struct watch *watch)
{
	uint64_t ns = uv_hrtime() - watch->since_ns, ran_ns = cpu_ns() - watch->since_cpu_ns;
	bool slept = n_sleeps() != watch->n_sleeps && ns > ran_ns;

	return slept && ns - ran_ns >= (uint64_t)LONG_MS * NS_PER_MS ? (ns - ran_ns) * PRICE : 0;
}

void *mappings_add(int fd, uint64_t bytes, bool writable, const struct stops_price *price)
{
	struct watch watch = begin();
	void *base = MAP_FAILED;
	int error = EAGAIN;
	uint64_t ns;

	/* Asked here, too: a user may have sent many shares before the first was paid for. */
	if (!stops_owes(price, uv_hrtime())) {
		/* userfaultfd takes no shared mapping that cannot be written; a private one that is only read has
		 * the same pages. */
		base = writable ? mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0)
				: mmap(NULL, bytes, PROT_READ, MAP_PRIVATE, fd, 0);
		error = errno;
		ns = price_of(&watch);
		if (ns)
			stops_pay(price, uv_hrtime(), ns);
	}
	pthread_mutex_unlock(&one_at_a_time);
	errno = error;
	return base == MAP_FAILED ? NULL : base;
}

uint64_t mappings_remove(void *base, uint64_t bytes)
{
	struct watch watch = begin();
	uint64_t ns;

	munmap(base, bytes);
	ns = price_of(&watch);
	pthread_mutex_unlock(&one_at_a_time);
	return ns;
}
