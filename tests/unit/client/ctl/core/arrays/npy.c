#include <stdlib.h>
#include <string.h>

#include "client/ctl/core/arrays/stream.h"
#include "tests/support/test.h"

/* A file of `version` with this header text (padded by nothing) and `data` after it. */
static FILE *file_of(int version, const char *header, const void *data, size_t bytes)
{
	FILE *file = tmpfile();
	size_t length = strlen(header);
	const uint8_t start[] = {
		0x93, 'N', 'U', 'M', 'P', 'Y', (uint8_t)version, 0, (uint8_t)length, (uint8_t)(length >> 8), 0, 0};
	ck_assert_ptr_nonnull(file);
	fwrite(start, 1, version == 1 ? 10 : 12, file);
	fwrite(header, 1, length, file);
	fwrite(data, 1, bytes, file);
	rewind(file);
	return file;
}

static const char good[] = "{'descr': '<i2', 'fortran_order': False, 'shape': (1, 2, 3, 4), }          \n";

TEST(versions_one_to_three)
{
	static const int64_t shape[] = {1, 2, 3, 4};
	for (int version = 1; version <= 3; version++) {
		struct npy npy;
		uint8_t data[48], to[48];
		for (unsigned i = 0; i < 48; i++)
			data[i] = (uint8_t)i;
		FILE *file = file_of(version, good, data, 48);
		ck_assert_int_eq(npy_read_header(file, &npy, NULL), 0);
		ck_assert_int_eq(npy_check_type(&npy, "<i2", NULL), 0);
		ck_assert_int_eq(npy_check_shape(&npy, shape, 4, NULL), 0);
		ck_assert_int_eq(npy_read_data(file, to, 48, NULL), 0);
		ck_assert_mem_eq(to, data, 48);
		fclose(file);
	}
}

TEST(headers)
{
	static const struct {
		const char *header, *why; /* NULL: right */
	} rows[] = {
		{"{'shape': (3,), 'fortran_order': False, 'descr': '|i1'}", NULL},
		{"{\"shape\": (), \"fortran_order\": False, \"descr\": \"|i1\"}", NULL},
		{"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3,),\n}\n", NULL},
		{"{'descr': '<i2', 'fortran_order': True, 'shape': (1, 2), }", NULL},
		{"{'descr': [('a', '<i2')], 'fortran_order': False, 'shape': (1, 2), }", "plain element type"},
		{"{'descr': '<i2', 'fortran_order': False, }", "lacks shape"},
		{"{'descr': '<i2', 'shape': (1,), }", "lacks fortran_order"},
		{"{'shape': (1,), 'fortran_order': False}", "lacks descr"},
		{"{'descr': '<i2', 'descr': '<i2', 'fortran_order': False, 'shape': (1,)}", "once each"},
		{"{'other': '<i2', 'fortran_order': False, 'shape': (1,)}", "descr, fortran_order or shape"},
		{"{'descr': '<i2', 'fortran_order': False, 'shape': (1, -2), }", "an extent"},
		{"{'descr': '<i2', 'fortran_order': False, 'shape': (99999999999999999999,), }", "64 bits"},
		{"{'descr': '<i2', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1), }", "more than 8"},
		{"{'descr': '<i2', 'fortran_order': False, 'shape': 5, }", "the shape"},
		{"{'descr': '<i2', 'fortran_order': False, 'shape': (1 2), }", "\",\" or \")\""},
		{"{'descr': '<i2' 'fortran_order': False, 'shape': (1,), }", "\",\" or \"}\""},
		{"{'descr': '<i2', 'fortran_order': 0, 'shape': (1,), }", "True or False"},
		{"{'descr': '<i2', 'fortran_order': False, 'shape': (1,), } x", "end of the header"},
		{"{'descr': '<i2_and_much_longer', 'fortran_order': False, 'shape': (1,), }",
		 "plain element type"},
		{"{'descr': '<i2', 'fortran_order': False, 'shape': (1,", ""},
		{"{'descr", "a key"},
		{"{", "a key"},
		{"", "\"{\""},
		{"__import__('os').system('true')", "\"{\""},
	};
	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct npy npy;
		struct npumem_error error = {0};
		FILE *file = file_of(1, rows[i].header, "", 0);
		int status = npy_read_header(file, &npy, &error);
		ck_assert_msg(!status == !rows[i].why, "%s: %s", rows[i].header, error.message);
		if (status)
			ck_assert_msg(strstr(error.message, rows[i].why) != NULL, "%s: %s", rows[i].header,
				      error.message);
		fclose(file);
	}
}

static void expect_file(const char *bytes, size_t n, const char *why)
{
	struct npy npy;
	struct npumem_error error = {0};
	FILE *file = tmpfile();
	fwrite(bytes, 1, n, file);
	rewind(file);
	ck_assert_int_ne(npy_read_header(file, &npy, &error), 0);
	ck_assert_msg(strstr(error.message, why) != NULL, "%s", error.message);
	fclose(file);
}

TEST(files)
{
	expect_file("", 0, "magic number: 0 of 8");
	expect_file("\x93NUM", 4, "magic number: 4 of 8");
	expect_file("PK\x03\x04zzzzzz", 10, "not a .npy file");
	expect_file("\x93NUMPY\x04\x00\x10\x00", 10, "version 4.0");
	expect_file("\x93NUMPY\x01\x01\x10\x00", 10, "version 1.1");
	expect_file("\x93NUMPY\x01\x00\x10", 9, "header: 1 of 2");
	expect_file("\x93NUMPY\x01\x00\x10\x00{'descr'", 18, "header: 8 of 16");
	expect_file("\x93NUMPY\x02\x00\xff\xff\xff\xff{", 13, "over the limit of 65536");
	expect_file("\x93NUMPY\x01\x00\x04\x00{\0\0}", 14, "zero byte");
}

TEST(types_match_exactly)
{
	static const struct {
		const char *has, *expected, *why;
	} rows[] = {
		{"<i2", "<i2", NULL},
		{"|i1", "|i1", NULL},
		{"<i1", "|i1", NULL},
		{">u1", "|u1", NULL},
		{">i2", "<i2", "big-endian (>i2); <i2 is expected"},
		{"<u2", "<i2", "type uint16; int16 is"},
		{"|u1", "|i1", "type uint8; int8 is"},
		{"<f4", "<i2", "type float32; int16 is"},
		{"|b1", "|i1", "|b1"},
		{"", "|i1", ""},
		{"i1", "|i1", "i1"},
	};
	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct npy npy = {.n_dims = 0};
		struct npumem_error error = {0};
		strcpy(npy.descr, rows[i].has);
		int status = npy_check_type(&npy, rows[i].expected, &error);
		ck_assert_msg(!status == !rows[i].why, "%s for %s", rows[i].has, rows[i].expected);
		if (status)
			ck_assert_ptr_nonnull(strstr(error.message, rows[i].why));
	}
}

TEST(shapes_match_apart_from_ones)
{
	static const int64_t shape[] = {1, 2, 3, 4};
	static const struct npy same[] = {
		{.n_dims = 4, .shape = {1, 2, 3, 4}},
		{.n_dims = 3, .shape = {2, 3, 4}},
		{.n_dims = NPY_DIMS_MAX, .shape = {1, 2, 1, 3, 1, 4, 1, 1}},
	};
	static const struct npy others[] = {
		{.n_dims = 4, .shape = {1, 2, 4, 3}},
		{.n_dims = 1, .shape = {24}},
		{.n_dims = 2, .shape = {2, 3}},
		{.n_dims = 4, .shape = {2, 3, 4, 2}},
		{.n_dims = 0},
	};
	struct npumem_error error = {0};
	for (unsigned i = 0; i < sizeof(same) / sizeof(same[0]); i++)
		ck_assert_int_eq(npy_check_shape(&same[i], shape, 4, NULL), 0);
	for (unsigned i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		ck_assert_int_eq(npy_check_shape(&others[i], shape, 4, &error), NPUMEM_INVALID);
	ck_assert_int_ne(npy_check_shape(&others[0], shape, 4, &error), 0);
	ck_assert_str_eq(error.message, "the array has shape (1, 2, 4, 3); (1, 2, 3, 4) is expected");
}

TEST(too_little_and_too_much)
{
	struct npy npy;
	struct npumem_error error = {0};
	uint8_t data[48] = {0};
	FILE *file = file_of(1, good, data, 47);
	ck_assert_int_eq(npy_read_header(file, &npy, NULL), 0);
	ck_assert_int_ne(npy_read_data(file, data, 48, &error), 0);
	ck_assert_str_eq(error.message, "the file ends in its data: 47 of 48 bytes are there");
	fclose(file);
	file = file_of(1, good, data, 48);
	ck_assert_int_eq(npy_read_header(file, &npy, NULL), 0);
	npumem_error_clear(&error);
	ck_assert_int_ne(npy_read_data(file, data, 47, &error), 0);
	ck_assert_str_eq(error.message, "the file goes on after the 47 bytes of its array");
	fclose(file);
}

TEST(what_is_written_can_be_read)
{
	static const int64_t shapes[][4] = {{1, 2, 3, 4}, {7, 9, 0, 0}, {5, 0, 0, 0}};
	static const unsigned n_dims[] = {4, 2, 1};
	for (unsigned i = 0; i < 3; i++) {
		struct npy npy;
		char data[] = "0123456789", to[10];
		FILE *file = tmpfile();
		ck_assert_int_eq(npy_write(file, "<f4", shapes[i], n_dims[i], data, 10, NULL), 0);
		/* The data begin at a multiple of 64, for those who map the file. */
		ck_assert_int_eq((ftell(file) - 10) % 64, 0);
		rewind(file);
		ck_assert_int_eq(npy_read_header(file, &npy, NULL), 0);
		ck_assert_int_eq(npy_check_type(&npy, "<f4", NULL), 0);
		ck_assert_int_eq(npy_check_shape(&npy, shapes[i], n_dims[i], NULL), 0);
		ck_assert_int_eq(npy_read_data(file, to, 10, NULL), 0);
		ck_assert_mem_eq(to, data, 10);
		fclose(file);
	}
}

TEST(damaged_files_never_crash)
{
	uint32_t state = 3;
	for (unsigned round = 0; round < 3000; round++) {
		char header[sizeof(good)];
		struct npy npy;
		memcpy(header, good, sizeof(good));
		for (unsigned i = 0; i < 1 + round % 3; i++) {
			state = state * 1664525 + 1013904223;
			header[(state >> 8) % (sizeof(good) - 1)] = (char)(state >> 24 ? state >> 24 : 1);
		}
		FILE *file = fmemopen(NULL, 256, "w+");
		const uint8_t start[] = {0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0, sizeof(good) - 1, 0};
		fwrite(start, 1, sizeof(start), file);
		fwrite(header, 1, sizeof(good) - 1, file);
		rewind(file);
		npy_read_header(file, &npy, NULL);
		ck_assert_uint_le(npy.n_dims, NPY_DIMS_MAX);
		fclose(file);
	}
}