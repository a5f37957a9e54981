/* Beside zlib's. */
#include "include/formulas/crc32.h"

#include <check.h>
#include <stdlib.h>
#include <zlib.h>

enum { BYTES = 100000 };

static uint8_t *random_bytes(void)
{
	uint8_t *bytes = malloc(BYTES);
	uint32_t random = 12345;
	ck_assert_ptr_nonnull(bytes);
	for (unsigned i = 0; i < BYTES; i++) {
		random = random * 1664525 + 1013904223;
		bytes[i] = (uint8_t)(random >> 24);
	}
	return bytes;
}

START_TEST(the_standards_own_example)
{
	ck_assert_uint_eq(crc32_add(0, "123456789", 9), 0xcbf43926);
	ck_assert_uint_eq(crc32_add(0, NULL, 0), 0);
	ck_assert_uint_eq(crc32_add(0xcbf43926, NULL, 0), 0xcbf43926);
}
END_TEST

START_TEST(of_every_length_and_place_as_zlib_has_it)
{
	uint8_t *bytes = random_bytes();
	for (unsigned from = 0; from < 9; from++)
		for (unsigned n = 0; n < 70; n++)
			ck_assert_uint_eq(crc32_add(n, bytes + from, n), crc32(n, bytes + from, n));
	ck_assert_uint_eq(crc32_add(0, bytes, BYTES), crc32(0, bytes, BYTES));
	free(bytes);
}
END_TEST

START_TEST(in_parts_it_is_that_of_the_whole)
{
	uint8_t *bytes = random_bytes();
	uint32_t whole = crc32_add(0, bytes, BYTES), crc = 0;
	for (unsigned at = 0, n = 1; at < BYTES; at += n, n = n * 3 % 1009 + 1) {
		unsigned part = n < BYTES - at ? n : BYTES - at;
		crc = crc32_add(crc, bytes + at, part);
	}
	ck_assert_uint_eq(crc, whole);
	free(bytes);
}
END_TEST

Suite *suite_crc32(void)
{
	Suite *suite = suite_create("crc32");
	TCase *tests = tcase_create("crc32");
	tcase_add_test(tests, the_standards_own_example);
	tcase_add_test(tests, of_every_length_and_place_as_zlib_has_it);
	tcase_add_test(tests, in_parts_it_is_that_of_the_whole);
	suite_add_tcase(suite, tests);
	return suite;
}
