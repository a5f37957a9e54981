/* A SIGBUS is delivered to the thread that made the access, so each thread has its own guard. */
#include "daemon/server/process/fault.h"

#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>

struct guard {
	uintptr_t base;
	size_t bytes;
	sigjmp_buf back;
};

static _Thread_local struct guard *guard;
static void (*say_last)(void *ctx, const void *address);
static void *say_ctx;

static void on_fault(int number, siginfo_t *info, void *context)
{
	struct guard *here = guard;

	(void)context;
	if (here && (uintptr_t)info->si_addr - here->base < here->bytes)
		siglongjmp(here->back, 1);
	if (say_last)
		say_last(say_ctx, info->si_addr);
	/* The access is tried again, and ends the process. */
	signal(number, SIG_DFL);
}

void fault_say(void (*say)(void *ctx, const void *address), void *ctx)
{
	say_last = say;
	say_ctx = ctx;
}

void fault_open(void)
{
	struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO};

	sigemptyset(&action.sa_mask);
	sigaction(SIGBUS, &action, NULL);
}

bool fault_guard(const void *base, size_t bytes, void (*access)(void *arg), void *arg)
{
	struct guard here = {.base = (uintptr_t)base, .bytes = bytes};

	if (sigsetjmp(here.back, 1)) {
		guard = NULL;
		return false;
	}
	guard = &here;
	/* The compiler does not know that the accesses have a handler that reads it. */
	atomic_signal_fence(memory_order_seq_cst);
	access(arg);
	atomic_signal_fence(memory_order_seq_cst);
	guard = NULL;
	return true;
}
