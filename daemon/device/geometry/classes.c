/* The sets are made of two ranges of NPUs: from the first channel's on, and up to the last one's. */
#include "daemon/device/geometry/classes.h"

/* The bits of word `w` whose numbers lie in [from, to). */
static uint64_t range_word(int64_t from, int64_t to, unsigned w)
{
	int64_t low = from - (int64_t)w * 64, high = to - (int64_t)w * 64;
	if (low >= 64 || high <= 0)
		return 0;
	uint64_t bits = low > 0 ? UINT64_MAX << low : UINT64_MAX;
	return high < 64 ? bits & ~(UINT64_MAX << high) : bits;
}

static int64_t last_npu(const struct npumem_geometry *geometry, const struct npumem_place *place)
{
	return (place->start_npu + place->shape.c - 1) % geometry->n_npus;
}

static void add_word(struct classes *classes, unsigned class, unsigned w, uint64_t bits)
{
	classes->npus[class][w] = bits;
	if (bits && classes->first[class] < 0)
		classes->first[class] = (int64_t)w * 64 + __builtin_ctzll(bits);
}

void classes_of(const struct npumem_geometry *geometry, const struct npumem_place *place, struct classes *classes)
{
	int64_t n_npus = geometry->n_npus, last = last_npu(geometry, place);
	bool narrow = place->last_w != place->shape.w;
	classes->n_words = (unsigned)((n_npus + 63) / 64);
	for (unsigned class = 0; class < MEET_CLASSES; class ++) {
		classes->first[class] = -1;
	}
	for (unsigned w = 0; w < classes->n_words; w++) {
		uint64_t all = range_word(0, n_npus, w);
		uint64_t from_start = range_word(place->start_npu, n_npus, w),
			 to_last = range_word(0, last + 1, w);
		uint64_t alone = narrow ? range_word(last, last + 1, w) : 0;
		add_word(classes, 0, w, all & ~from_start & ~to_last & ~alone);
		add_word(classes, 1, w, from_start & ~to_last & ~alone);
		add_word(classes, 2, w, ~from_start & to_last & ~alone);
		add_word(classes, 3, w, from_start & to_last & ~alone);
		add_word(classes, MEET_CLASSES - 1, w, alone);
	}
}

int64_t classes_count(const struct classes *classes, unsigned class)
{
	int64_t n = 0;
	for (unsigned w = 0; w < classes->n_words; w++)
		n += __builtin_popcountll(classes->npus[class][w]);
	return n;
}

void classes_with_data(const struct npumem_geometry *geometry, const struct npumem_place *place, uint64_t *npus)
{
	int64_t n_npus = geometry->n_npus, end = place->start_npu + place->shape.c;
	for (unsigned w = 0; w < (unsigned)((n_npus + 63) / 64); w++) {
		npus[w] = range_word(place->start_npu, end < n_npus ? end : n_npus, w);
		if (place->shape.c >= n_npus)
			npus[w] = range_word(0, n_npus, w);
		else if (end > n_npus)
			npus[w] |= range_word(0, end - n_npus, w);
	}
}
