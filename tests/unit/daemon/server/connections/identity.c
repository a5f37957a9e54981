/* Whose uids are their own, by what /proc says. */
#include "daemon/server/connections/identity.h"

#include <stddef.h>

#include "tests/support/test.h"

static bool is_known(const char *map, const char *overflow, uint32_t uid)
{
	struct identity identity;
	identity_parse(&identity, map, overflow);
	return identity_is_known(&identity, uid);
}

TEST(where_all_uids_have_names_all_are_known)
{
	ck_assert(is_known("         0          0 4294967295\n", "65534\n", 65534));
	ck_assert(is_known("0 0 65536\n65536 1000000 4294901759\n", "65534\n", 65534));
	ck_assert(is_known("0 0 4294967295\n", NULL, 65534));
}

TEST(elsewhere_one_stands_for_those_without)
{
	const char *maps[] = {"0 1000 1\n", "0 100000 65536\n", "0 0 4294967294\n", "", "nonsense", NULL};
	for (unsigned i = 0; i < sizeof(maps) / sizeof(maps[0]); i++) {
		ck_assert(!is_known(maps[i], "65534\n", 65534));
		ck_assert(!is_known(maps[i], "1234\n", 1234));
		ck_assert(!is_known(maps[i], NULL, 65534));
		ck_assert(is_known(maps[i], "1234\n", 65534));
		ck_assert(is_known(maps[i], "65534\n", 0));
	}
}
