/* What a shell is told, and how what it says is told from a daemon. */
#include <stdio.h>
#include <string.h>

#include "client/lib/addresses/address.h"
#include "tests/support/test.h"

TEST(what_is_run_there)
{
	char command[REMOTE_COMMAND_BYTES], path[ADDRESS_PATH_BYTES + 8];
	struct address address;
	ck_assert_int_eq(address_parse("ssh:npu", &address, NULL), 0);
	remote_command(&address, command);
	ck_assert_str_eq(command, "exec npumemctl dial --close");
	ck_assert_int_eq(address_parse("ssh:npu:/a b/$(x)'y'", &address, NULL), 0);
	remote_command(&address, command);
	ck_assert_str_eq(command, "exec npumemctl --socket '/a b/$(x)'\\''y'\\''' dial --close");
	/* The longest. */
	snprintf(path, sizeof(path), "ssh:n:/%0*d", ADDRESS_PATH_BYTES - 2, 0);
	memset(path + 7, '\'', ADDRESS_PATH_BYTES - 2);
	ck_assert_int_eq(address_parse(path, &address, NULL), 0);
	remote_command(&address, command);
	ck_assert_uint_eq(strlen(command),
			  strlen("exec npumemctl --socket '/' dial --close") + 4 * (ADDRESS_PATH_BYTES - 2));
}

static int greeted(const void *bytes, size_t n, char *line)
{
	return remote_greeting(bytes, n, line, 16);
}

TEST(who_speaks)
{
	static const uint8_t resumed[] = {7, 0xca, 3, 2, 0x10, 3, 8, 1}, info[] = {0x91, 2, 0x2a, 0x8c, 2},
			     ended[] = {'%', 0x10, 3, 0x1a}, large[] = {'a', 'b', 8, 1},
			     small[] = {'4', '*', '0', '\n', 5};
	char line[16];
	ck_assert_int_eq(greeted(resumed, sizeof(resumed), line), 1);
	ck_assert_int_eq(greeted(info, sizeof(info), line), 1);
	ck_assert_int_eq(greeted(ended, sizeof(ended), line), 1);
	ck_assert_int_eq(greeted(large, sizeof(large), line), 1);
	ck_assert_int_eq(greeted(small, sizeof(small), line), 1);
	ck_assert_int_eq(greeted(small, 4, line), 1);
	ck_assert_int_eq(greeted(small, 3, line), 0);
	ck_assert_int_eq(greeted("4*1\n", 4, line), -1);
	ck_assert_int_eq(greeted(ended, 1, line), 0);
	ck_assert_int_eq(greeted("", 0, line), 0);
	ck_assert_int_eq(greeted("Hel", 3, line), 0);
	ck_assert_int_eq(greeted("Hell", 4, line), -1);
	ck_assert_str_eq(line, "Hell");
	ck_assert_int_eq(greeted("Hi\r\nthere", 9, line), -1);
	ck_assert_str_eq(line, "Hi");
	ck_assert_int_eq(greeted("\033[31mred", 8, line), -1);
	ck_assert_str_eq(line, "?[31mred");
	ck_assert_int_eq(greeted("Welcome to the farm\n", 20, line), -1);
	ck_assert_str_eq(line, "Welcome to the ");
	ck_assert_int_eq(greeted("\xc3\x89t\xc3", 4, line), -1);
}
