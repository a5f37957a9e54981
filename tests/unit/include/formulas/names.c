
#include <npumem/types.h>

#include "tests/support/test.h"

typedef const char *name_function(int);
typedef int parse_function(const char *);

static void both_ways(name_function *name, parse_function *parse, const char *const *texts)
{
	int n = 0;
	for (; texts[n]; n++) {
		ck_assert_int_eq(parse(texts[n]), n + 1);
		ck_assert_str_eq(name(n + 1), texts[n]);
	}
	ck_assert_ptr_null(name(0));
	ck_assert_ptr_null(name(-1));
	ck_assert_ptr_null(name(n + 1));
	ck_assert_int_eq(parse(NULL), 0);
	ck_assert_int_eq(parse(""), 0);
	ck_assert_int_eq(parse("nothing"), 0);
}

TEST(every_value)
{
	both_ways(npumem_dtype_name, npumem_dtype_parse,
		  (const char *[]){"int8", "uint8", "int16", "uint16", "int32", "uint32", "fp32", "fx8", "fx16",
				   NULL});
	both_ways(npumem_layout_name, npumem_layout_parse,
		  (const char *[]){"aligned", "compact", "matrix", "strided", NULL});
	both_ways(npumem_mode_name, npumem_mode_parse, (const char *[]){"plain", "4n", "2n", "2ic", NULL});
	both_ways(npumem_rounding_name, npumem_rounding_parse,
		  (const char *[]){"convergent", "up", "nearest", NULL});
	both_ways(npumem_reuse_name, npumem_reuse_parse, (const char *[]){"never", "if-safe", "unchecked", NULL});
	ck_assert_int_eq(npumem_reuse_parse("if_safe"), NPUMEM_IF_SAFE);
	both_ways(npumem_uninitialized_name, npumem_uninitialized_parse,
		  (const char *[]){"refuse", "warn", "allow", NULL});
}

TEST(status)
{
	ck_assert_str_eq(npumem_status_name(NPUMEM_OK), "OK");
	ck_assert_str_eq(npumem_status_name(NPUMEM_INVALID), "INVALID");
	ck_assert_str_eq(npumem_status_name(15), "DATA_LOST");
	ck_assert_ptr_null(npumem_status_name(2));
	ck_assert_ptr_null(npumem_status_name(-1));
}

TEST(dtypes)
{
	static const struct {
		int dtype;
		unsigned bytes;
		bool fixed, ranged;
		int64_t low, high;
	} rows[] = {
		{NPUMEM_INT8, 1, false, true, -128, 127},
		{NPUMEM_UINT8, 1, false, true, 0, 255},
		{NPUMEM_INT16, 2, false, true, -32768, 32767},
		{NPUMEM_UINT16, 2, false, true, 0, 65535},
		{NPUMEM_INT32, 4, false, true, INT64_C(-2147483648), 2147483647},
		{NPUMEM_UINT32, 4, false, true, 0, INT64_C(4294967295)},
		{NPUMEM_FP32, 4, false, false, 0, 0},
		{NPUMEM_FX8, 1, true, true, -128, 127},
		{NPUMEM_FX16, 2, true, true, -32768, 32767},
		{0, 0, false, false, 0, 0},
		{10, 0, false, false, 0, 0},
		{-1, 0, false, false, 0, 0},
	};
	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		int64_t low = 5, high = 6;
		ck_assert_uint_eq(npumem_dtype_bytes(rows[i].dtype), rows[i].bytes);
		ck_assert_int_eq(npumem_dtype_is_fixed(rows[i].dtype), rows[i].fixed);
		ck_assert_int_eq(npumem_dtype_range(rows[i].dtype, &low, &high), rows[i].ranged);
		ck_assert_int_eq(low, rows[i].ranged ? rows[i].low : 5);
		ck_assert_int_eq(high, rows[i].ranged ? rows[i].high : 6);
	}
}
