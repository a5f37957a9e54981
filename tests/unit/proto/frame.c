#include "proto/frame.h"

#include <string.h>

#include "tests/support/test.h"

TEST(every_length_comes_back)
{
	static const size_t lengths[] = {0, 1, 127, 128, 16383, 16384, 2097151, 2097152, FRAME_BYTES_MAX};
	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		uint8_t header[FRAME_HEADER_BYTES_MAX];
		size_t used = frame_header(lengths[i], header), header_bytes, message_bytes;
		for (size_t have = 0; have < used; have++) {
			ck_assert_int_eq(frame_parse(header, have, FRAME_BYTES_MAX, &header_bytes, &message_bytes),
					 FRAME_MORE);
			ck_assert_uint_eq(header_bytes, 0);
			ck_assert_uint_eq(message_bytes, 0);
		}
		ck_assert_int_eq(frame_parse(header, used, FRAME_BYTES_MAX, &header_bytes, &message_bytes),
				 lengths[i] ? FRAME_MORE : FRAME_COMPLETE);
		ck_assert_uint_eq(header_bytes, used);
		ck_assert_uint_eq(message_bytes, lengths[i]);
	}
}

TEST(a_frame_is_complete_with_its_last_byte)
{
	uint8_t buffer[300] = {0};
	size_t header_bytes, message_bytes, used = frame_header(200, buffer);
	ck_assert_int_eq(frame_parse(buffer, used + 199, 1000, &header_bytes, &message_bytes), FRAME_MORE);
	ck_assert_int_eq(frame_parse(buffer, used + 200, 1000, &header_bytes, &message_bytes), FRAME_COMPLETE);
	ck_assert_int_eq(frame_parse(buffer, used + 201, 1000, &header_bytes, &message_bytes), FRAME_COMPLETE);
	ck_assert_uint_eq(message_bytes, 200);
}

static void parse_is(const char *bytes, size_t n, enum frame_result result)
{
	size_t header_bytes = 7, message_bytes = 7;
	ck_assert_int_eq(frame_parse((const uint8_t *)bytes, n, FRAME_BYTES_MAX, &header_bytes, &message_bytes),
			 result);
	if (result == FRAME_TOO_LARGE || result == FRAME_BAD_LENGTH) {
		ck_assert_uint_eq(header_bytes, 0);
		ck_assert_uint_eq(message_bytes, 0);
	}
}

TEST(a_length_over_the_cap_is_told_at_once)
{
	parse_is("\x80\x80\x80\x08", 4, FRAME_MORE);	  /* 2^24, the cap */
	parse_is("\x81\x80\x80\x08", 4, FRAME_TOO_LARGE); /* one more */
	parse_is("\xff\xff\xff\xff\x0f", 5, FRAME_TOO_LARGE);
	parse_is("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 10, FRAME_TOO_LARGE); /* 2^64 - 1 */
}

TEST(a_length_past_64_bits_is_bad)
{
	parse_is("\xff\xff\xff\xff\xff\xff\xff\xff\xff", 9, FRAME_MORE);
	parse_is("\x80\x80\x80\x80\x80\x80\x80\x80\x80\x02", 10, FRAME_BAD_LENGTH);
	parse_is("\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80", 10, FRAME_BAD_LENGTH);
	parse_is("\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01", 11, FRAME_BAD_LENGTH);
}

TEST(a_padded_length_is_a_length)
{
	parse_is("\x80\x00", 2, FRAME_COMPLETE);
	parse_is("\x80\x80\x80\x80\x80\x80\x80\x80\x80\x00", 10, FRAME_COMPLETE);
}
