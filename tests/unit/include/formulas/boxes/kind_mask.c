/* Masks against the kinds of bytes that npumem_place_paint gives, which paint.c compares with a map of the
 * elements, and against the counts of blocks. */
#include "include/formulas/boxes/kind_mask.h"

#include <stdio.h>
#include <string.h>

#include "tests/support/random_place.h"
#include "tests/support/test.h"

static const int64_t n_npus[] = {1, 2, 3, 4, 7, 8, 64, 70, 1024};

static bool bit(const uint64_t *bits, int64_t i)
{
	return bits[i / 64] >> i % 64 & 1;
}

static int64_t count(const uint64_t *bits, unsigned n_words)
{
	int64_t n = 0;
	for (unsigned w = 0; w < n_words; w++)
		n += __builtin_popcountll(bits[w]);
	return n;
}

/* ck_assert reports to the runner each time, which is too often for every byte. */
#define EXPECT(what)                                                                                              \
	do {                                                                                                      \
		if (!(what))                                                                                      \
			ck_abort_msg("round %u, NPU %ld: %s", round, (long)npu, #what);                           \
	} while (0)

enum { NPU_BYTES = 1 << 14, ROOM = NPU_BYTES + 8192 };

struct stage {
	struct npumem_geometry geometry;
	struct npumem_place place;
	uint8_t kinds[ROOM]; /* by offset; 0: outside */
};

static void draw(struct stage *stage, int64_t npu)
{
	memset(stage->kinds, 0, sizeof(stage->kinds));
	npumem_place_paint(&stage->geometry, &stage->place, npu, 0, stage->place.bytes_per_npu,
			   stage->kinds + stage->place.offset);
}

static void check_window(const struct stage *stage, const struct kind_mask *mask, uint64_t *random, unsigned round,
			 int64_t npu)
{
	const struct npumem_place *place = &stage->place;
	uint64_t bits[KIND_MASK_WORDS];
	unsigned n_words = (unsigned)oracle_between(random, 1, KIND_MASK_WORDS);
	int64_t before = place->offset < 100 ? place->offset : 100;
	int64_t from = oracle_between(random, place->offset - before, place->offset + place->bytes_per_npu - 1);
	kind_mask_bits(mask, from, n_words, bits);
	for (int64_t i = 0; i < 64 * (int64_t)n_words; i++)
		EXPECT(bit(bits, i) == !!(stage->kinds[from + i] & mask->kinds));
}

static void check_until(const struct stage *stage, const struct kind_mask *mask, uint64_t *random, unsigned round,
			int64_t npu)
{
	const struct npumem_place *place = &stage->place;
	int64_t at = place->offset + oracle_between(random, 0, place->bytes_per_npu - 1), period = 1;
	bool in;
	int64_t until = kind_mask_until(mask, at, &in);
	EXPECT(until > at && until <= place->offset + place->bytes_per_npu);
	for (int64_t i = at; i < until; i++)
		EXPECT(in == !!(stage->kinds[i] & mask->kinds));
	until = kind_mask_period(mask, at, oracle_between(random, 1, 600), &period);
	EXPECT(until > at && until <= place->offset + place->bytes_per_npu);
	for (int64_t i = at; i + period < until; i++)
		EXPECT(!(stage->kinds[i] & mask->kinds) == !(stage->kinds[i + period] & mask->kinds));
}

/* Any kinds on any window of any place. */
TEST(as_painted, .to = sizeof(n_npus) / sizeof(n_npus[0]))
{
	static struct stage stage;
	uint64_t random = 100 + (uint64_t)_i;
	for (unsigned round = 0; round < 60; round++) {
		stage.geometry = (struct npumem_geometry){n_npus[_i], NPU_BYTES, 8,
							  INT64_C(4) << oracle_between(&random, 0, 5)};
		stage.place = random_place(&random, &stage.geometry, true);
		int64_t npu = oracle_between(&random, 0, n_npus[_i] - 1);
		draw(&stage, npu);
		for (unsigned kinds = 1; kinds <= KIND_MASK_ALL; kinds++) {
			struct kind_mask mask;
			kind_mask_init(&mask, &stage.geometry, &stage.place, stage.place.offset, npu, kinds);
			check_window(&stage, &mask, &random, round, npu);
			check_until(&stage, &mask, &random, round, npu);
		}
	}
}

/* No byte is of two kinds, and each is of one; over all NPUs they are as many as the place says. */
TEST(disjoint_and_counted, .to = sizeof(n_npus) / sizeof(n_npus[0]))
{
	uint64_t random = 300 + (uint64_t)_i;
	for (unsigned round = 0; round < (n_npus[_i] > 64 ? 3 : 30); round++) {
		const struct npumem_geometry geometry = {n_npus[_i], NPU_BYTES, 8,
							 INT64_C(4) << oracle_between(&random, 0, 5)};
		struct npumem_place place = random_place(&random, &geometry, false);
		struct npumem_blocks blocks = {0};
		for (int64_t npu = 0; npu < n_npus[_i]; npu++) {
			struct kind_mask mask;
			struct kind_mask_split split;
			kind_mask_init(&mask, &geometry, &place, place.offset, npu, KIND_MASK_EACH);
			for (int64_t at = place.offset; at < mask.to; at += 64 * KIND_MASK_WORDS) {
				kind_mask_split(&mask, at, KIND_MASK_WORDS, &split);
				for (unsigned w = 0; w < KIND_MASK_WORDS; w++) {
					uint64_t d = split.data[w], y = split.dummy[w];
					uint64_t p = split.padding[w], e = split.empty[w];
					int64_t left = mask.to - at - 64 * (int64_t)w;
					uint64_t all = left >= 64  ? UINT64_MAX
						       : left <= 0 ? 0
								   : ~(UINT64_MAX << left);
					EXPECT((d | y | p | e) == all);
					EXPECT(!(d & y) && !(d & p) && !(d & e) && !(y & p) && !(y & e) &&
					       !(p & e));
				}
				blocks.data += count(split.data, KIND_MASK_WORDS);
				blocks.dummy += count(split.dummy, KIND_MASK_WORDS);
				blocks.padding += count(split.padding, KIND_MASK_WORDS);
				blocks.empty += count(split.empty, KIND_MASK_WORDS);
			}
		}
		ck_assert_int_eq(blocks.data, place.blocks.data);
		ck_assert_int_eq(blocks.dummy, place.blocks.dummy);
		ck_assert_int_eq(blocks.padding, place.blocks.padding);
		ck_assert_int_eq(blocks.empty, place.blocks.empty);
	}
}

/* Between two cuts all NPUs look the same. */
TEST(groups_of_npus, .to = sizeof(n_npus) / sizeof(n_npus[0]))
{
	static struct stage stage, other;
	uint64_t random = 500 + (uint64_t)_i;
	for (unsigned round = 0; round < 40; round++) {
		int64_t cuts[KIND_MASK_CUTS];
		stage.geometry = (struct npumem_geometry){n_npus[_i], NPU_BYTES, 8, 16};
		stage.place = random_place(&random, &stage.geometry, true);
		other = stage;
		int64_t npu = oracle_between(&random, 0, n_npus[_i] - 1);
		if (npu + 1 == n_npus[_i])
			continue;
		bool cut = false;
		for (unsigned i = kind_mask_cuts(&stage.geometry, &stage.place, NPUMEM_BYTE_DATA, cuts); i-- > 0;)
			cut |= cuts[i] == npu + 1;
		draw(&stage, npu);
		draw(&other, npu + 1);
		EXPECT(cut || !memcmp(stage.kinds, other.kinds, sizeof(other.kinds)));
		ck_assert_uint_eq(kind_mask_cuts(&stage.geometry, &stage.place, KIND_MASK_ALL, cuts), 0);
	}
}
