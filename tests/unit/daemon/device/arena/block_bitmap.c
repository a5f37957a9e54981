/* The set of block starts against an array of bools. */
#include "daemon/device/arena/block_bitmap.h"

#include <errno.h>

#include "tests/support/oracle.h"
#include "tests/support/test.h"
#include "tests/unit/daemon/device/scarce.h"

static const int64_t limits[] = {1, 2, 63, 64, 65, 4096, 4097, 64 * 64 * 64 + 1};

TEST(against_an_array, .to = sizeof(limits) / sizeof(limits[0]))
{
	struct block_bitmap starts;
	int64_t limit = limits[_i];
	uint64_t random = 3;
	bool *is_member = calloc((size_t)limit, sizeof(*is_member));
	ck_assert_ptr_nonnull(is_member);
	ck_assert_int_eq(block_bitmap_init(&starts, &heap_libc, (uint64_t)limit), 0);
	for (int i = 0; i < 4000; i++) {
		/* Near some places again and again, so that words fill up and become empty. */
		int64_t x = oracle_random(&random) % 4 ? oracle_between(&random, 0, 200) * 131 % limit
						       : oracle_between(&random, 0, limit - 1);
		if (is_member[x])
			block_bitmap_remove(&starts, (uint64_t)x, true);
		else
			block_bitmap_add(&starts, (uint64_t)x);
		is_member[x] = !is_member[x];
		if (is_member[x])
			block_bitmap_remove(&starts, (uint64_t)x, false);
		int64_t ask = oracle_between(&random, 0, limit - 1), floor = ask, ceil = ask;
		while (floor >= 0 && !is_member[floor])
			floor--;
		while (ceil < limit && !is_member[ceil])
			ceil++;
		if (block_bitmap_has(&starts, (uint64_t)ask) != is_member[ask])
			ck_abort_msg("member %ld is wrong", (long)ask);
		if (block_bitmap_floor(&starts, (uint64_t)ask) !=
		    (floor < 0 ? BLOCK_BITMAP_NONE : (uint64_t)floor))
			ck_abort_msg("floor of %ld is not %ld", (long)ask, (long)floor);
		if (block_bitmap_ceil(&starts, (uint64_t)ask) !=
		    (ceil == limit ? BLOCK_BITMAP_NONE : (uint64_t)ceil))
			ck_abort_msg("ceil of %ld is not %ld", (long)ask, (long)ceil);
	}
	/* Emptied, it starts again. */
	for (int64_t x = 0; x < limit; x++)
		if (is_member[x])
			block_bitmap_remove(&starts, (uint64_t)x, true);
	ck_assert_uint_eq(block_bitmap_floor(&starts, (uint64_t)limit - 1), BLOCK_BITMAP_NONE);
	ck_assert_uint_eq(block_bitmap_ceil(&starts, 0), BLOCK_BITMAP_NONE);
	ck_assert_uint_eq(block_bitmap_ceil(&starts, (uint64_t)limit), BLOCK_BITMAP_NONE);
	block_bitmap_add(&starts, 0);
	ck_assert_uint_eq(block_bitmap_floor(&starts, (uint64_t)limit - 1), 0);
	block_bitmap_deinit(&starts, &heap_libc);
	free(is_member);
}

TEST(no_memory)
{
	struct block_bitmap starts;
	struct scarce scarce;
	scarce_init(&scarce);
	scarce_arm(&scarce, 0);
	ck_assert_int_eq(block_bitmap_init(&starts, &scarce.heap, 100), -ENOMEM);
	ck_assert_int_eq(scarce.n_live, 0);
}
