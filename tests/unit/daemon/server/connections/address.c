/* Whose a socket file is: what is in the way of one, what is removed and what stays. */
#define _GNU_SOURCE
#include "daemon/server/connections/address.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "tests/support/test.h"

static char directory[40], path[64], lock[72], error[ADDRESS_ERROR_BYTES];

static void set_up(void)
{
	snprintf(directory, sizeof(directory), "/tmp/npumem-address-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(directory));
	snprintf(path, sizeof(path), "%s/socket", directory);
	snprintf(lock, sizeof(lock), "%s.lock", path);
	error[0] = 0;
}

static void tear_down(void)
{
	unlink(path);
	unlink(lock);
	ck_assert_int_eq(rmdir(directory), 0);
}

static void refused(int status, const char *says)
{
	struct address address;
	ck_assert_int_eq(address_open(&address, path, 0600, NULL, error), status);
	ck_assert_msg(strstr(error, says) && strstr(error, path), "%s", error);
}

static bool exists(const char *name)
{
	struct stat status;
	return lstat(name, &status) == 0;
}

static int bound(const struct sockaddr_un *name, socklen_t bytes)
{
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(bind(fd, (const struct sockaddr *)name, bytes), 0);
	return fd;
}

TEST(test_one_daemon_at_a_time)
{
	struct address address;
	struct stat status;
	ck_assert_int_eq(address_open(&address, path, 0640, NULL, error), 0);
	ck_assert_int_eq(stat(path, &status), 0);
	ck_assert(S_ISSOCK(status.st_mode));
	ck_assert_int_eq((int)status.st_mode & 0777, 0640);
	refused(-EADDRINUSE, "another daemon is on");
	ck_assert(exists(path));
	address_close(&address);
	ck_assert(!exists(path));
	ck_assert_int_eq(address_open(&address, path, 0640, NULL, error), 0);
	address_close(&address);
}

TEST(test_what_is_in_the_way)
{
	struct sockaddr_un name = {.sun_family = AF_UNIX};
	struct address address;
	int fd = open(path, O_WRONLY | O_CREAT, 0600);
	close(fd);
	refused(-EEXIST, "exists and is not a socket");
	ck_assert(exists(path));
	unlink(path);
	/* Somebody who knows no lock, and is asked; and what is left of them. */
	snprintf(name.sun_path, sizeof(name.sun_path), "%s", path);
	fd = bound(&name, sizeof(name));
	ck_assert_int_eq(listen(fd, 1), 0);
	refused(-EADDRINUSE, "another daemon is on");
	ck_assert(exists(path));
	close(fd);
	ck_assert_int_eq(address_open(&address, path, 0600, NULL, error), 0);
	address_close(&address);
	/* A lock that leads elsewhere is not followed. */
	unlink(lock);
	ck_assert_int_eq(symlink("elsewhere", lock), 0);
	refused(-ELOOP, "cannot open");
	ck_assert(!exists(path));
}

TEST(test_one_directory_is_made)
{
	struct address address;
	char below[100];
	snprintf(below, sizeof(below), "%s/a/b/socket", directory);
	ck_assert_int_eq(address_open(&address, below, 0600, NULL, error), -ENOENT);
	ck_assert_ptr_nonnull(strstr(error, "make directory"));
	snprintf(below, sizeof(below), "%s/a/socket", directory);
	ck_assert_int_eq(address_open(&address, below, 0600, NULL, error), 0);
	address_close(&address);
	snprintf(below, sizeof(below), "%s/a/socket.lock", directory);
	unlink(below);
	snprintf(below, sizeof(below), "%s/a", directory);
	ck_assert_int_eq(rmdir(below), 0);
}

TEST(test_a_name_without_a_directory)
{
	int before = open(".", O_RDONLY | O_DIRECTORY);
	struct address address;
	ck_assert_int_eq(chdir(directory), 0);
	ck_assert_int_eq(address_open(&address, "socket", 0600, NULL, error), 0);
	ck_assert(exists(path));
	address_close(&address);
	ck_assert(!exists(path));
	ck_assert_int_eq(fchdir(before), 0);
	close(before);
}

TEST(test_what_is_adopted_stays)
{
	struct sockaddr_un name = {.sun_family = AF_UNIX};
	struct address address;
	char abstract[32];
	snprintf(name.sun_path, sizeof(name.sun_path), "%s", path);
	address_adopt(&address, bound(&name, sizeof(name)));
	ck_assert_str_eq(address.path, path);
	address_close(&address);
	ck_assert(exists(path));
	/* One without a file is called as ss and lsof call it; one without a name is not called anything. */
	memset(name.sun_path, 0, sizeof(name.sun_path));
	snprintf(abstract, sizeof(abstract), "@npumem-%d", (int)getpid());
	memcpy(name.sun_path + 1, abstract + 1, strlen(abstract) - 1);
	address_adopt(&address,
		      bound(&name, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(abstract))));
	ck_assert_str_eq(address.path, abstract);
	address_close(&address);
	address_adopt(&address, socket(AF_UNIX, SOCK_STREAM, 0));
	ck_assert_str_eq(address.path, "");
	address_close(&address);
}

FIXTURE(set_up, tear_down)
