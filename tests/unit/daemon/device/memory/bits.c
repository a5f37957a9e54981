/* Ranges of bits against an array of bools, at every position in a word. */
#include "daemon/device/memory/bits.h"

#include <string.h>

#include "tests/support/oracle.h"
#include "tests/support/test.h"

enum { N_BITS = 64 * 12 };

struct bitmap {
	uint64_t words[N_BITS / 64];
	bool bits[N_BITS];
};

static void compare(const struct bitmap *map, const char *what, int64_t from, int64_t n)
{
	for (int64_t i = 0; i < N_BITS; i++)
		if ((map->words[i / 64] >> i % 64 & 1) != map->bits[i])
			ck_abort_msg("%s %ld, %ld: bit %ld is wrong", what, (long)from, (long)n, (long)i);
}

static void scatter(struct bitmap *map, uint64_t *random)
{
	memset(map, 0, sizeof(*map));
	int64_t mostly = oracle_between(random, 0, 3), odd = oracle_between(random, 0, N_BITS - 1);
	for (int64_t i = 0; i < N_BITS; i++) {
		map->bits[i] = mostly == 0 ? i == odd : mostly == 1 ? i != odd : oracle_random(random) % 2;
		map->words[i / 64] |= (uint64_t)map->bits[i] << i % 64;
	}
}

static int64_t naive_first_not(const struct bitmap *map, bool value, int64_t from, int64_t n)
{
	for (int64_t i = from; i < from + n; i++)
		if (map->bits[i] != value)
			return i;
	return from + n;
}

static void one_range(struct bitmap *map, uint64_t *random, int64_t from, int64_t n)
{
	int64_t count = 0;
	scatter(map, random);
	for (int64_t i = from; i < from + n; i++)
		count += map->bits[i];
	const uint64_t *words = map->words;
	if (bits_count(words, (uint64_t)from, (uint64_t)n) != (uint64_t)count)
		ck_abort_msg("count of %ld, %ld is not %ld", (long)from, (long)n, (long)count);
	for (int value = 0; value < 2; value++) {
		uint64_t first = bits_first_not(words, value, (uint64_t)from, (uint64_t)n);
		if (first != (uint64_t)naive_first_not(map, value, from, n))
			ck_abort_msg("first not %d of %ld, %ld is wrong", value, (long)from, (long)n);
	}
	bits_set(map->words, (uint64_t)from, (uint64_t)n);
	for (int64_t i = from; i < from + n; i++)
		map->bits[i] = true;
	compare(map, "set", from, n);
	scatter(map, random);
	bits_clear(map->words, (uint64_t)from, (uint64_t)n);
	for (int64_t i = from; i < from + n; i++)
		map->bits[i] = false;
	compare(map, "clear", from, n);
}

TEST(every_range)
{
	static struct bitmap map;
	static const int64_t lengths[] = {0,   1,   2,	 31,  62,  63,	64,  65, 127,
					  128, 129, 192, 256, 257, 384, 511, 640};
	uint64_t random = 11;
	for (int64_t from = 0; from < 128; from++)
		for (unsigned i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++)
			one_range(&map, &random, from, lengths[i]);
}

TEST(moves_down)
{
	static struct bitmap map;
	uint64_t random = 12;
	for (int i = 0; i < 4000; i++) {
		int64_t from = oracle_between(&random, 0, N_BITS - 1), to = oracle_between(&random, 0, from);
		int64_t n = oracle_between(&random, 0, N_BITS - from);
		scatter(&map, &random);
		bits_copy(map.words, (uint64_t)to, map.words, (uint64_t)from, (uint64_t)n);
		memmove(&map.bits[to], &map.bits[from], (size_t)n * sizeof(map.bits[0]));
		compare(&map, "move", from, n);
	}
}
