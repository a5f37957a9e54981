/* Owns a daemon and the file in which it counts. Nothing is timed here. */
#include "tests/bench/rpc/heap.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/bench/rpc/load.h"
#include "tests/bench/rpc/requests.h"

enum { REQUESTS = 10000, SMALL_W = 16, LONG_W = 480 * 1024, LONG_FILLS = 4, MANY = 100, WARM_UP = 1000 };

static const volatile uint64_t *calls;

/* Per request, of at least REQUESTS. */
static double count(struct load *load, int fd)
{
	unsigned n = (REQUESTS + load->counts - 1) / load->counts;
	load_repeat(load, fd, WARM_UP / load->counts + 1);
	uint64_t before = *calls;
	load_repeat(load, fd, n);
	double per_request = (double)(*calls - before) / n / load->counts;
	load_free(load);
	return per_request;
}

static double count_fills(int fd, uint64_t handle, unsigned in_flight)
{
	struct load load = {.n_batches = 1, .counts = in_flight};
	for (unsigned i = 0; i < in_flight; i++)
		requests_fill(&load.batches[0], handle);
	return count(&load, fd);
}

static double count_submit(int fd, uint64_t handle)
{
	struct load load = {.n_batches = 1, .counts = MANY};
	requests_submit(&load.batches[0], &handle, 1, MANY);
	return count(&load, fd);
}

static double count_allocs(int fd)
{
	enum { HANDLE = 0x5a5a5a5a };
	struct load load = {.n_batches = 2, .counts = 2};
	requests_alloc(&load.batches[0], SMALL_W);
	requests_free(&load.batches[1], HANDLE);
	load.handle_off = requests_handle_off(&load.batches[1], HANDLE);
	return count(&load, fd);
}

/* Short fills that wait for long ones, without what the long ones cost. */
static double count_waiting(int fd)
{
	uint64_t whole = requests_tensor(fd, LONG_W, 0), part = requests_tensor(fd, SMALL_W, whole);
	struct load alone = {.n_batches = 1, .counts = MANY}, both = alone;
	for (unsigned i = 0; i < LONG_FILLS; i++) {
		requests_fill(&alone.batches[0], whole);
		requests_fill(&both.batches[0], whole);
	}
	for (unsigned i = 0; i < MANY; i++)
		requests_fill(&both.batches[0], part);
	return count(&both, fd) - count(&alone, fd);
}

bool heap_measure(const char *const *arguments, const char *path, const char *library,
		  void (*tell)(const char *name, double calls))
{
	char count_path[] = "/tmp/bench-count-XXXXXX";
	int counter = mkstemp(count_path);
	struct peer peer;
	if (counter < 0 || ftruncate(counter, sizeof(*calls)))
		peer_die("no file to count in");
	const void *memory = mmap(NULL, sizeof(*calls), PROT_READ, MAP_SHARED, counter, 0);
	if (memory == MAP_FAILED)
		peer_die("no file to count in");
	calls = memory;
	close(counter);
	if (!access(library, R_OK))
		peer_start(&peer, arguments, path, library, count_path);
	unlink(count_path);
	bool there = !access(library, R_OK) && peer.pid;
	if (there) {
		int fd = peer_connect(&peer);
		uint64_t handle = requests_tensor(fd, SMALL_W, 0);
		if (!*calls)
			peer_die("the daemon counts nothing");
		tell("fill, one at a time", count_fills(fd, handle, 1));
		tell("fill, 32 in flight", count_fills(fd, handle, 32));
		tell("fill, 100 behind long ones", count_waiting(fd));
		tell("alloc and free, one at a time", count_allocs(fd));
		tell("a fill in a submit of 100", count_submit(fd, handle));
		close(fd);
		peer_end(&peer);
	}
	munmap((void *)(uintptr_t)memory, sizeof(*calls));
	return there;
}
