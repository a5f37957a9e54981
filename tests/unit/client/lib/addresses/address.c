#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <npumem/async.h>

#include "client/lib/addresses/address.h"
#include "tests/support/test.h"

static struct address parsed(const char *text)
{
	struct address address;
	ck_assert_int_eq(address_parse(text, &address, NULL), 0);
	return address;
}

TEST(forms)
{
	ck_assert_str_eq(parsed("/a/b.sock").path, "/a/b.sock");
	ck_assert_str_eq(parsed("unix:/a/b.sock").path, "/a/b.sock");
	ck_assert(!parsed("unix:spawn:").spawn);
	ck_assert(parsed("spawn:").spawn);
	ck_assert_str_eq(parsed("spawn:--npus 4").options, "--npus 4");
}

TEST(other_hosts)
{
	static const char *const wrong[] = {"ssh:",	"ssh:-x",  "ssh:u@-x", "ssh:u@",  "ssh:@h",  "ssh:a b",
					    "ssh:a;b",	"ssh:/s",  "ssh:h/s",  "ssh://h", "ssh:a%b", "ssh:a\nb",
					    "ssh:$(x)", "ssh::/s", "ssh:a'b",  "ssh:*",	  "ssh:-"};
	char text[ADDRESS_HOST_BYTES + 8];
	struct address address;
	ck_assert_str_eq(parsed("ssh:npu").host, "npu");
	ck_assert_str_eq(parsed("ssh:npu").path, "");
	ck_assert_str_eq(parsed("ssh:me@npu-1.farm:/run/s:/2").host, "me@npu-1.farm");
	ck_assert_str_eq(parsed("ssh:me@npu-1.farm:/run/s:/2").path, "/run/s:/2");
	ck_assert_str_eq(parsed("ssh:me@::1:/s").host, "me@::1");
	ck_assert_str_eq(parsed("ssh:me@realm@[fe80::1]").host, "me@realm@[fe80::1]");
	ck_assert(!address_is_remote(&(struct address){.path = "/a"}));
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		ck_assert_msg(address_parse(wrong[i], &address, NULL) == NPUMEM_INVALID, "%s", wrong[i]);
	memset(text, 'a', sizeof(text));
	memcpy(text, "ssh:", 4);
	text[4 + ADDRESS_HOST_BYTES] = 0;
	ck_assert_int_eq(address_parse(text, &address, NULL), NPUMEM_INVALID);
	text[3 + ADDRESS_HOST_BYTES] = 0;
	ck_assert_int_eq(address_parse(text, &address, NULL), 0);
}

TEST(defaults)
{
	char directory[] = "/tmp/npumem-address-XXXXXX", path[64];
	ck_assert_ptr_nonnull(mkdtemp(directory));
	snprintf(path, sizeof(path), "%s/npumem.sock", directory);
	setenv("NPUMEM_SOCKET", "/from/environment", 1);
	setenv("XDG_RUNTIME_DIR", directory, 1);
	ck_assert_str_eq(parsed(NULL).path, "/from/environment");
	setenv("NPUMEM_SOCKET", "spawn:", 1);
	ck_assert(parsed(NULL).spawn);
	unsetenv("NPUMEM_SOCKET");
	ck_assert_str_eq(parsed(NULL).path, "/run/npumem/npumem.sock");
	FILE *file = fopen(path, "w");
	ck_assert_ptr_nonnull(file);
	fclose(file);
	ck_assert_str_eq(parsed(NULL).path, path);
	unsetenv("XDG_RUNTIME_DIR");
	ck_assert_str_eq(parsed(NULL).path, "/run/npumem/npumem.sock");
	unlink(path);
	rmdir(directory);
}

TEST(refusals)
{
	struct address address;
	struct npumem_error error = {0};
	char path[200];
	memset(path, 'a', sizeof(path));
	path[0] = '/';
	path[108] = 0;
	ck_assert_int_eq(address_parse(path, &address, &error), NPUMEM_INVALID);
	ck_assert_str_eq(error.message,
			 "a socket path of 108 bytes is longer than the 107 that a socket can have");
	path[107] = 0;
	ck_assert_int_eq(address_parse(path, &address, NULL), 0);
	ck_assert_int_eq(address_parse("", &address, NULL), NPUMEM_INVALID);
	ck_assert_int_eq(address_parse("unix:", &address, NULL), NPUMEM_INVALID);
}

TEST(nobody_there)
{
	struct npumem *npumem = (void *)&npumem;
	struct npumem_error error;
	memset(&error, 0x55, sizeof(error));
	ck_assert_int_eq(npumem_open("/nowhere/npumem.sock", NULL, &npumem, &error), NPUMEM_UNAVAILABLE);
	ck_assert_str_eq(error.message,
			 "cannot reach a daemon at /nowhere/npumem.sock: No such file or directory");
	ck_assert_ptr_null(npumem);
	ck_assert_int_eq(npumem_open("/nowhere/npumem.sock", NULL, &npumem, NULL), NPUMEM_UNAVAILABLE);
}

TEST(somebody_there)
{
	char directory[] = "/tmp/npumem-address-XXXXXX";
	struct sockaddr_un name = {.sun_family = AF_UNIX};
	struct npumem *npumem;
	struct npumem_error error;
	ck_assert_ptr_nonnull(mkdtemp(directory));
	snprintf(name.sun_path, sizeof(name.sun_path), "%s/s", directory);
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	ck_assert_int_eq(bind(fd, (struct sockaddr *)&name, sizeof(name)), 0);
	ck_assert_int_eq(listen(fd, 1), 0);
	ck_assert_int_eq(npumem_open(name.sun_path, NULL, &npumem, &error), 0);
	ck_assert_int_ge(npumem_fd(npumem), 0);
	close(accept(fd, NULL, NULL));
	ck_assert_int_eq(npumem_info(npumem, NULL, &error), NPUMEM_UNAVAILABLE);
	npumem_close(npumem);
	close(fd);
	unlink(name.sun_path);
	rmdir(directory);
}

/* A daemon that takes no connection: its queue is full, and the next one waits. */
TEST(nobody_takes_the_connection)
{
	char directory[] = "/tmp/npumem-address-XXXXXX";
	struct sockaddr_un name = {.sun_family = AF_UNIX};
	struct npumem_options options = NPUMEM_OPTIONS_INIT;
	struct npumem *first, *second, *third;
	struct npumem_error error;
	ck_assert_ptr_nonnull(mkdtemp(directory));
	snprintf(name.sun_path, sizeof(name.sun_path), "%s/s", directory);
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	ck_assert_int_eq(bind(fd, (struct sockaddr *)&name, sizeof(name)), 0);
	ck_assert_int_eq(listen(fd, 0), 0);
	options.connect_ms = 50;
	ck_assert_int_eq(npumem_open(name.sun_path, &options, &first, &error), 0);
	ck_assert_int_eq(npumem_open(name.sun_path, &options, &second, &error), NPUMEM_DEADLINE_EXCEEDED);
	ck_assert_ptr_null(second);
	ck_assert_ptr_nonnull(strstr(error.message, "Connection timed out"));
	/* And no longer once there is room. */
	int taken = accept(fd, NULL, NULL);
	ck_assert_int_ge(taken, 0);
	options.connect_ms = NPUMEM_FOREVER;
	ck_assert_int_eq(npumem_open(name.sun_path, &options, &third, &error), 0);
	npumem_close(first);
	npumem_close(third);
	close(taken);
	close(fd);
	unlink(name.sun_path);
	rmdir(directory);
}

TEST(options_that_are_none)
{
	struct npumem_options options = {.size = 3};
	struct npumem *npumem = (void *)&options;
	struct npumem_error error;
	int ends[2];
	ck_assert_int_eq(npumem_open("/nowhere/npumem.sock", &options, &npumem, &error), NPUMEM_INVALID);
	ck_assert_ptr_null(npumem);
	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
	ck_assert_int_eq(npumem_open_fd(ends[0], &options, &npumem, &error), NPUMEM_INVALID);
	/* The fd was taken over all the same. */
	char byte;
	ck_assert_int_eq((int)read(ends[1], &byte, 1), 0);
	close(ends[1]);
}
