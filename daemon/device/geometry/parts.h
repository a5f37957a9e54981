/* Ranges of a place's elements as regular boxes: what walks over elements loop over. */
#ifndef DEVICE_PARTS_H
#define DEVICE_PARTS_H

#include <npumem/layout.h>

/* Elements [from, to) of each dimension; of the last channel those that it has. */
struct parts_range {
	struct npumem_dims from, to;
};

/* Block row and NPU of a channel that is counted from NPU 0 on. They are far below 2^32, and so narrow a division
 * takes half the time. */
static inline int64_t parts_row(const struct npumem_geometry *geometry, int64_t channel)
{
	return (uint32_t)channel / (uint32_t)geometry->n_npus;
}

static inline int64_t parts_npu(const struct npumem_geometry *geometry, int64_t channel)
{
	return (uint32_t)channel % (uint32_t)geometry->n_npus;
}

/* A run of elements in row-major order takes no more ranges than this. */
enum { PARTS_RANGES_MAX = 7 };

struct parts_range parts_whole(const struct npumem_place *place);
/* Elements [first, first + count) of the place, in their order; the number of ranges. */
unsigned parts_of(const struct npumem_place *place, int64_t first, int64_t count, struct parts_range *ranges);

/* Elements `at` and behind it: n goes from lane to lane of a word, then from word to word; c from NPU to NPU,
 * which does not wrap round, then from block row to block row. */
struct parts_box {
	struct npumem_dims at;
	int64_t n_lanes, n_words, n_npus, n_rows, n_h, n_w;
};

/* False to stop. */
typedef bool parts_visit(void *ctx, const struct parts_box *box);

/* Visits a range as boxes, each element once. `n_lanes` of a word: those of the place, or of another one of which
 * it has one. `other_start`: of another place, whose channels shall not wrap round in a box either; -1: nobody's.
 * False where the visitor stopped. */
bool parts_each(const struct npumem_geometry *geometry, const struct npumem_place *place, int64_t n_lanes,
		int64_t other_start, const struct parts_range *range, parts_visit *visit, void *ctx);

#endif
