/* Which of the descriptors that systemd passes are the daemon's own, by their names. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "daemon/server/connections/activate.h"
#include "tests/support/test.h"

static void pass(const char *n, const char *names)
{
	char pid[16];
	snprintf(pid, sizeof(pid), "%d", (int)getpid());
	setenv("LISTEN_PID", pid, 1);
	setenv("LISTEN_FDS", n, 1);
	if (names)
		setenv("LISTEN_FDNAMES", names, 1);
	else
		unsetenv("LISTEN_FDNAMES");
}

static void pass_nothing(void)
{
	unsetenv("LISTEN_PID");
	unsetenv("LISTEN_FDS");
	unsetenv("LISTEN_FDNAMES");
}

TEST(test_kept_ones_are_found_by_name)
{
	pass("4", "npumem-memory:npumemd.socket:npumem-tensors:npumem-journal");
	ck_assert_int_eq(activate_kept("npumem-memory"), 3);
	ck_assert_int_eq(activate_kept("npumem-tensors"), 5);
	ck_assert_int_eq(activate_kept("npumem-journal"), 6);
	ck_assert_int_eq(activate_kept("npumem-"), -1);
	ck_assert_int_eq(activate_kept("npumem-mem"), -1);
	ck_assert_int_eq(activate_kept("npumem-memory:"), -1);
	/* More descriptors than names, more names than descriptors, none, and another process's. */
	pass("2", "npumem-memory");
	ck_assert_int_eq(activate_kept("npumem-tensors"), -1);
	pass("1", "npumem-memory:npumem-tensors");
	ck_assert_int_eq(activate_kept("npumem-tensors"), -1);
	pass("2", NULL);
	ck_assert_int_eq(activate_kept("npumem-memory"), -1);
	setenv("LISTEN_PID", "1", 1);
	setenv("LISTEN_FDNAMES", "npumem-memory", 1);
	ck_assert_int_eq(activate_kept("npumem-memory"), -1);
	pass_nothing();
	ck_assert_int_eq(activate_kept("npumem-memory"), -1);
}

TEST(test_they_are_no_sockets)
{
	char error[ADDRESS_ERROR_BYTES] = "";
	int fd = 0;
	pass("2", "npumem-memory:npumem-tensors");
	ck_assert_int_eq(activate_take(&fd, error), 0);
	ck_assert_int_eq(fd, -1);
	pass("3", "a:npumem-memory:b");
	ck_assert_int_eq(activate_take(&fd, error), -22);
	ck_assert_str_eq(error, "2 sockets were passed (LISTEN_FDS): one can be served");
	pass_nothing();
}
