#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/ctl/core/arrays/values.h"
#include "tests/support/test.h"

static char path[] = "/tmp/npumem-values-XXXXXX.npy";

/* In the place of the one before, as a file that is cut and written again waits for the disk. */
static void write_file(const void *bytes, size_t n)
{
	unlink(path);
	FILE *file = fopen(path, "wb");
	ck_assert(file && fwrite(bytes, 1, n, file) == n);
	fclose(file);
}

/* Version 1 of the format, without padding. */
static size_t make(char *to, const char *descr, bool fortran, const char *shape, const void *data, size_t bytes)
{
	int n = snprintf(to + 10, 200, "{'descr': '%s', 'fortran_order': %s, 'shape': %s}", descr,
			 fortran ? "True" : "False", shape);
	memcpy(to, "\x93NUMPY\1", 8);
	to[8] = (char)n;
	to[9] = 0;
	memcpy(to + 10 + n, data, bytes);
	return 10 + (size_t)n + bytes;
}

static void setup(void)
{
	int fd = mkstemps(path, 4);
	ck_assert_int_ge(fd, 0);
	close(fd);
}

static void teardown(void)
{
	unlink(path);
	memcpy(strstr(path, ".npy") - 6, "XXXXXX", 6);
}

TEST(orders)
{
	static const uint8_t data[] = {0, 1, 2, 3, 4, 5};
	static const struct {
		bool fortran;
		const char *perm;
		double expected[6];
	} cases[] = {
		{false, NULL, {0, 1, 2, 3, 4, 5}},
		{true, NULL, {0, 2, 4, 1, 3, 5}},
		{false, "1,0", {0, 3, 1, 4, 2, 5}},
		{true, "1,0", {0, 1, 2, 3, 4, 5}},
	};
	for (unsigned i = 0; i < 4; i++) {
		struct values values;
		char bytes[256];
		write_file(bytes, make(bytes, "|u1", cases[i].fortran, "(2, 3)", data, sizeof(data)));
		ck_assert_int_eq(values_read(path, cases[i].perm, &values, NULL), 0);
		ck_assert_mem_eq(values.data, cases[i].expected, sizeof(cases[i].expected));
		ck_assert_int_eq(values.shape[0], cases[i].perm ? 3 : 2);
		ck_assert_int_eq(values.dtype, NPUMEM_UINT8);
	}
}

TEST(numbers)
{
	static const struct {
		const char *descr;
		uint8_t bytes[8];
		double expected;
	} cases[] = {
		{"|i1", {0x80}, -128},
		{"<i2", {0xfe, 0xff}, -2},
		{">i2", {0xff, 0xfe}, -2},
		{">u4", {0, 0, 1, 2}, 258},
		{"<i8", {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, -1},
		{"<f2", {0, 0x3c}, 1},
		{">f2", {0xc0, 0}, -2},
		{"<f2", {1, 0}, 0x1p-24},
		{"<f2", {0xff, 0x7b}, 65504},
		{"<f2", {0, 0xfc}, -INFINITY},
		{">f4", {0x3f, 0x80, 0, 0}, 1},
		{">f8", {0xbf, 0xf0, 0, 0, 0, 0, 0, 0}, -1},
	};
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct values values;
		char bytes[256];
		size_t each = (size_t)(cases[i].descr[2] - '0');
		write_file(bytes, make(bytes, cases[i].descr, false, "(1,)", cases[i].bytes, each));
		ck_assert_int_eq(values_read(path, NULL, &values, NULL), 0);
		ck_assert_msg(values.data[0] == cases[i].expected, "%s: %g", cases[i].descr, values.data[0]);
	}
}

TEST(damaged)
{
	static const uint8_t data[16] = {1, 2, 3};
	char good[256], bytes[256];
	size_t n = make(good, "<i2", true, "(2, 2, 2)", data, sizeof(data));
	for (size_t i = 0; i < n; i++) {
		for (unsigned value = 0; value < 256; value += 51) {
			struct npumem_error error = {0};
			struct values values;
			memcpy(bytes, good, n);
			bytes[i] = (char)value;
			write_file(bytes, value ? n : i);
			int status = values_read(path, NULL, &values, &error);
			ck_assert(!status || error.message[0]);
		}
	}
	struct values values;
	write_file(bytes, make(bytes, "<i2", false, "(4294967296, 4294967296, 2)", data, 0));
	ck_assert_int_eq(values_read(path, NULL, &values, NULL), NPUMEM_INVALID);
}

TEST(containers)
{
	double data[] = {1.5, -1.5, 200, -0.25}, back[4];
	struct values values = {.n_dims = 1, .shape = {4}, .n = 4, .is_real = true, .data = data};
	struct values decoded = {.n_dims = 1, .shape = {4}, .n = 4, .data = back};
	struct npumem_error error = {0};
	int8_t packed[4];
	int64_t saturated;
	ck_assert_int_eq(values_encode(&values, NPUMEM_FX8, 1, NPUMEM_UP, packed, &saturated, NULL), 0);
	ck_assert_int_eq(saturated, 1);
	values_decode(packed, NPUMEM_FX8, 1, &decoded);
	ck_assert(back[0] == 1.5 && back[1] == -1.5 && back[2] == 63.5 && back[3] == 0);
	values.is_real = false;
	data[0] = data[1] = data[3] = 1;
	ck_assert_int_eq(values_encode(&values, NPUMEM_INT8, 0, 0, packed, &saturated, &error), NPUMEM_INVALID);
	ck_assert_str_eq(error.message, "the element at (2,) is 200, which is not within int8's -128 to 127");
}

FIXTURE(setup, teardown)
