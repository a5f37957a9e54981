#include <string.h>

#include <npumem/layout.h>

#include "tests/support/test.h"

TEST(chips)
{
	static const struct {
		const char *name;
		struct npumem_geometry geometry;
	} parts[] = {
		{"bm1684", {64, 512 * 1024, 8, 128}}, {"bm1684x", {64, 256 * 1024, 16, 64}},
		{"bm1690", {64, 256 * 1024, 16, 64}}, {"sg2260", {64, 256 * 1024, 16, 128}},
		{"sg2380", {32, 128 * 1024, 16, 16}},
	};
	struct npumem_geometry geometry;
	for (unsigned i = 0; i < 5; i++) {
		ck_assert(npumem_geometry_chip(parts[i].name, &geometry));
		ck_assert_int_eq(memcmp(&geometry, &parts[i].geometry, sizeof(geometry)), 0);
		ck_assert_int_eq(npumem_geometry_check(&geometry, NULL), 0);
	}
	npumem_geometry_default(&geometry);
	ck_assert_int_eq(memcmp(&geometry, &parts[0].geometry, sizeof(geometry)), 0);
	ck_assert(!npumem_geometry_chip("bm1", &geometry));
	ck_assert(!npumem_geometry_chip(NULL, &geometry));
}

TEST(check)
{
	static const struct {
		struct npumem_geometry geometry;
		const char *part; /* NULL: accepted */
	} cases[] = {
		{{1, 128, 1, 4}, NULL},
		{{1024, 1 << 30, 128, 128}, NULL},
		{{0, 128, 1, 4}, "0 NPUs is not in 1..1024"},
		{{1025, 128, 1, 4}, "1025 NPUs"},
		{{INT64_MIN, 128, 1, 4}, "NPUs"},
		{{1, 0, 1, 4}, "0 bytes per NPU is not a multiple of 128 in 128..1073741824"},
		{{1, 64, 1, 4}, "64 bytes per NPU"},
		{{1, 130, 1, 4}, "130 bytes per NPU"},
		{{1, (1 << 30) + 128, 1, 4}, "1073741952 bytes per NPU"},
		{{1, 128, 0, 4}, "0 banks do not divide the 128 bytes"},
		{{1, 128, 3, 4}, "3 banks"},
		{{1, 128, 256, 4}, "256 banks"},
		{{1, 128, 1, 2}, "2 EU bytes is not a power of two in 4..128"},
		{{1, 128, 1, 24}, "24 EU bytes"},
		{{1, 256, 1, 256}, "256 EU bytes"},
		{{1, 128, 1, 0}, "0 EU bytes"},
		{{1, 128, 1, -4}, "-4 EU bytes"},
	};
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct npumem_error error = {0};
		int status = npumem_geometry_check(&cases[i].geometry, &error);
		ck_assert_int_eq(status, cases[i].part ? NPUMEM_INVALID : 0);
		if (cases[i].part)
			ck_assert_msg(strstr(error.message, cases[i].part), "\"%s\"", error.message);
	}
}
