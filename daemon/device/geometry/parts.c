/* A range is cut in three ways, each of which leaves few pieces: a last channel that is narrower, words of which
 * the range has some lanes, and block rows that do not go over all NPUs. Where two places begin on different NPUs
 * their channels have no common rows: then every wrap is a cut. */
#include "daemon/device/geometry/parts.h"

static int64_t least(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

struct parts_range parts_whole(const struct npumem_place *place)
{
	return (struct parts_range){{0, 0, 0, 0}, place->shape};
}

static int64_t width_of(const struct npumem_place *place, int64_t c)
{
	return c == place->shape.c - 1 ? place->last_w : place->shape.w;
}

/* The longest range that begins with element (n, c, h, w) and has at most `count`: of whole n, else of whole
 * channels, lines or elements. Returns how many it has. */
static int64_t longest(const struct npumem_place *place, struct npumem_dims at, int64_t count,
		       struct parts_range *range)
{
	const struct npumem_dims *shape = &place->shape;
	int64_t feature = shape->h * shape->w, width = width_of(place, at.c);
	int64_t batch = ((shape->c - 1) * shape->w + place->last_w) * shape->h, n;
	*range = (struct parts_range){at, {at.n + 1, at.c + 1, at.h + 1, width}};
	if (at.w || count < width) {
		n = least(count, width - at.w);
		range->to.w = at.w + n;
		return n;
	}
	if (at.h || count < shape->h * width) {
		n = least(count / width, shape->h - at.h);
		range->to.h = at.h + n;
		return n * width;
	}
	range->to.h = shape->h;
	range->to.w = shape->w;
	if (!at.c && count >= batch) {
		range->to.n = at.n + count / batch;
		range->to.c = shape->c;
		return count / batch * batch;
	}
	/* All to the last channel, or as many as there are whole ones before it. */
	n = (shape->c - 1 - at.c) * feature + place->last_w * shape->h;
	if (count < n)
		n = least(count / feature, shape->c - 1 - at.c) * feature;
	range->to.c = at.c + (n + feature - 1) / feature;
	return n;
}

unsigned parts_of(const struct npumem_place *place, int64_t first, int64_t count, struct parts_range *ranges)
{
	const struct npumem_dims *shape = &place->shape;
	int64_t batch = ((shape->c - 1) * shape->w + place->last_w) * shape->h, end = first + count;
	unsigned n = 0;
	while (first < end) {
		struct npumem_dims at = {first / batch, first % batch / (shape->h * shape->w), 0, 0};
		int64_t rest = first % batch - at.c * shape->h * shape->w, width = width_of(place, at.c);
		at.h = rest / width;
		at.w = rest % width;
		first += longest(place, at, end - first, &ranges[n++]);
	}
	return n;
}

/* Boxes that are still to be cut: c is a range of channels, and none of them is narrower than the others. */
struct cutting {
	const struct npumem_geometry *geometry;
	int64_t start, other_start;
	parts_visit *visit;
	void *ctx;
};

static bool cut_at_wraps(const struct cutting *cutting, struct parts_box *box, int64_t c_end)
{
	const struct npumem_geometry *geometry = cutting->geometry;
	box->n_rows = 1;
	while (box->at.c < c_end) {
		int64_t npu = parts_npu(geometry, cutting->start + box->at.c);
		int64_t other = parts_npu(geometry, cutting->other_start + box->at.c);
		int64_t room = geometry->n_npus - (npu > other ? npu : other);
		box->n_npus = least(room, c_end - box->at.c);
		if (!cutting->visit(cutting->ctx, box))
			return false;
		box->at.c += box->n_npus;
	}
	return true;
}

/* A channel as its block row and NPU. */
struct spot {
	int64_t row, npu;
};

static struct spot spot_of(const struct npumem_geometry *geometry, int64_t channel)
{
	return (struct spot){parts_row(geometry, channel), parts_npu(geometry, channel)};
}

/* NPUs [npu, npu_end), which have the same block rows of the channels from `first` on and before `end`. */
static bool visit_npus(const struct cutting *cutting, struct parts_box *box, int64_t npu, int64_t npu_end,
		       struct spot first, struct spot end)
{
	int64_t row = first.row + (npu < first.npu);
	box->at.c = row * cutting->geometry->n_npus + npu - cutting->start;
	box->n_npus = npu_end - npu;
	box->n_rows = end.row + (npu < end.npu) - row;
	return box->n_npus <= 0 || box->n_rows <= 0 || cutting->visit(cutting->ctx, box);
}

static bool cut_channels(const struct cutting *cutting, struct parts_box *box, int64_t c_end)
{
	const struct npumem_geometry *geometry = cutting->geometry;
	if (box->at.c >= c_end)
		return true;
	if (cutting->other_start >= 0)
		return cut_at_wraps(cutting, box, c_end);
	struct spot first = spot_of(geometry, cutting->start + box->at.c);
	struct spot end = spot_of(geometry, cutting->start + c_end);
	int64_t low = least(first.npu, end.npu), high = first.npu + end.npu - low;
	return visit_npus(cutting, box, 0, low, first, end) && visit_npus(cutting, box, low, high, first, end) &&
	       visit_npus(cutting, box, high, geometry->n_npus, first, end);
}

static bool cut_widths(const struct cutting *cutting, const struct npumem_place *place,
		       const struct parts_range *range, struct parts_box *box)
{
	int64_t last = place->shape.c - 1;
	box->at.c = range->from.c;
	box->n_w = range->to.w - range->from.w;
	if (range->to.c <= last || range->to.w <= place->last_w)
		return cut_channels(cutting, box, range->to.c);
	if (!cut_channels(cutting, box, last))
		return false;
	box->at.c = last;
	box->n_w = place->last_w - range->from.w;
	return box->n_w <= 0 || cut_channels(cutting, box, last + 1);
}

bool parts_each(const struct npumem_geometry *geometry, const struct npumem_place *place, int64_t n_lanes,
		int64_t other_start, const struct parts_range *range, parts_visit *visit, void *ctx)
{
	const struct cutting cutting = {geometry, place->start_npu,
					other_start == place->start_npu ? NPUMEM_ANY : other_start, visit, ctx};
	for (int64_t n = range->from.n; n < range->to.n;) {
		int64_t lane = n & (n_lanes - 1), left = range->to.n - n;
		struct parts_box box = {.at = range->from, .n_h = range->to.h - range->from.h};
		bool words = !lane && left >= n_lanes;
		box.at.n = n;
		box.n_words = words ? (uint32_t)left / (uint32_t)n_lanes : 1;
		box.n_lanes = words ? n_lanes : least(left, n_lanes - lane);
		if (!cut_widths(&cutting, place, range, &box))
			return false;
		n += box.n_words * box.n_lanes;
	}
	return true;
}
