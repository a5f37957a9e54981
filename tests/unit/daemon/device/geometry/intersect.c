/* What two places have in common, against maps of their bytes. */
#include "daemon/device/geometry/intersect.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/random_place.h"
#include "tests/support/test.h"

enum { NPUS_MAX = 8, NPU_BYTES = 1 << 13 };

static const int64_t n_npus[] = {1, 2, 3, 4, 7, 8};

struct pair {
	struct npumem_geometry geometry;
	struct npumem_place places[2];
	unsigned kinds[2];
	uint8_t maps[2][NPUS_MAX][NPU_BYTES];
	unsigned round;
};

#define EXPECT(what)                                                                                              \
	do {                                                                                                      \
		if (!(what))                                                                                      \
			ck_abort_msg("round %u, kinds %u and %u, NPU %ld, byte %ld: %s", pair->round,             \
				     pair->kinds[0], pair->kinds[1], (long)npu, (long)at, #what);                 \
	} while (0)

static bool common(const struct pair *pair, int64_t npu, int64_t at)
{
	return pair->maps[0][npu][at] & pair->kinds[0] && pair->maps[1][npu][at] & pair->kinds[1];
}

/* A range is of common bytes, and neither touches others of its NPUs nor leaves any out between `after` and it. */
static void check_range(const struct pair *pair, const struct intersect_range *range, int64_t after)
{
	int64_t end = range->offset + range->bytes;
	for (int64_t npu = range->npu; npu < range->npu + range->n_npus; npu++) {
		for (int64_t at = after; at < range->offset; at++)
			EXPECT(!common(pair, npu, at));
		for (int64_t at = range->offset; at < end; at++)
			EXPECT(common(pair, npu, at));
		int64_t at = end;
		EXPECT(end == NPU_BYTES || !common(pair, npu, end));
	}
}

static void check_none(const struct pair *pair, int64_t from_npu, int64_t to_npu, int64_t after)
{
	for (int64_t npu = from_npu; npu < to_npu; npu++)
		for (int64_t at = after; at < NPU_BYTES; at++)
			EXPECT(!common(pair, npu, at));
}

/* The whole walk, in pieces of `steps`. */
static void check_walk(const struct pair *pair, int64_t steps)
{
	struct intersect walk;
	struct intersect_range range;
	enum intersect_answer answer;
	int64_t npu = 0, after = 0, end_npu = 0; /* NPUs below npu are done, up to end_npu as far as `after` */
	int64_t left = steps;
	intersect_begin(&walk, &pair->geometry, &pair->places[0], pair->kinds[0], &pair->places[1],
			pair->kinds[1]);
	while ((answer = intersect_step(&walk, &left, &range)) != INTERSECT_END) {
		if (answer == INTERSECT_PAUSE) {
			left = steps;
			continue;
		}
		if (range.npu != npu || !end_npu) {
			check_none(pair, npu, end_npu, after);
			check_none(pair, end_npu, range.npu, 0);
			ck_assert_int_ge(range.npu, end_npu);
			npu = range.npu;
			end_npu = npu + range.n_npus;
			after = 0;
		}
		ck_assert_int_ge(range.offset, after);
		check_range(pair, &range, after);
		after = range.offset + range.bytes;
	}
	check_none(pair, npu, end_npu, after);
	check_none(pair, end_npu, pair->geometry.n_npus, 0);
	ck_assert_int_eq(intersect_step(&walk, &left, &range), INTERSECT_END);
}

/* The first stretch is the one of the lowest NPU and offset. */
static void check_first(const struct pair *pair)
{
	struct intersect_range range;
	bool any = intersect_first(&pair->geometry, &pair->places[0], pair->kinds[0], &pair->places[1],
				   pair->kinds[1], &range);
	for (int64_t npu = 0; npu < pair->geometry.n_npus; npu++)
		for (int64_t at = 0; at < NPU_BYTES; at++)
			if (common(pair, npu, at)) {
				EXPECT(any && range.npu == npu && range.offset == at);
				return;
			}
	ck_assert(!any);
}

/* Every pair of kinds that is asked for, and some more. */
TEST(as_the_bytes_say, .to = sizeof(n_npus) / sizeof(n_npus[0]))
{
	static const unsigned kinds[] = {KINDS_DATA,
					 KINDS_FOOTPRINT,
					 NPUMEM_BYTE_EMPTY,
					 NPUMEM_BYTE_DATA,
					 NPUMEM_BYTE_PADDING,
					 NPUMEM_BYTE_DUMMY,
					 3,
					 9,
					 14};
	enum { N_KINDS = sizeof(kinds) / sizeof(kinds[0]) };
	static struct pair pair;
	uint64_t random = 900 + (uint64_t)_i;
	for (pair.round = 0; pair.round < 24; pair.round++) {
		pair.geometry = (struct npumem_geometry){n_npus[_i], NPU_BYTES, 8,
							 INT64_C(4) << oracle_between(&random, 0, 5)};
		memset(pair.maps, 0, sizeof(pair.maps));
		for (int k = 0; k < 2; k++) {
			struct npumem_place *place = &pair.places[k];
			*place = random_place(&random, &pair.geometry, true);
			for (int64_t npu = 0; npu < n_npus[_i]; npu++)
				npumem_place_paint(&pair.geometry, place, npu, 0, place->bytes_per_npu,
						   &pair.maps[k][npu][place->offset]);
		}
		for (unsigned i = 0; i < 6; i++) {
			pair.kinds[0] = kinds[oracle_between(&random, 0, N_KINDS - 1)];
			pair.kinds[1] = kinds[oracle_between(&random, 0, N_KINDS - 1)];
			check_walk(&pair, oracle_between(&random, 1, 5));
			check_first(&pair);
		}
	}
}

static struct npumem_place strided(const struct npumem_geometry *geometry, int64_t n, int64_t h, int64_t w,
				   struct npumem_dims stride, int64_t offset)
{
	struct npumem_place place;
	struct npumem_spec spec;
	npumem_spec_init(&spec);
	spec.dtype = NPUMEM_INT8;
	spec.layout = NPUMEM_STRIDED;
	spec.shape = (struct npumem_dims){n, geometry->n_npus, h, w};
	spec.stride = stride;
	spec.address = offset;
	ck_assert_int_eq(npumem_place_resolve(geometry, &spec, &place, NULL), 0);
	return place;
}

static int64_t steps_of(const struct npumem_geometry *geometry, const struct npumem_place *a,
			const struct npumem_place *b)
{
	struct intersect walk;
	struct intersect_range range;
	int64_t steps = INT64_MAX;
	intersect_begin(&walk, geometry, a, KINDS_DATA, b, KINDS_DATA);
	ck_assert_int_eq(intersect_step(&walk, &steps, &range), INTERSECT_END);
	return INT64_MAX - steps;
}

/* What lies between each other's words on a GiB is told apart in a few steps. */
TEST(apart_on_large_npus)
{
	const struct npumem_geometry geometry = {64, 1 << 30, 8, 128};
	const struct npumem_dims two = {1, 1, 1, 2}, halves = {4096, 1, 64, 1};
	struct npumem_place a = strided(&geometry, 1, 1, 1 << 29, two, 0);
	struct npumem_place b = strided(&geometry, 1, 1, (1 << 29) - 2, two, 1);
	ck_assert_int_le(steps_of(&geometry, &a, &b), 8);
	a = strided(&geometry, 1 << 18, 64, 32, halves, 0);
	b = strided(&geometry, 1 << 18, 64, 30, halves, 32);
	ck_assert_int_le(steps_of(&geometry, &a, &b), 8);
	a = strided(&geometry, 1, 1, (1 << 30) / 194, (struct npumem_dims){1, 1, 1, 194}, 0);
	b = strided(&geometry, 1, 1, (1 << 30) / 202 - 1, (struct npumem_dims){1, 1, 1, 202}, 1);
	ck_assert_int_le(steps_of(&geometry, &a, &b), 60);
}

static bool in_steps(int64_t at, const struct npumem_place *place)
{
	int64_t step = (at - place->offset) / place->stride.w;
	return at >= place->offset && (at - place->offset) % place->stride.w == 0 && step < place->shape.w;
}

/* Bytes at two regular distances: the first that both have is found, wherever their periods meet. */
TEST(two_periods)
{
	const struct npumem_geometry geometry = {1, 1 << 16, 8, 128};
	uint64_t random = 11;
	unsigned n_far = 0;
	for (unsigned round = 0; round < 600; round++) {
		struct npumem_place places[2];
		struct intersect_range range;
		for (int k = 0; k < 2; k++) {
			int64_t stride = oracle_between(&random, 65, 400),
				offset = oracle_between(&random, 0, 800);
			int64_t most = ((1 << 16) - offset - 4) / stride;
			places[k] = strided(&geometry, 1, 1, oracle_between(&random, most / 2, most),
					    (struct npumem_dims){1, 1, 1, stride}, offset);
		}
		int64_t at = 0;
		while (at < 1 << 16 && !(in_steps(at, &places[0]) && in_steps(at, &places[1])))
			at++;
		bool any = intersect_first(&geometry, &places[0], KINDS_DATA, &places[1], KINDS_DATA, &range);
		if (any != (at < 1 << 16) || (any && range.offset != at))
			ck_abort_msg("round %u: %d at %ld, not %ld", round, any, (long)range.offset, (long)at);
		n_far += any && at > 1 << 15;
	}
	ck_assert_uint_ge(n_far, 5);
}

/* Wide gaps are passed by at once, also between words of strides that do not nest. */
TEST(gaps_of_tangled_strides)
{
	const struct npumem_geometry geometry = {64, 1 << 30, 8, 128};
	struct npumem_place a = strided(&geometry, 1, 500, 500, (struct npumem_dims){1, 1, 1000003, 1000000}, 0);
	struct npumem_place b = strided(&geometry, 1, 1, 900, (struct npumem_dims){1, 1, 1, 1000000}, 500000);
	ck_assert_int_le(steps_of(&geometry, &a, &b), 4000);
}

TEST(the_same_elements)
{
	const struct npumem_geometry geometry = {4, 4096, 8, 128};
	struct npumem_place a = strided(&geometry, 1, 2, 3, (struct npumem_dims){9, 9, 4, 1}, 0), b = a;
	b.stride.n = 77; /* of an extent of 1 */
	ck_assert(intersect_same(&a, &b));
	b.stride.h = 5;
	ck_assert(!intersect_same(&a, &b));
	b = a;
	b.address++;
	ck_assert(!intersect_same(&a, &b));
}
