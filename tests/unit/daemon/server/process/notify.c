/* What systemd is given to keep. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/server/process/notify.h"
#include "tests/support/test.h"

TEST(test_a_descriptor_is_sent_with_its_name)
{
	struct sockaddr_un name = {.sun_family = AF_UNIX};
	char text[128], control[CMSG_SPACE(sizeof(int))];
	struct iovec io = {text, sizeof(text) - 1};
	struct msghdr message = {
		.msg_iov = &io, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof(control)};
	struct notify notify = {.fd = socket(AF_UNIX, SOCK_DGRAM, 0)};
	int systemd = socket(AF_UNIX, SOCK_DGRAM, 0), file = memfd_create("x", 0), got;
	struct stat sent, received;
	snprintf(name.sun_path + 1, sizeof(name.sun_path) - 1, "npumem-unit-%d", (int)getpid());
	notify.to = name;
	notify.to_bytes = (socklen_t)(sizeof(sa_family_t) + 1 + strlen(name.sun_path + 1));
	ck_assert_int_eq(bind(systemd, (struct sockaddr *)&name, notify.to_bytes), 0);
	ck_assert_int_eq(notify_keep(&notify, file, "npumem-memory"), 0);
	ssize_t n = recvmsg(systemd, &message, 0);
	ck_assert_int_gt(n, 0);
	text[n] = 0;
	ck_assert_str_eq(text, "FDSTORE=1\nFDNAME=npumem-memory");
	memcpy(&got, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(got));
	ck_assert_int_eq(fstat(file, &sent) | fstat(got, &received), 0);
	ck_assert_uint_eq(sent.st_ino, received.st_ino);
	close(systemd);
	ck_assert_int_eq(notify_keep(&notify, file, "npumem-memory"), -ECONNREFUSED);
	close(notify.fd);
	notify.fd = -1;
	ck_assert_int_eq(notify_keep(&notify, file, "npumem-memory"), -ENOTCONN);
	close(file);
	close(got);
}
