/* shutdown: the daemon answers what it was asked, and ends; this waits for that. */
#include <poll.h>

#include <npumem/async.h>

#include "client/ctl/command.h"

/* The daemon's end is the connection's. */
static void wait_for_end(struct ctl *ctl)
{
	while (!npumem_process(ctl->npumem, &ctl->error)) {
		struct pollfd one = {.fd = npumem_fd(ctl->npumem), .events = POLLIN};
		poll(&one, 1, npumem_timeout(ctl->npumem));
	}
	npumem_error_clear(&ctl->error);
}

static int shutdown_run(struct ctl *ctl, const struct args *args)
{
	(void)args;
	int code = ctl_connect(ctl);
	if (code)
		return code;
	if (npumem_shutdown(ctl->npumem, &ctl->error))
		return CTL_FAILED;
	wait_for_end(ctl);
	return ctl->json ? ctl_print(ctl, json_pack("{s:b}", "shut_down", 1)) : CTL_OK;
}

const struct command shutdown_command = {
	.run = shutdown_run,
	.notes = "For root and the uid that the daemon runs as. The daemon first answers the running requests, "
		 "for at most\n"
		 "the time of npumemd --stop-seconds.",
};
