#include "client/ctl/core/network/planning/planning.h"

#include "tests/support/test.h"
#include "tests/unit/client/ctl/core/network/file.h"

static const struct npumem_geometry geometry = {4, 1024, 8, 128};

/* One block row of so many bytes on each of the 4 NPUs. */
#define A(name, bytes) "{\"alloc\": \"" name "\", \"shape\": [1,4,1," bytes "], \"dtype\": \"int8\"}\n"

static void lives_of(const char *text, struct network *network, struct lives *lives)
{
	struct npumem_error error;
	npumem_error_clear(&error);
	file_loads(text, network);
	ck_assert_msg(!lives_compute(network, &geometry, lives, &error), "%s", error.message);
}

TEST(peak_and_offsets)
{
	struct network network;
	struct lives lives;
	/* c does not fit beside a and b, and finds the place of a; d lies behind b. */
	lives_of(A("a", "512")
			 A("b", "256") "{\"copy\": \"b\", \"from\": \"a\"}\n{\"free\": \"a\"}\n" A("c", "384")
				 A("d", "128") "{\"free\": [\"b\", \"c\"]}\n{\"seal\": \"d\"}",
		 &network, &lives);
	ck_assert_uint_eq(lives.n, 4);
	ck_assert_int_eq(lives.peak, 768);
	ck_assert_uint_eq(lives.peak_at, 1);
	ck_assert_int_eq(lives.least, 768);
	ck_assert_int_eq(lives.list[0].offset, 0);
	ck_assert_int_eq(lives.list[1].offset, 512);
	ck_assert_int_eq(lives.list[2].offset, 0);
	ck_assert_int_eq(lives.list[3].offset, 384);
	ck_assert_int_eq(lives.reach, 768);
	ck_assert_uint_eq(lives.crowded, lives.n);
	ck_assert_uint_eq(lives.list[0].last, 2);
	ck_assert_uint_eq(lives.list[0].to, 3);
	/* Nothing frees d. */
	ck_assert_uint_eq(lives.list[3].to, network.n_operations);
}

TEST(what_lives_too_long)
{
	struct network network;
	struct lives lives;
	lives_of(A("a", "512") "{\"fill\": \"a\", \"value\": 1}\n" A("b",
								     "512") "{\"fill\": \"b\", \"value\": 1}\n",
		 &network, &lives);
	ck_assert_int_eq(lives.peak, 1024);
	ck_assert_int_eq(lives.least, 512);
}

TEST(no_room)
{
	struct network network;
	struct lives lives;
	lives_of(A("a", "640") A("b", "512"), &network, &lives);
	ck_assert_int_eq(lives.peak, 1152);
	ck_assert_uint_eq(lives.crowded, 1);
	ck_assert_int_eq(lives.list[1].offset, NPUMEM_ANY);
	/* In pieces: two holes of 384 bytes. */
	lives_of(A("a", "384") A("b", "128") A("c", "384") "{\"free\": [\"a\", \"c\"]}\n" A("d", "640"), &network,
		 &lives);
	ck_assert_int_eq(lives.peak, 896);
	ck_assert_uint_eq(lives.crowded, 3);
}

TEST(addresses_are_kept)
{
	static const char fixed[] =
		"{\"alloc\": \"f\", \"shape\": [1,4,1,128], \"dtype\": \"int8\", \"address\": 256}\n";
	struct network network;
	struct lives lives;
	char text[1024];
	snprintf(text, sizeof(text), "%s%s", fixed, A("a", "384"));
	lives_of(text, &network, &lives);
	ck_assert_int_eq(lives.list[0].offset, 256);
	ck_assert_int_eq(lives.list[1].offset, 384);
	ck_assert_uint_eq(lives.crowded, lives.n);
	snprintf(text, sizeof(text), "%s%s", A("a", "384"), fixed);
	lives_of(text, &network, &lives);
	ck_assert_uint_eq(lives.crowded, 1);
}

TEST(what_no_device_holds)
{
	struct network network;
	struct lives lives;
	struct npumem_error error;
	npumem_error_clear(&error);
	file_loads(A("a", "64") A("b", "4096"), &network);
	ck_assert_int_eq(lives_compute(&network, &geometry, &lives, &error), NPUMEM_INVALID);
	ck_assert_msg(strstr(error.message, "operation 2 (line 2), alloc b: "), "%s", error.message);
}

TEST(opened_ones_are_counted_apart)
{
	struct network network;
	struct lives lives;
	lives_of("{\"open\": \"w\"}\n" A("a", "128") "{\"copy\": \"a\", \"from\": \"w\"}\n{\"free\": \"w\"}",
		 &network, &lives);
	ck_assert_uint_eq(lives.n, 1);
	ck_assert_uint_eq(lives.n_opened, 1);
	ck_assert_int_eq(lives.peak, 128);
}
