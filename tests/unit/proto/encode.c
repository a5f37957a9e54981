/* Against protobuf-c's own packing: the same bytes. NPUMEM_ENCODE_MESSAGES and NPUMEM_ENCODE_SEED set how many,
 * and from which seed on. */
#include "proto/encode.h"

#include <inttypes.h>
#include <stdlib.h>

#include "proto/npumem.pb-c.h"
#include "tests/support/message.h"
#include "tests/support/test.h"
#include "tests/unit/proto/wire_fuzz.h"

static uint64_t from_environment(const char *name, uint64_t otherwise)
{
	const char *text = getenv(name);
	return text ? strtoull(text, NULL, 0) : otherwise;
}

/* Nothing behind the message is touched. */
static void compare(const ProtobufCMessage *message, uint64_t seed)
{
	size_t n = protobuf_c_message_get_packed_size(message);
	uint8_t *expected = malloc(n + 1), *bytes = malloc(n + 1);
	bytes[n] = 0xa5;
	protobuf_c_message_pack(message, expected);
	ck_assert_msg(encode_message(message, bytes) == n, "NPUMEM_ENCODE_SEED=%" PRIu64, seed);
	ck_assert_msg(!memcmp(bytes, expected, n), "NPUMEM_ENCODE_SEED=%" PRIu64, seed);
	ck_assert_uint_eq(bytes[n], 0xa5);
	free(expected);
	free(bytes);
}

TEST(as_protobuf_c_packs_it)
{
	static const ProtobufCMessageDescriptor *const types[] = {
		&npumem__v1__response__descriptor, &npumem__v1__request__descriptor,
		&npumem__v1__record_entry__descriptor, &npumem__v1__submitted__descriptor,
		&npumem__v1__tensor__descriptor};
	uint64_t first = from_environment("NPUMEM_ENCODE_SEED", 1),
		 n = from_environment("NPUMEM_ENCODE_MESSAGES", 20000), n_compared = 0, n_long = 0;
	struct wire wire = {.room = WIRE_BYTES_MAX};
	for (uint64_t seed = first; seed < first + n; seed++) {
		uint64_t random = seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
		const ProtobufCMessageDescriptor *type =
			types[wire_random(&random, sizeof(types) / sizeof(types[0]))];
		ProtobufCMessage *message;
		wire.random = &random;
		wire.n = 0;
		wire_message(&wire, type, 0);
		message = protobuf_c_message_unpack(type, NULL, wire.n, wire.bytes);
		if (!message)
			continue;
		compare(message, seed);
		protobuf_c_message_free_unpacked(message, NULL);
		n_compared++;
		n_long += wire.n > 80;
	}
	ck_assert_uint_gt(n_compared, n / 4);
	ck_assert_uint_gt(n_long, n / 100);
}

/* A length of two, three and four bytes, also of a message in a message. */
TEST(lengths_of_any_width)
{
	static uint8_t data[3 << 20];
	Npumem__V1__Submitted submitted = NPUMEM__V1__SUBMITTED__INIT;
	Npumem__V1__Done done = NPUMEM__V1__DONE__INIT, *pointer = &done;
	memset(data, 0x5a, sizeof(data));
	Npumem__V1__Response response = {MESSAGE(response), .result_case = NPUMEM__V1__RESPONSE__RESULT_SUBMITTED,
					 .submitted = &submitted};
	submitted.n_done = 1;
	submitted.done = &pointer;
	done.data.data = data;
	for (size_t n = 110; n < 140; n++) {
		done.data.len = n;
		compare(&response.base, n);
	}
	for (size_t n = 16360; n < 16400; n++) {
		done.data.len = n;
		compare(&response.base, n);
	}
	done.data.len = sizeof(data);
	compare(&response.base, sizeof(data));
}

TEST(numbers_at_their_ends)
{
	static const int64_t numbers[] = {0, 1, -1, 63, 64, -64, -65, INT32_MAX, INT32_MIN, INT64_MAX, INT64_MIN};
	int64_t values[sizeof(numbers) / sizeof(numbers[0])];
	Npumem__V1__Param param = NPUMEM__V1__PARAM__INIT;
	Npumem__V1__Field field = NPUMEM__V1__FIELD__INIT;
	memcpy(values, numbers, sizeof(values));
	param.values = values;
	for (param.n_values = 0; param.n_values <= sizeof(numbers) / sizeof(numbers[0]); param.n_values++) {
		param.key = (Npumem__V1__ParamKey) - (int)param.n_values;
		compare(&param.base, param.n_values);
	}
	/* In a oneof 0 is said, and a text that nobody set is not. */
	field.value_case = NPUMEM__V1__FIELD__VALUE_NUMBER;
	compare(&field.base, 0);
	field.value_case = NPUMEM__V1__FIELD__VALUE_TEXT;
	field.text = (char *)protobuf_c_empty_string;
	compare(&field.base, 1);
	field.text = NULL;
	compare(&field.base, 2);
	Npumem__V1__FillRequest fill = {MESSAGE(fill_request), .value_case = NPUMEM__V1__FILL_REQUEST__VALUE_REAL,
					.real = -0.0};
	compare(&fill.base, 3);
}
