/* dial: the other end of ssh:. Both ways at once, each with a thread that waits for nothing but its own; the end
 * of one way is passed on, and the other goes on. The daemon's end is the command's. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "client/ctl/command.h"
#include "client/ctl/core/memory.h"

enum { DIAL_BYTES = 256 << 10 };

struct dial_way {
	int from, to;
	char *bytes;
	int then;	     /* of `to`, at the end: SHUT_WR or SHUT_RDWR */
	atomic_bool is_over; /* `from` has ended */
};

/* Copies until the source ends or the destination is closed. 0 or an errno. */
static int dial_copy(const struct dial_way *way)
{
	for (;;) {
		ssize_t n = read(way->from, way->bytes, DIAL_BYTES);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? errno : 0;
		for (ssize_t at = 0, put; at < n; at += put) {
			put = write(way->to, way->bytes + at, (size_t)(n - at));
			if (put < 0 && errno != EINTR)
				return errno;
			put = put < 0 ? 0 : put;
		}
	}
}

static void *dial_send(void *context)
{
	struct dial_way *way = context;
	if (!dial_copy(way))
		atomic_store(&way->is_over, true);
	shutdown(way->to, way->then);
	return NULL;
}

static int dial_both(struct ctl *ctl, int fd, int then, char *bytes)
{
	struct dial_way out = {.from = STDIN_FILENO, .to = fd, .bytes = bytes, .then = then};
	struct dial_way in = {.from = fd, .to = STDOUT_FILENO, .bytes = bytes + DIAL_BYTES};
	pthread_t thread;
	int err = pthread_create(&thread, NULL, dial_send, &out);
	if (err)
		return ctl_fail(ctl, "cannot start a thread: %s", strerror(err));
	err = dial_copy(&in);
	/* The other thread may wait for input that never comes, and its destination is closed. */
	pthread_cancel(thread);
	pthread_join(thread, NULL);
	/* The daemon may end a connection with something unread. */
	if (err && err != ECONNRESET)
		return ctl_fail(ctl, "the connection broke: %s", strerror(err));
	/* ssh's last message is the client's only sign of which end closed the connection. */
	if (then == SHUT_RDWR && !atomic_load(&out.is_over))
		return ctl_fail(ctl, "the daemon closed the connection");
	return CTL_OK;
}

static int dial_run(struct ctl *ctl, const struct args *args)
{
	int fd, code, then = args_has(args, "--close") ? SHUT_RDWR : SHUT_WR;
	if (npumem_dial(ctl->address, NULL, &fd, &ctl->error))
		return CTL_FAILED;
	/* What the daemon said before it went is still to be passed on. */
	signal(SIGPIPE, SIG_IGN);
	code = dial_both(ctl, fd, then, memory_new(2, DIAL_BYTES));
	close(fd);
	return code;
}

static const struct option dial_options[] = {
	{"--close", NULL,
	 "at the end of stdin, closes the connection; requests without an answer end, as when a client exits",
	 false},
	{NULL, NULL, NULL, false},
};

const struct command dial_command = {
	.options = dial_options,
	.run = dial_run,
	.notes = "For other programs, which speak the daemon's protocol over stdin and stdout.\n"
		 "npumemctl --socket ssh:HOST ... runs it on HOST.",
};
