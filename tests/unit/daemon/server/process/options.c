/* The command line: what is refused, and the line that says why. */
#define _GNU_SOURCE
#include "daemon/server/process/options.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/support/test.h"

enum { WORDS_MAX = 2 * OPTIONS_OWN_LIMITS_MAX + 8 };

static struct options options;
static char error[OPTIONS_ERROR_BYTES];

/* Of options and values, NULL behind the last. */
static enum options_result parse(const char *const *words)
{
	char *argv[WORDS_MAX + 2] = {(char *)"npumemd"};
	int argc = 1;
	while (*words)
		argv[argc++] = (char *)*words++;
	optind = 0; /* begins anew */
	error[0] = 0;
	return options_parse(argc, argv, &options, error);
}

#define PARSE(...) parse((const char *const[]){__VA_ARGS__, NULL})

static const struct {
	const char *option, *value, *says;
} bad[] = {
	{"--socket", "", "a socket path has 1 to 107 bytes"},
	{"--state-dir", "", "a directory has a name"},
	{"--boot-id", "", "32 hexadecimal digits"},
	{"--mode", "1000", "a mode is 0 to 0777"},
	{"--mode", "-1", "a mode is 0 to 0777"},
	{"--mode", "8", "a mode is 0 to 0777"},
	{"--mode", "", "a mode is 0 to 0777"},
	{"--mode", " 7", "a mode is 0 to 0777"},
	{"--fd", "99999999999999999999", "not a file descriptor"},
	{"--fd", "2147483648", "not a file descriptor"},
	{"--npus", "4x", "not a number"},
	{"--npu-bytes", "64Q", "not a number of bytes"},
	{"--pack-bytes", "", "not a number of bytes"},
	{"--rounding", "down", "must be one of convergent, up, nearest"},
	{"--uninitialized", "", "one of refuse, warn, allow"},
	{"--log", "loud", "one of error, warning, info, debug"},
	{"--chip", "bm", "must be one of bm1684 bm1684x"},
	{"--isa", "mmx", "must be one of scalar avx2"},
	{"--frame-seconds", "0", "1 to 86400 seconds"},
	{"--frame-seconds", "86401", "1 to 86400 seconds"},
	{"--compact-percent", "0", "1 to 100 percent"},
	{"--compact-percent", "101", "1 to 100 percent"},
	{"--spin-us", "1001", "0 to 1000 microseconds"},
	{"--limit", "tensors", "KEY=VALUE, with KEY one of"},
	{"--limit", "=5", "KEY=VALUE, with KEY one of"},
	{"--limit", "a_name_that_is_longer_than_any_key_is=5", "KEY=VALUE, with KEY one of"},
	{"--limit", "tensors=0", "a limit is a number above 0"},
	{"--limit", "tensors=1K", "a limit is a number above 0"},
	{"--limit", "device_bytes=0", "a limit is a number of bytes above 0"},
	{"--limit", "device_bytes=K", "a limit is a number of bytes above 0"},
	{"--limit-uid", "tensors=5", "UID:KEY=VALUE"},
	{"--limit-uid", ":tensors=5", "UID:KEY=VALUE"},
	{"--limit-uid", "-1:tensors=5", "UID:KEY=VALUE"},
	{"--limit-uid", "4294967296:tensors=5", "UID:KEY=VALUE"},
	{"--limit-uid", "10000000000000000000:tensors=5", "UID:KEY=VALUE"},
	{"--limit-uid", "root:tensors=5", "UID:KEY=VALUE"},
	{"--limit-uid", "7:tensors", "KEY=VALUE, with KEY one of"},
	{"--limit-uid", "7:tensors=-1", "a limit is a number above 0"},
};

enum { N_BAD = sizeof(bad) / sizeof(bad[0]) };

TEST(test_a_bad_value_is_named, .to = N_BAD)
{
	const char *option = bad[_i].option, *value = bad[_i].value;
	char names[64];
	ck_assert_int_eq(PARSE(option, value), OPTIONS_BAD);
	snprintf(names, sizeof(names), "%s %s: ", option, value);
	ck_assert_msg(strncmp(error, names, strlen(names)) == 0, "%s", error);
	ck_assert_msg(strstr(error, bad[_i].says) != NULL, "%s", error);
	ck_assert_uint_eq(options.n_own_limits, 0);
}

TEST(test_what_goes_without_another)
{
	ck_assert_int_eq(PARSE("--fd", "3", "--socket", "s"), OPTIONS_BAD);
	ck_assert_str_eq(error, "--fd goes without --socket");
	ck_assert_int_eq(PARSE("--fd", "3", "--background"), OPTIONS_BAD);
	ck_assert_str_eq(error, "--fd goes without --background");
	ck_assert_int_eq(PARSE("--fd", "3", "--users", "g"), OPTIONS_BAD);
	ck_assert_str_eq(error, "--fd goes without --users");
	ck_assert_int_eq(PARSE("--socket", "s", "--durable"), OPTIONS_BAD);
	ck_assert_str_eq(error, "--durable goes with --state-dir");
	ck_assert_int_eq(PARSE("--socket", "s", "--replay"), OPTIONS_BAD);
	ck_assert_str_eq(error, "--replay goes with --state-dir");
	ck_assert_int_eq(PARSE("--chip", "bm1684", "--npu-bytes", "64K"), OPTIONS_BAD);
	ck_assert_str_eq(error, "--chip goes without --npus, --npu-bytes and --banks");
	ck_assert_int_eq(PARSE("--socket", "s", "--npus", "1025"), OPTIONS_BAD);
	ck_assert_str_ne(error, "");
	ck_assert_int_eq(PARSE("--fd", "3", "--durable", "--state-dir", "d"), OPTIONS_RUN);
	ck_assert_int_eq(options.fd, 3);
	ck_assert(options.durable);
	ck_assert_str_eq(options.state_dir, "d");
}

TEST(test_words_that_are_none)
{
	ck_assert_int_eq(PARSE("--loud"), OPTIONS_BAD);
	ck_assert_str_eq(error, "--loud: no such option");
	ck_assert_int_eq(PARSE("--socket"), OPTIONS_BAD);
	ck_assert_str_eq(error, "--socket: needs a value");
	ck_assert_int_eq(PARSE("--socket", "s", "word"), OPTIONS_BAD);
	ck_assert_str_eq(error, "word: npumemd takes options only");
	/* It is for a terminal. */
	ck_assert_int_eq(PARSE("--socket", "s", "a\n\x1b[2J"), OPTIONS_BAD);
	for (const char *at = error; *at; at++)
		ck_assert_int_ge(*at, ' ');
}

TEST(test_uids_have_limits_of_their_own)
{
	const char *words[WORDS_MAX] = {NULL};
	unsigned n = 0;
	ck_assert_int_eq(
		PARSE("--socket", "s", "--limit-uid", "0:tensors=5", "--limit-uid", "4294967295:device_bytes=64K"),
		OPTIONS_RUN);
	ck_assert_uint_eq(options.n_own_limits, 2);
	ck_assert_uint_eq(options.own_limits[0].uid, 0);
	ck_assert_uint_eq(options.own_limits[0].most, 5);
	ck_assert_uint_eq(options.own_limits[1].uid, UINT32_MAX);
	ck_assert_uint_eq(options.own_limits[1].most, 65536);
	for (unsigned i = 0; i <= OPTIONS_OWN_LIMITS_MAX; i++) {
		words[n++] = "--limit-uid";
		words[n++] = "7:tensors=5";
	}
	ck_assert_int_eq(parse(words), OPTIONS_BAD);
	ck_assert_str_eq(error, "--limit-uid 7:tensors=5: no more than 64 of these are possible");
	words[n - 2] = NULL;
	ck_assert_int_eq(parse(words), OPTIONS_RUN);
	ck_assert_uint_eq(options.n_own_limits, OPTIONS_OWN_LIMITS_MAX);
}

/* Of somebody who is not root. */
TEST(test_where_it_listens_by_itself)
{
	bool is_root = geteuid() == 0;
	char directory[120] = "/";
	setenv("XDG_RUNTIME_DIR", "/run/user/7", 1);
	if (is_root) {
		ck_assert_int_eq(PARSE("--durable", "--state-dir", "d"), OPTIONS_RUN);
		ck_assert_str_eq(options.socket, "/run/npumem/npumem.sock");
		ck_assert_int_eq(seteuid(65534), 0);
	}
	ck_assert_int_eq(PARSE("--share-device"), OPTIONS_RUN);
	ck_assert_str_eq(options.socket, "/run/user/7/npumem.sock");
	setenv("XDG_RUNTIME_DIR", "run", 1); /* relative, which is to be ignored */
	ck_assert_int_eq(PARSE("--share-device"), OPTIONS_RUN);
	ck_assert_str_eq(options.socket, "/run/npumem/npumem.sock");
	memset(directory + 1, 'a', 106 - strlen("/npumem.sock"));
	setenv("XDG_RUNTIME_DIR", directory, 1);
	ck_assert_int_eq(PARSE("--share-device"), OPTIONS_RUN);
	ck_assert_uint_eq(strlen(options.socket), OPTIONS_PATH_BYTES - 1);
	strcat(directory, "a");
	setenv("XDG_RUNTIME_DIR", directory, 1);
	ck_assert_int_eq(PARSE("--share-device"), OPTIONS_BAD);
	ck_assert_str_eq(error, "XDG_RUNTIME_DIR is too long for a socket path: use --socket");
	unsetenv("XDG_RUNTIME_DIR");
	ck_assert_int_eq(PARSE("--share-device"), OPTIONS_RUN);
	ck_assert_str_eq(options.socket, "/run/npumem/npumem.sock");
	if (is_root)
		ck_assert_int_eq(seteuid(0), 0);
}
