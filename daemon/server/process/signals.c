#include "daemon/server/process/signals.h"

#include <errno.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

/* The last one is the kernel's report that the thread that started this process has ended. */
static const int numbers[SIGNALS] = {SIGTERM, SIGINT, SIGUSR1};

static void set_mask(int how)
{
	sigset_t set;

	sigemptyset(&set);
	for (unsigned i = 0; i < SIGNALS; i++)
		sigaddset(&set, numbers[i]);
	pthread_sigmask(how, &set, NULL);
}

void signals_hold(void)
{
	set_mask(SIG_BLOCK);
}

static void on_signal(uv_signal_t *handle, int number)
{
	struct signals *signals = handle->data;

	if (number == SIGTERM)
		signals->stop(signals->ctx, "terminated");
	else if (number == SIGINT)
		signals->stop(signals->ctx, "interrupted");
	else if (getppid() != signals->parent) /* the whole process has ended, and not only that thread */
		signals->stop(signals->ctx, NULL);
}

int signals_open(struct signals *signals, uv_loop_t *loop, bool with_parent)
{
	int status = 0;

	signals->parent = getppid();
	for (unsigned i = 0; !status && i < SIGNALS; i++) {
		status = uv_signal_init(loop, &signals->handles[i]);
		signals->handles[i].data = signals;
		if (!status && (with_parent || numbers[i] != SIGUSR1))
			status = uv_signal_start(&signals->handles[i], on_signal, numbers[i]);
	}
	if (!status && with_parent && prctl(PR_SET_PDEATHSIG, SIGUSR1))
		status = -errno;
	set_mask(SIG_UNBLOCK);
	return status;
}

void signals_close(struct signals *signals)
{
	for (unsigned i = 0; i < SIGNALS; i++)
		uv_close((uv_handle_t *)&signals->handles[i], NULL);
}
