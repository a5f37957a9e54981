#include <stdio.h>
#include <string.h>

#include <npumem/types.h>

#include "tests/support/test.h"

TEST(first_refusal_stays)
{
	struct npumem_error error;
	memset(&error, 0x5a, sizeof(error));
	npumem_error_clear(&error);
	ck_assert_int_eq(error.status, 0);
	ck_assert_uint_eq(error.n_fields, 0);
	ck_assert_int_eq(npumem_error_set(&error, NPUMEM_INVALID, "x is %d", 3), NPUMEM_INVALID);
	ck_assert_int_eq(npumem_error_set(&error, NPUMEM_NOT_FOUND, "y"), NPUMEM_NOT_FOUND);
	ck_assert_int_eq(error.status, NPUMEM_INVALID);
	ck_assert_str_eq(error.message, "x is 3");
	npumem_error_number(&error, "limit", 7);
	npumem_error_number(&error, "limit", 8);
	npumem_error_text(&error, "name", "a");
	ck_assert_int_eq(npumem_error_find(&error, "limit", -1), 7);
	ck_assert_int_eq(npumem_error_find(&error, "name", -1), -1);
	ck_assert_int_eq(npumem_error_find(&error, "other", -1), -1);
	ck_assert_uint_eq(error.n_fields, 2);
}

TEST(none_to_fill)
{
	ck_assert_int_eq(npumem_error_set(NULL, NPUMEM_INVALID, "x"), NPUMEM_INVALID);
	npumem_error_number(NULL, "a", 1);
	npumem_error_text(NULL, "a", "b");
}

TEST(fields_are_bounded)
{
	struct npumem_error error = {0};
	char key[64];
	for (int i = 0; i < NPUMEM_FIELDS_MAX + 5; i++) {
		snprintf(key, sizeof(key), "k%d", i);
		npumem_error_number(&error, key, i);
	}
	ck_assert_uint_eq(error.n_fields, NPUMEM_FIELDS_MAX);
	ck_assert_int_eq(npumem_error_find(&error, "k19", -1), 19);
	ck_assert_int_eq(npumem_error_find(&error, "k20", -1), -1);
	npumem_error_clear(&error);
	npumem_error_number(&error, "a_key_that_is_longer_than_the_field", 5);
	ck_assert_str_eq(error.fields[0].key, "a_key_that_is_longer_th");
	ck_assert_int_eq(npumem_error_find(&error, "a_key_that_is_longer_than_the_field", -1), 5);
}

/* A message is one printable line of whole characters, whatever it quotes. */
TEST(printable)
{
	static const struct {
		const char *in, *out;
	} cases[] = {
		{"a\nb\x1b[31m\x7f", "a?b?[31m?"},
		{"gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x98\x80",
		 "gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x98\x80"},
		{"\xc3", "?"},			   /* cut */
		{"\xe2\x82", "??"},		   /* cut */
		{"\x80x\xff", "?x?"},		   /* no lead, no UTF-8 */
		{"\xc0\xaf", "??"},		   /* overlong */
		{"\xe0\x80\xaf", "???"},	   /* overlong */
		{"\xed\xa0\x80", "???"},	   /* surrogate */
		{"\xf4\x90\x80\x80", "????"},	   /* past U+10FFFF */
		{"\xf8\x88\x80\x80\x80", "?????"}, /* five bytes */
		{"\xf8\x90\x80\x80", "????"},	   /* a lead of five, and three */
		{"\xed\x9f\xbf", "\xed\x9f\xbf"},  /* the last before the surrogates */
		{"a\xc2\x9b"
		 "31m",
		 "a?31m"},		    /* CSI */
		{"a\xc2\xa0", "a\xc2\xa0"}, /* the first behind those */
		{"\xe2\x80\xae"
		 "a\xe2\x81\xa9",
		 "?a?"}, /* directions */
	};
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct npumem_error error = {0};
		npumem_error_set(&error, NPUMEM_INVALID, "%s", cases[i].in);
		ck_assert_str_eq(error.message, cases[i].out);
		npumem_error_text(&error, "text", cases[i].in);
		ck_assert_str_eq(error.fields[0].text, cases[i].out);
	}
}

TEST(cut)
{
	char longer[2 * NPUMEM_MESSAGE_BYTES];
	memset(longer, 'x', sizeof(longer));
	longer[sizeof(longer) - 1] = 0;
	longer[NPUMEM_MESSAGE_BYTES - 2] = (char)0xc3;
	longer[NPUMEM_MESSAGE_BYTES - 1] = (char)0xbc;
	struct npumem_error error = {0};
	npumem_error_set(&error, NPUMEM_INVALID, "%s", longer);
	ck_assert_uint_eq(strlen(error.message), NPUMEM_MESSAGE_BYTES - 1);
	ck_assert_int_eq(error.message[NPUMEM_MESSAGE_BYTES - 2], '?');
	npumem_error_text(&error, "text", longer);
	ck_assert_uint_eq(strlen(error.fields[0].text), NPUMEM_FIELD_TEXT_BYTES - 1);
}
