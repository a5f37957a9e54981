/* Which account a uid counts as: by the texts of subuid(5) and passwd(5), and when the file changes. */
#define _GNU_SOURCE
#include "daemon/server/process/accounts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/support/test.h"

static const char passwd[] = "root:x:0:0::/root:/bin/sh\n"
			     "npumem:x:500:500::/:/bin/false\n"
			     "alice:x:1001:1001::/home/alice:/bin/sh\n"
			     "bob:x:1002:1002\n"
			     "broken\n"
			     "bobby:x:1003:1003::/:";

static struct accounts accounts;

static void parse(const char *subuid)
{
	free(accounts.ranges);
	accounts = (struct accounts){.admin = 500};
	accounts.n = accounts_parse(subuid, passwd, 500, &accounts.ranges);
}

static void close_accounts(void)
{
	accounts_close(&accounts);
}

#define OF(uid, account) ck_assert_uint_eq(accounts_of(&accounts, uid), account)

TEST(subordinates_count_as_their_owner)
{
	parse("alice:100000:65536\nbob:200000:10\n1003:300000:1\nalice:400000:5\n");
	OF(1001, 1001);
	OF(99999, 99999);
	OF(100000, 1001);
	OF(165535, 1001);
	OF(165536, 165536);
	OF(200009, 1002);
	OF(300000, 1003);
	OF(300001, 300001);
	OF(400004, 1001);
}

/* A directory service may know the name, and is not asked: all its ranges are one account. */
TEST(an_unknown_name_is_an_account)
{
	parse("carol:100000:10\nalice:200000:10\ncarol:300000:10");
	OF(100009, 100000);
	OF(300003, 100000);
	OF(200000, 1001);
}

/* They share with nobody, and what runs in a container of theirs must not be like them. */
TEST(ranges_of_root_and_of_the_daemon_are_accounts)
{
	parse("root:100000:10\nnpumem:200000:10\n0:300000:10\n500:400000:10\nalice:0:1001\n");
	OF(100005, 100000);
	OF(200005, 200000);
	OF(300005, 300000);
	OF(400005, 400000);
	OF(0, 0);
	OF(500, 500);
	OF(7, 1001);
}

TEST(subordinates_of_subordinates)
{
	parse("alice:100000:10\n100001:200000:10\n1005:1005:1\n300000:300001:1\n300001:300000:1\n");
	OF(200000, 1001);
	OF(1005, 1005);
	/* Whatever it is, it ends. */
	accounts_of(&accounts, 300000);
}

TEST(the_first_line_counts)
{
	parse("alice:100000:10\nbob:100005:10\n");
	OF(100007, 1001);
	OF(100012, 1002);
}

static const char *const senseless[] = {
	"",
	"\n\n:\n::\n:::\n",
	"alice",
	"alice:100000",
	"alice:100000:0",
	"alice:100000:-1",
	"alice::10",
	":100000:10",
	"alice:4294967295:2",
	"alice:99999999999999999999:1",
	"alice:100000:99999999999999999999",
	"alice: 100000:10",
	"#alice:100000:10",
	"alice:0x100000:10",
};

TEST(a_senseless_line_is_skipped, .to = sizeof(senseless) / sizeof(senseless[0]))
{
	char text[128];
	parse(senseless[_i]);
	ck_assert_uint_eq(accounts.n, 0);
	OF(100000, 100000);
	snprintf(text, sizeof(text), "%s\nbob:100000:1\n", senseless[_i]);
	parse(text);
	ck_assert_uint_eq(accounts.n, 1);
	OF(100000, 1002);
}

TEST(the_last_uid_that_there_is)
{
	parse("alice:4294967290:6\n");
	OF(4294967295u, 1001);
	OF(4294967289u, 4294967289u);
}

static void write_file(const char *path, const char *text)
{
	char new_path[64];
	snprintf(new_path, sizeof(new_path), "%s+", path);
	FILE *file = fopen(new_path, "w");
	ck_assert_ptr_nonnull(file);
	fputs(text, file);
	fclose(file);
	ck_assert_int_eq(rename(new_path, path), 0);
}

TEST(the_file_is_read_again)
{
	char path[] = "/tmp/npumem-subuid-XXXXXX";
	int fd = mkstemp(path);
	ck_assert_int_ge(fd, 0);
	close(fd);
	accounts_open(&accounts, path, 500);
	OF(100000, 100000);
	write_file(path, "1001:100000:10\n");
	OF(100000, 100000);
	accounts_refresh(&accounts);
	OF(100000, 1001);
	accounts_refresh(&accounts);
	OF(100000, 1001);
	/* What cannot be read changes nothing. */
	unlink(path);
	ck_assert_int_eq(mkdir(path, 0700), 0);
	for (unsigned i = 0; i < 3; i++) {
		accounts_refresh(&accounts);
		OF(100000, 1001);
	}
	rmdir(path);
	accounts_refresh(&accounts);
	OF(100000, 100000);
	write_file(path, "1002:100000:10\n");
	accounts_refresh(&accounts);
	OF(100000, 1002);
	unlink(path);
}

TEST(without_a_file_each_uid_is_an_account)
{
	accounts_open(&accounts, "/nonexistent/subuid", 500);
	OF(100000, 100000);
	accounts_refresh(&accounts);
	accounts_close(&accounts);
	ck_assert_int_lt(accounts_open(&accounts, "/dev", 500), 0);
	OF(100000, 100000);
	accounts_close(&accounts);
	accounts_open(&accounts, NULL, 500);
	accounts_refresh(&accounts);
	OF(100000, 100000);
}

FIXTURE(NULL, close_accounts)
