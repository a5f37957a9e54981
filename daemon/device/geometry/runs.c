/* Every box of elements is up to four loops over words of one NPU, the same on each of its NPUs. Loops that go on
 * where an inner one ends become one, so that a tensor whose blocks touch is one stretch on each NPU. */
#include "daemon/device/geometry/runs.h"

#include "daemon/device/geometry/parts.h"

enum { LOOPS_MAX = 4 };

struct loops {
	int64_t bytes; /* of a stretch */
	unsigned n_loops;
	int64_t n[LOOPS_MAX], pitch[LOOPS_MAX];
};

static void loops_add(struct loops *loops, int64_t n, int64_t pitch)
{
	if (n == 1)
		return;
	loops->n[loops->n_loops] = n;
	loops->pitch[loops->n_loops++] = pitch;
}

static void loops_remove(struct loops *loops, unsigned at)
{
	for (loops->n_loops--; at < loops->n_loops; at++) {
		loops->n[at] = loops->n[at + 1];
		loops->pitch[at] = loops->pitch[at + 1];
	}
}

/* Makes longer stretches of what touches. */
static void loops_touch(struct loops *loops)
{
	for (unsigned i = 0; i < loops->n_loops;)
		if (loops->pitch[i] == loops->bytes) {
			loops->bytes *= loops->n[i];
			loops_remove(loops, i);
			i = 0;
		} else {
			i++;
		}
}

static bool goes_on(const struct loops *loops, unsigned *inner, unsigned *outer)
{
	for (*inner = 0; *inner < loops->n_loops; ++*inner)
		for (*outer = 0; *outer < loops->n_loops; ++*outer)
			if (*outer != *inner && loops->pitch[*outer] == loops->n[*inner] * loops->pitch[*inner])
				return true;
	return false;
}

static void loops_join(struct loops *loops)
{
	for (unsigned inner, outer; goes_on(loops, &inner, &outer);) {
		loops->n[inner] *= loops->n[outer];
		loops_remove(loops, outer);
	}
}

struct runs {
	const struct npumem_geometry *geometry;
	const struct npumem_place *place;
	bool with_dummies;
	runs_visit *visit;
	void *ctx;
};

static bool visit_long(const struct runs *runs, const struct runs_series *all)
{
	enum { MOST_BYTES = RUNS_STEPS_MAX * RUNS_BYTES_PER_STEP };
	for (int64_t i = 0; i < all->n; i++)
		for (int64_t at = 0; at < all->bytes; at += MOST_BYTES) {
			struct runs_series one = {all->npu, all->offset + i * all->pitch + at, 0, 1, 0};
			one.bytes = all->bytes - at < MOST_BYTES ? all->bytes - at : MOST_BYTES;
			if (!runs->visit(runs->ctx, &one))
				return false;
		}
	return true;
}

static bool visit_series(const struct runs *runs, const struct runs_series *all)
{
	int64_t most = RUNS_STEPS_MAX / (1 + all->bytes / RUNS_BYTES_PER_STEP);
	if (most == 0)
		return visit_long(runs, all);
	for (int64_t i = 0; i < all->n; i += most) {
		struct runs_series some = *all;
		some.offset += i * all->pitch;
		some.n = all->n - i < most ? all->n - i : most;
		if (!runs->visit(runs->ctx, &some))
			return false;
	}
	return true;
}

/* The innermost loop is a series. */
static bool visit_loops(const struct runs *runs, const struct loops *loops, int64_t npu, int64_t offset)
{
	int64_t at[LOOPS_MAX] = {0};
	struct runs_series series = {npu, offset, loops->bytes, 1, 0};
	unsigned i;
	if (loops->n_loops) {
		series.n = loops->n[0];
		series.pitch = loops->pitch[0];
	}
	do {
		if (!visit_series(runs, &series))
			return false;
		for (i = 1; i < loops->n_loops; i++) {
			series.offset += loops->pitch[i];
			if (++at[i] < loops->n[i])
				break;
			series.offset -= loops->n[i] * loops->pitch[i];
			at[i] = 0;
		}
	} while (i < loops->n_loops);
	return true;
}

static bool visit_box(void *ctx, const struct parts_box *box)
{
	const struct runs *runs = ctx;
	const struct npumem_place *place = runs->place;
	int64_t word = place->word_bytes, element = word / place->lanes, channel = place->start_npu + box->at.c;
	int64_t npu = parts_npu(runs->geometry, channel), lane = box->at.n % place->lanes;
	struct loops loops = {.bytes = box->n_lanes * element};
	if (runs->with_dummies && box->at.n + box->n_lanes == place->shape.n)
		loops.bytes = word - lane * element;
	loops_add(&loops, box->n_w, place->stride.w * word);
	loops_add(&loops, box->n_h, place->stride.h * word);
	loops_add(&loops, box->n_rows, place->stride.c * word);
	loops_add(&loops, box->n_words, place->stride.n * word);
	loops_touch(&loops);
	loops_join(&loops);
	int64_t offset = place->offset + lane * element +
			 (box->at.n / place->lanes * place->stride.n +
			  parts_row(runs->geometry, channel) * place->stride.c + box->at.h * place->stride.h +
			  box->at.w * place->stride.w) *
				 word;
	for (int64_t i = 0; i < box->n_npus; i++)
		if (!visit_loops(runs, &loops, npu + i, offset))
			return false;
	return true;
}

static bool visit_range(struct runs *runs, const struct parts_range *range)
{
	return parts_each(runs->geometry, runs->place, runs->place->lanes, NPUMEM_ANY, range, visit_box, runs);
}

bool runs_each(const struct npumem_geometry *geometry, const struct npumem_place *place, bool with_dummies,
	       runs_visit *visit, void *ctx)
{
	struct runs runs = {geometry, place, with_dummies, visit, ctx};
	struct parts_range whole = parts_whole(place);
	return visit_range(&runs, &whole);
}

bool runs_each_of(const struct npumem_geometry *geometry, const struct npumem_place *place, int64_t first,
		  int64_t count, runs_visit *visit, void *ctx)
{
	struct runs runs = {geometry, place, false, visit, ctx};
	struct parts_range ranges[PARTS_RANGES_MAX];
	unsigned n = parts_of(place, first, count, ranges);
	for (unsigned i = 0; i < n; i++)
		if (!visit_range(&runs, &ranges[i]))
			return false;
	return true;
}

/* Word after word, channel after channel. */
static bool visit_in_order(struct runs *runs, const struct parts_range *range)
{
	const int64_t lanes = runs->place->lanes;
	struct parts_range one = *range;
	for (int64_t n = range->from.n; n < range->to.n; n = one.to.n) {
		one.from.n = n;
		one.to.n = n / lanes * lanes + lanes < range->to.n ? n / lanes * lanes + lanes : range->to.n;
		for (int64_t c = range->from.c; c < range->to.c; c++) {
			one.from.c = c;
			one.to.c = c + 1;
			if (!visit_range(runs, &one))
				return false;
		}
	}
	return true;
}

bool runs_each_in_order(const struct npumem_geometry *geometry, const struct npumem_place *place, int64_t first,
			int64_t count, runs_visit *visit, void *ctx)
{
	struct runs runs = {geometry, place, false, visit, ctx};
	struct parts_range ranges[PARTS_RANGES_MAX];
	unsigned n = parts_of(place, first, count, ranges);
	for (unsigned i = 0; i < n; i++)
		if (!visit_in_order(&runs, &ranges[i]))
			return false;
	return true;
}
