/* Against an array that has a count for each byte. */
#include "daemon/device/arena/occupancy.h"

#include <string.h>

#include "daemon/device/arena/arena.h"
#include "tests/support/oracle.h"
#include "tests/support/test.h"

enum { TENSORS = 40, ROUNDS = 300 };

static const int64_t sizes[] = {128, 384, 1024, 8192, 100 * 128, 524288};

static struct {
	int64_t from[TENSORS], to[TENSORS]; /* to 0: it is not there */
} tensors;

static bool is_free(int64_t from, int64_t to)
{
	for (unsigned i = 0; i < TENSORS; i++)
		if (tensors.to[i] && tensors.from[i] < to && from < tensors.to[i])
			return false;
	return true;
}

/* Of the cell, whose first and last bytes it may share with its neighbours. */
static bool is_cell_free(int64_t npu_bytes, unsigned i)
{
	return is_free(i * npu_bytes / OCCUPANCY_CELLS,
		       ((i + 1) * npu_bytes + OCCUPANCY_CELLS - 1) / OCCUPANCY_CELLS);
}

static void check_pieces(const struct occupancy *occupancy, int64_t npu_bytes, unsigned piece)
{
	unsigned n = 0, run = 0;
	int64_t from, to;
	for (unsigned i = 0; i < OCCUPANCY_CELLS; i++) {
		run = is_cell_free(npu_bytes, i) ? run + 1 : 0;
		n += run && run % piece == 0;
	}
	/* A cell that is not of whole bytes may count as taken by its neighbour's. */
	if (npu_bytes % OCCUPANCY_CELLS)
		ck_assert_uint_ge(occupancy_pieces(occupancy, piece), n);
	else
		ck_assert_uint_eq(occupancy_pieces(occupancy, piece), n);
	occupancy_spare(occupancy, npu_bytes, piece, &from, &to);
	ck_assert(from >= to || is_free(from, to));
	if (from < to) {
		struct occupancy with = *occupancy;
		occupancy_add(&with, npu_bytes, from, to, 1);
		ck_assert_uint_eq(occupancy_pieces(&with, piece), occupancy_pieces(occupancy, piece));
	}
}

static void check_gaps(const struct occupancy *a, const struct occupancy *b, int64_t npu_bytes, uint64_t *random)
{
	static struct occupancy_gaps gaps;
	int64_t from = oracle_between(random, 0, npu_bytes - 1), to = oracle_between(random, from + 1, npu_bytes);
	int64_t run = 0, longest = 0;
	memset(&gaps, 0, sizeof(gaps));
	occupancy_gaps_update(&gaps, npu_bytes, a, b);
	ck_assert(!occupancy_gaps_has(&gaps, npu_bytes, from, to) || is_free(from, to));
	for (int64_t at = 0; at < npu_bytes; at += ARENA_ALIGN_MAX) {
		run = is_free(at, at + ARENA_ALIGN_MAX) ? run + ARENA_ALIGN_MAX : 0;
		longest = run > longest ? run : longest;
	}
	/* Less by a cell at each end, at most, and by what an aligned one ends after. */
	ck_assert_int_le(gaps.longest, longest + ARENA_ALIGN_MAX);
	ck_assert_int_ge(gaps.longest, longest - 2 * (npu_bytes / OCCUPANCY_CELLS + ARENA_ALIGN_MAX));
}

TEST(against_bytes, .to = sizeof(sizes) / sizeof(sizes[0]))
{
	int64_t npu_bytes = sizes[_i];
	uint64_t random = (uint64_t)_i;
	struct occupancy sets[2];
	memset(sets, 0, sizeof(sets));
	memset(&tensors, 0, sizeof(tensors));
	for (unsigned round = 0; round < ROUNDS; round++) {
		unsigned i = (unsigned)oracle_between(&random, 0, TENSORS - 1);
		bool is_there = tensors.to[i];
		if (!is_there) {
			int64_t from = oracle_between(&random, 0, npu_bytes - 1);
			int64_t most =
				npu_bytes - from < npu_bytes / 20 + 1 ? npu_bytes - from : npu_bytes / 20 + 1;
			tensors.from[i] = from;
			tensors.to[i] = from + oracle_between(&random, 1, most);
		}
		occupancy_add(&sets[i % 2], npu_bytes, tensors.from[i], tensors.to[i], is_there ? -1 : 1);
		if (is_there)
			tensors.to[i] = 0;
		check_gaps(&sets[0], &sets[1], npu_bytes, &random);
	}
}

TEST(pieces_between_tensors_of_one_set, .to = sizeof(sizes) / sizeof(sizes[0]))
{
	int64_t npu_bytes = sizes[_i];
	uint64_t random = (uint64_t)_i;
	struct occupancy set;
	memset(&set, 0, sizeof(set));
	memset(&tensors, 0, sizeof(tensors));
	for (unsigned i = 0; i < TENSORS / 2; i++) {
		int64_t from = oracle_between(&random, 0, npu_bytes - 1);
		tensors.from[i] = from;
		tensors.to[i] = from + 1;
		occupancy_add(&set, npu_bytes, from, from + 1, 1);
		for (unsigned users = 1; users < 300; users += 37)
			check_pieces(&set, npu_bytes, OCCUPANCY_CELLS / (users + 1));
	}
}

TEST(a_whole_npu)
{
	struct occupancy set, none;
	struct occupancy_gaps gaps;
	memset(&set, 0, sizeof(set));
	memset(&none, 0, sizeof(none));
	memset(&gaps, 0, sizeof(gaps));
	occupancy_gaps_update(&gaps, 8192, &set, &none);
	ck_assert_int_eq(gaps.longest, 8192);
	ck_assert(occupancy_gaps_has(&gaps, 8192, 0, 8192));
	ck_assert_uint_eq(occupancy_pieces(&set, 341), 3);
	occupancy_add(&set, 8192, 0, 8192, 1);
	occupancy_gaps_update(&gaps, 8192, &set, &none);
	ck_assert_int_eq(gaps.longest, 0);
	ck_assert(!occupancy_gaps_has(&gaps, 8192, 8191, 8192));
	ck_assert_uint_eq(occupancy_pieces(&set, 1), 0);
	occupancy_add(&set, 8192, 0, 8192, -1);
	ck_assert_uint_eq(occupancy_pieces(&set, 512), 2);
}
