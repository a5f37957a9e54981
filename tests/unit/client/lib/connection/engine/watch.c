/* What an event loop sleeps on while sockets come and go. */
#include "client/lib/connection/engine/engine.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/test.h"

static bool is_readable(const struct watch *watch)
{
	struct pollfd pollfd = {.fd = watch->fd, .events = POLLIN | POLLOUT};
	ck_assert_int_ge(poll(&pollfd, 1, 0), 0);
	return pollfd.revents & POLLIN;
}

/* Alone, for others skip time (skip.c), and the kernel's timer does not. */
TEST(one_socket_after_the_other, .is_alone = true)
{
	struct watch watch = WATCH_INIT;
	int ends[2][2];
	/* Nobody has asked. */
	ck_assert_int_eq(watch_replace(&watch, 3), 0);
	watch_write(&watch, true);
	watch_timer(&watch, 1);
	ck_assert_int_eq(watch.fd, -1);
	for (unsigned i = 0; i < 2; i++)
		ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends[i]), 0);
	ck_assert_int_eq(watch_open(&watch, ends[0][0]), 0);
	int fd = watch.fd;
	ck_assert(!is_readable(&watch));
	watch_write(&watch, true);
	ck_assert(is_readable(&watch));
	watch_write(&watch, false);
	ck_assert(!is_readable(&watch));
	close(ends[0][1]);
	ck_assert(is_readable(&watch));
	/* A child may hold the old one open. */
	int child = fork();
	if (!child) {
		pause();
		_exit(0);
	}
	ck_assert_int_eq(watch_replace(&watch, -1), 0);
	close(ends[0][0]);
	ck_assert(!is_readable(&watch));
	watch_write(&watch, true);
	ck_assert(!is_readable(&watch));
	ck_assert_int_eq(watch_replace(&watch, ends[1][0]), 0);
	ck_assert(!is_readable(&watch));
	ck_assert_int_eq((int)write(ends[1][1], "x", 1), 1);
	ck_assert(is_readable(&watch));
	ck_assert_int_eq(watch.fd, fd);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	ck_assert_int_eq((int)recv(ends[1][0], &(char){0}, 1, 0), 1);
	ck_assert(!is_readable(&watch));
	watch_timer(&watch, clock_now() + 1000000000000);
	ck_assert(!is_readable(&watch));
	watch_timer(&watch, clock_now() - 1);
	ck_assert(is_readable(&watch));
	watch_timer(&watch, CLOCK_NEVER);
	ck_assert(!is_readable(&watch));
	/* What cannot be watched. */
	ck_assert_int_lt(watch_replace(&watch, 1000000), 0);
	ck_assert(!is_readable(&watch));
	watch_close(&watch);
	watch_close(&watch);
	ck_assert_int_lt(watch_open(&watch, 1000000), 0);
	ck_assert_int_eq(watch.fd, -1);
	close(ends[1][0]);
	close(ends[1][1]);
}
