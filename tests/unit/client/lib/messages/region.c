/* Elements spread over a segment, put there and summed up. */
#include "client/lib/messages/payload.h"

#include "proto/digest.h"
#include "tests/support/test.h"
#include "tests/unit/client/lib/records.h"

/* Every element by its own four loops. */
static void naive(const struct region *region, const uint8_t *base, uint8_t *dense)
{
	for (uint64_t n = 0; n < region->extent[0]; n++)
		for (uint64_t c = 0; c < region->extent[1]; c++)
			for (uint64_t h = 0; h < region->extent[2]; h++)
				for (uint64_t w = 0; w < region->extent[3]; w++) {
					uint64_t at = n * region->stride[0] + c * region->stride[1] +
						      h * region->stride[2] + w * region->stride[3];
					memcpy(dense, base + region->offset + at * region->element_bytes,
					       region->element_bytes);
					dense += region->element_bytes;
				}
}

static Npumem__V1__Dims dims(int64_t n, int64_t c, int64_t h, int64_t w)
{
	Npumem__V1__Dims dims = {MESSAGE(dims), .n = n, .c = c, .h = h, .w = w};
	return dims;
}

TEST(what_is_put_is_there)
{
	static const struct {
		int64_t extent[4], stride[4];
		uint32_t element_bytes;
	} cases[] = {
		{{1, 1, 1, 100}, {1, 1, 1, 1}, 1}, {{1, 1, 1, 100}, {0, 0, 0, 2}, 2},
		{{2, 3, 4, 5}, {60, 20, 5, 1}, 4}, {{2, 3, 4, 5}, {100, 30, 7, 1}, 2},
		{{2, 3, 4, 5}, {1, 2, 6, 24}, 1},  {{7, 1, 1, 9}, {11, 0, 0, 1}, 1},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct records_transfer transfer;
		struct region region;
		uint8_t base[2048], dense[600], back[600];
		const int64_t *e = cases[i].extent, *s = cases[i].stride;
		records_transfer_init(&transfer);
		transfer.message.element_bytes = cases[i].element_bytes;
		transfer.extent = dims(e[0], e[1], e[2], e[3]);
		transfer.stride = dims(s[0], s[1], s[2], s[3]);
		ck_assert(region_of(&transfer.message, &region));
		ck_assert_uint_le(region.end, sizeof(base));
		memset(base, 0xee, sizeof(base));
		for (unsigned k = 0; k < sizeof(dense); k++)
			dense[k] = (uint8_t)(k * 7 + 1);
		/* In pieces that end within rows. */
		for (uint64_t at = 0, n; at < region.bytes; at += n) {
			n = region.bytes - at < 8 * 3 ? region.bytes - at : 8 * 3;
			region_put(&region, base, at, dense + at, n);
		}
		naive(&region, base, back);
		ck_assert_mem_eq(back, dense, region.bytes);
		memset(back, 0, sizeof(back));
		region_get(&region, base, back);
		ck_assert_mem_eq(back, dense, region.bytes);
		ck_assert_uint_eq(region_crc(&region, base), digest_crc(0, dense, region.bytes));
		/* And nowhere else. */
		size_t others = 0;
		for (size_t k = 0; k < sizeof(base); k++)
			others += base[k] == 0xee;
		size_t same = 0;
		for (size_t k = 0; k < region.bytes; k++)
			same += dense[k] == 0xee;
		ck_assert_uint_eq(others - same, sizeof(base) - region.bytes);
		ck_assert(base[region.end] == 0xee && base[9] == 0xee);
	}
}

TEST(numbers_that_make_no_sense)
{
	struct records_transfer transfer;
	struct region region;
	int64_t *fields[] = {&transfer.extent.n, &transfer.extent.c, &transfer.extent.h, &transfer.extent.w,
			     &transfer.stride.n, &transfer.stride.c, &transfer.stride.h, &transfer.stride.w};
	for (unsigned i = 0; i < 8; i++) {
		records_transfer_init(&transfer);
		ck_assert(region_of(&transfer.message, &region));
		*fields[i] = -1;
		ck_assert(!region_of(&transfer.message, &region));
		records_transfer_init(&transfer);
		*fields[i] = i < 4 ? 0 : INT64_MIN;
		ck_assert(!region_of(&transfer.message, &region));
	}
	for (unsigned i = 0; i < 10; i++) {
		records_transfer_init(&transfer);
		transfer.message.element_bytes = i;
		ck_assert_int_eq(region_of(&transfer.message, &region), i == 1 || i == 2 || i == 4 || i == 8);
	}
	records_transfer_init(&transfer);
	transfer.extent = dims(1 << 20, 1 << 20, 1 << 20, 16);
	ck_assert(!region_of(&transfer.message, &region));
	records_transfer_init(&transfer);
	transfer.stride.h = INT64_MAX;
	ck_assert(!region_of(&transfer.message, &region));
	transfer.stride.h = 8;
	transfer.message.offset = UINT64_MAX - 20;
	ck_assert(!region_of(&transfer.message, &region));
	transfer.message.offset = UINT64_MAX - 22;
	ck_assert(region_of(&transfer.message, &region));
	ck_assert_uint_eq(region.end, UINT64_MAX);
	transfer.message.extent = NULL;
	ck_assert(!region_of(&transfer.message, &region));
}
