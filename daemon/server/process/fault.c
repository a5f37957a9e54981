/* A table that the handler can read at any time: a slot is free while its base is 0, and that is written last.
 * Only the loop's thread adds and removes, so a slot does not change while anybody may fault in it. mmap is not on
 * the list of what a handler may call, but is a bare system call here. */
#include "daemon/server/process/fault.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

struct range {
	_Atomic(uintptr_t) base;
	size_t bytes;
	atomic_bool is_broken;
};

static struct range ranges[FAULT_RANGES_MAX];
static atomic_uint n_broken; /* of them: ordinarily none, and nobody is looked for */

static struct range *find(uintptr_t address)
{
	for (unsigned i = 0; i < FAULT_RANGES_MAX; i++) {
		uintptr_t base = atomic_load(&ranges[i].base);

		if (base && address >= base && address - base < ranges[i].bytes)
			return &ranges[i];
	}
	return NULL;
}

static void on_fault(int number, siginfo_t *info, void *context)
{
	struct range *range = find((uintptr_t)info->si_addr);
	int saved = errno;

	(void)context;
	if (range && mmap((void *)atomic_load(&range->base), range->bytes, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0) != MAP_FAILED) {
		if (!atomic_exchange(&range->is_broken, true))
			atomic_fetch_add(&n_broken, 1);
	} else {
		/* The access is tried again, and ends the process. */
		signal(number, SIG_DFL);
	}
	errno = saved;
}

void fault_open(void)
{
	struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_RESTART};

	sigemptyset(&action.sa_mask);
	sigaction(SIGBUS, &action, NULL);
}

bool fault_add(void *base, size_t bytes)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	for (unsigned i = 0; i < FAULT_RANGES_MAX; i++) {
		if (atomic_load(&ranges[i].base))
			continue;
		ranges[i].bytes = (bytes + page - 1) / page * page;
		atomic_store(&ranges[i].is_broken, false);
		atomic_store(&ranges[i].base, (uintptr_t)base);
		return true;
	}
	return false;
}

void fault_remove(const void *base)
{
	struct range *range = find((uintptr_t)base);

	if (!range)
		return;
	if (atomic_load(&range->is_broken))
		atomic_fetch_sub(&n_broken, 1);
	atomic_store(&range->base, 0);
}

bool fault_is_broken(const void *base)
{
	const struct range *range = atomic_load(&n_broken) ? find((uintptr_t)base) : NULL;

	return range && atomic_load(&range->is_broken);
}
