#include "client/lib/json/json.h"

#include <math.h>
#include <stdlib.h>

#include "proto/npumem.pb-c.h"
#include "tests/support/message.h"
#include "tests/support/test.h"

static void is_text(const char *text, const char *json)
{
	char *got = NULL;
	size_t n;
	FILE *out = open_memstream(&got, &n);
	json_text(out, text);
	fclose(out);
	ck_assert_str_eq(got, json);
	free(got);
}

TEST(texts_are_quoted)
{
	is_text("", "\"\"");
	is_text("a\"b\\c\n\x01\x7f", "\"a\\\"b\\\\c\\u000a\\u0001\x7f\"");
	is_text("\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80", "\"\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80\"");
	/* Not UTF-8: a lone byte, cut off, overlong, a surrogate, beyond the last. */
	is_text("\x80", "\"?\"");
	is_text("a\xc3", "\"a?\"");
	is_text("\xc0\xaf", "\"??\"");
	is_text("\xe0\x80\x80", "\"???\"");
	is_text("\xed\xa0\x80", "\"???\"");
	is_text("\xf4\x90\x80\x80", "\"????\"");
	is_text("\xf5z", "\"?z\"");
}

static void is_members(const ProtobufCMessage *message, const char *json)
{
	char *got = NULL;
	size_t n;
	FILE *out = open_memstream(&got, &n);
	ck_assert_int_eq(json_members(out, message, false, JSON_SIZES), *json != '\0');
	fclose(out);
	ck_assert_str_eq(got, json);
	free(got);
}

TEST(what_is_set_is_told)
{
	Npumem__V1__Request request = NPUMEM__V1__REQUEST__INIT;
	Npumem__V1__FillRequest fill = NPUMEM__V1__FILL_REQUEST__INIT;
	Npumem__V1__Ref ref = NPUMEM__V1__REF__INIT;
	is_members(&request.base, "");
	request.id = UINT64_MAX;
	request.call_case = NPUMEM__V1__REQUEST__CALL_FILL;
	request.fill = &fill;
	fill.tensor = &ref;
	ref.handle = 0xab;
	fill.value_case = NPUMEM__V1__FILL_REQUEST__VALUE_INTEGER;
	is_members(&request.base,
		   "\"id\":\"18446744073709551615\",\"fill\":{\"tensor\":{\"handle\":\"00000000000000ab\"},"
		   "\"integer\":0}");
	fill.value_case = NPUMEM__V1__FILL_REQUEST__VALUE_REAL;
	fill.real = -INFINITY;
	is_members(&fill.base, "\"tensor\":{\"handle\":\"00000000000000ab\"},\"real\":\"-Infinity\"");
	fill.real = 0.5;
	is_members(&fill.base, "\"tensor\":{\"handle\":\"00000000000000ab\"},\"real\":0.5");
}

TEST(lists_enumerations_and_bytes)
{
	Npumem__V1__WriteRequest write = NPUMEM__V1__WRITE_REQUEST__INIT;
	Npumem__V1__Param params[2] = {NPUMEM__V1__PARAM__INIT, NPUMEM__V1__PARAM__INIT},
			  *list[] = {&params[0], &params[1]};
	int64_t values[] = {-1, INT64_MIN};
	uint8_t data[5] = {0};
	Npumem__V1__RunRequest run = {MESSAGE(run_request), .kernel = NPUMEM__V1__KERNEL__CONV2D, .n_params = 2,
				      .params = list};
	params[0].key = NPUMEM__V1__PARAM_KEY__PARAM_STRIDE;
	params[0].n_values = 2;
	params[0].values = values;
	params[1].key = (Npumem__V1__ParamKey)9999;
	is_members(&run.base, "\"kernel\":\"CONV2D\",\"params\":[{\"key\":\"PARAM_STRIDE\","
			      "\"values\":[-1,-9223372036854775808]},{\"key\":9999}]");
	write.data = (ProtobufCBinaryData){sizeof(data), data};
	is_members(&write.base, "\"data\":5");
}
