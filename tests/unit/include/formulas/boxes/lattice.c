#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "include/formulas/boxes/lattice.h"
#include "tests/unit/include/formulas/specs.h"

enum { OFFSETS = 1 << 13 };

/* How often each offset is reached, by walking through all points. */
static unsigned walk(const struct lattice *box, unsigned *hits)
{
	unsigned most = 0;
	memset(hits, 0, OFFSETS * sizeof(*hits));
	for (int64_t a = 0; a < box->extent[0]; a++) {
		for (int64_t b = 0; b < box->extent[1]; b++) {
			for (int64_t c = 0; c < box->extent[2]; c++) {
				for (int64_t d = 0; d < box->extent[3]; d++) {
					unsigned *hit = &hits[a * box->stride[0] + b * box->stride[1] +
							      c * box->stride[2] + d * box->stride[3]];
					(*hit)++;
					most = *hit > most ? *hit : most;
				}
			}
		}
	}
	return most;
}

static void check_difference(const struct lattice *box, const int64_t difference[LATTICE_DIMS])
{
	int64_t sum = 0;
	bool zero = true;
	for (unsigned i = 0; i < LATTICE_DIMS; i++) {
		ck_assert_int_lt(difference[i] < 0 ? -difference[i] : difference[i], box->extent[i]);
		sum += difference[i] * box->stride[i];
		zero = zero && difference[i] == 0;
	}
	ck_assert_int_eq(sum, 0);
	ck_assert(!zero);
}

/* Small boxes against the walk: collisions, and what a moved copy shares. */
TEST(random_boxes, .to = 4)
{
	static unsigned hits[OFFSETS];
	uint64_t state = 20 + (uint64_t)_i;
	unsigned collided = 0, clean = 0, some_shared = 0;
	for (unsigned round = 0; round < 1500; round++) {
		struct lattice box;
		for (unsigned i = 0; i < LATTICE_DIMS; i++) {
			box.extent[i] = specs_draw(&state, 1, 7);
			box.stride[i] = specs_draw(&state, 1, specs_draw(&state, 1, 300));
		}
		int64_t difference[LATTICE_DIMS];
		bool collides = lattice_collides(&box, difference);
		if (collides != (walk(&box, hits) > 1))
			ck_abort_msg("round %u: says %d", round, collides);
		if (collides) {
			collided++;
			check_difference(&box, difference);
			continue;
		}
		clean++;
		int64_t shift = specs_draw(&state, 1, specs_draw(&state, 1, 3000)), shared = 0;
		for (int64_t offset = shift; offset < OFFSETS; offset++)
			shared += hits[offset] && hits[offset - shift];
		some_shared += shared > 0;
		ck_assert_int_eq(lattice_shared(&box, shift), shared);
	}
	ck_assert_uint_gt(collided, 200);
	ck_assert_uint_gt(clean, 200);
	ck_assert_uint_gt(some_shared, 100);
}

static const struct {
	struct lattice box;
	bool collides;
} large[] = {
	/* nothing to find, and the strides do not nest */
	{{{32768, 32767, 1, 1}, {32767, 1, 1, 1}}, false},
	{{{32768, 32768, 1, 1}, {32767, 1, 1, 1}}, true},
	{{{23170, 23169, 1, 1}, {23169, 23170, 1, 1}}, false},
	{{{23171, 23170, 1, 1}, {23169, 23170, 1, 1}}, true},
	/* Mixed radix in disguise: 2 and 3 dimensions of about 1000 whose strides share no factor. */
	{{{1009, 1013, 512, 1}, {1013, 1009, 2 * 1009 * 1013, 1}}, false},
	{{{1010, 1014, 511, 1}, {1013, 1009, 2 * 1009 * 1013, 1}}, true},
	{{{997, 991, 13, 11}, {991, 997, 2 * 991 * 997, 26 * 991 * 997 + 1}}, false},
	/* far more points than offsets */
	{{{1 << 28, 1 << 28, 1 << 28, 1 << 28}, {1, 1, 1, 1}}, true},
	{{{1 << 20, 1 << 20, 1 << 20, 1 << 20}, {255, 253, 251, 241}}, true},
	{{{1, 2, 1 << 27, 2}, {1, (1 << 27) + 1, 1, (1 << 28) + 1}}, false},
	{{{1, 2, 1 << 27, 2}, {1, (1 << 27) - 1, 1, 1 << 28}}, true},
};

/* Boxes near 2^30 offsets are decided, without a walk, at once. */
TEST(large_boxes, .to = sizeof(large) / sizeof(large[0]))
{
	clock_t start = clock();
	int64_t difference[LATTICE_DIMS];
	bool collides = lattice_collides(&large[_i].box, difference);
	ck_assert_int_eq(collides, large[_i].collides);
	if (collides)
		check_difference(&large[_i].box, difference);
	else
		lattice_shared(&large[_i].box, 12345);
	double seconds = (double)(clock() - start) / CLOCKS_PER_SEC;
	ck_assert_msg(seconds < 0.5, "took %.3f s", seconds);
}
