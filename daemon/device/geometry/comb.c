/* Teeth of a and b meet where the distance of their starts is in [1 - bytes of b, bytes of a - 1]. With b's
 * indices counted forward and a's backward that asks for a sum of non-negative multiples of strides, each with a
 * highest factor, in a range of numbers. Sums are simplified until they are decided; only strides that have
 * nothing to do with each other are tried value by value, and the last two of them are solved by Euclid's
 * algorithm.
 *
 * Offsets below 2^31 and at most eight dimensions keep all sums below 2^35. */
#include "daemon/device/geometry/comb.h"

enum { SUM_DIMS = 2 * COMB_DIMS };

/* Is there a sum of z[k] * stride[k], 0 <= z[k] < count[k], in [low, high]? */
struct sum {
	int64_t low, high;
	unsigned n;
	struct comb_dim dims[SUM_DIMS];
};

static enum comb_answer answer(bool meet)
{
	return meet ? COMB_MEET : COMB_APART;
}

static void drop(struct sum *sum, unsigned i)
{
	sum->dims[i] = sum->dims[--sum->n];
}

/* Takes z[i] as at least `least`. */
static void raise(struct sum *sum, unsigned i, int64_t least)
{
	sum->low -= least * sum->dims[i].stride;
	sum->high -= least * sum->dims[i].stride;
	sum->dims[i].count -= least;
}

static int64_t reach_of(const struct sum *sum)
{
	int64_t reach = 0;
	for (unsigned i = 0; i < sum->n; i++)
		reach += (sum->dims[i].count - 1) * sum->dims[i].stride;
	return reach;
}

/* True where the range is beyond all sums, or holds the least or the greatest. */
static bool decided(const struct sum *sum, int64_t reach, enum comb_answer *out)
{
	bool apart = sum->high < 0 || sum->low > reach;
	*out = answer(!apart);
	return apart || sum->low <= 0 || sum->high >= reach;
}

/* Cuts off the factors that the others cannot make up for; what has one factor left goes. The sum is undecided.
 * True where that took half of the factors of a dimension: less is not worth going round for, as two strides can
 * go on taking one from each other. */
static bool trim(struct sum *sum)
{
	int64_t reach = reach_of(sum);
	bool worth = false;
	for (unsigned i = sum->n; i-- > 0;) {
		struct comb_dim *dim = &sum->dims[i];
		int64_t rest = reach - (dim->count - 1) * dim->stride, before = dim->count;
		if (reach - rest > sum->high)
			dim->count = sum->high < 0 ? 1 : sum->high / dim->stride + 1;
		if (sum->low > rest) {
			int64_t least = (sum->low - rest + dim->stride - 1) / dim->stride;
			/* Not that many: the range is out of reach, and is found to be. */
			raise(sum, i, least < dim->count ? least : dim->count - 1);
		}
		reach = rest + (dim->count - 1) * dim->stride;
		worth |= dim->count <= before / 2;
		if (dim->count == 1)
			drop(sum, i);
	}
	return worth;
}

/* Steps no longer than the range leave no gaps: they widen it. */
static bool absorb(struct sum *sum)
{
	bool changed = false;
	for (unsigned i = 0; i < sum->n;) {
		struct comb_dim *dim = &sum->dims[i];
		if (dim->stride > sum->high - sum->low + 1) {
			i++;
			continue;
		}
		sum->low -= (dim->count - 1) * dim->stride;
		drop(sum, i);
		changed = true;
		i = 0;
	}
	return changed;
}

/* A stride that is a multiple of another, with enough factors of that in between, is more factors of that. */
static bool merge(struct sum *sum)
{
	for (unsigned i = 0; i < sum->n; i++) {
		for (unsigned j = 0; j < sum->n; j++) {
			struct comb_dim *large = &sum->dims[i], *small = &sum->dims[j];
			if (i == j || large->stride < small->stride ||
			    large->stride / small->stride > small->count || large->stride % small->stride)
				continue;
			small->count += large->stride / small->stride * (large->count - 1);
			drop(sum, i);
			return true;
		}
	}
	return false;
}

static int64_t gcd_of(int64_t a, int64_t b)
{
	while (b) {
		int64_t rest = a % b;
		a = b;
		b = rest;
	}
	return a;
}

/* Only multiples of what all strides have in common are sums. */
static bool divide(struct sum *sum)
{
	int64_t gcd = 0;
	for (unsigned i = 0; i < sum->n && gcd != 1; i++)
		gcd = gcd_of(sum->dims[i].stride, gcd);
	if (gcd < 2)
		return false;
	/* Both positive. */
	sum->low = (sum->low + gcd - 1) / gcd;
	sum->high /= gcd;
	for (unsigned i = 0; i < sum->n; i++)
		sum->dims[i].stride /= gcd;
	return true;
}

/* True where that decided it; else 0 < low <= high < reach, and no stride is within the range. */
static bool simplify(struct sum *sum, enum comb_answer *out)
{
	for (;;) {
		if (sum->low > sum->high) {
			*out = COMB_APART;
			return true;
		}
		if (decided(sum, reach_of(sum), out))
			return true;
		bool worth = trim(sum);
		if (decided(sum, reach_of(sum), out))
			return true;
		if (!worth && !absorb(sum) && !merge(sum) && !divide(sum))
			return false;
	}
}

/* ---- two strides ---- */

/* The least x >= 0 with low <= a * x mod m <= high, for 0 <= low <= high < m and 0 <= a < m; -1 where there is
 * none. Euclid's algorithm on (m, a): where no multiple of a lies in the range before the first turn around m,
 * which turn does is the same question modulo a. */
static int64_t first_in_range(int64_t a, int64_t m, int64_t low, int64_t high)
{
	if (low == 0)
		return 0;
	if (a == 0)
		return -1;
	int64_t x = (low + a - 1) / a;
	if (a * x <= high)
		return x;
	int64_t turn = first_in_range(m % a, a, a - high % a, a - low % a);
	return turn < 0 ? -1 : (low + m * turn + a - 1) / a;
}

/* Undecided, with two dimensions: x * s + y * t in [low, high]. */
static bool pair_meets(const struct sum *sum)
{
	int64_t s = sum->dims[0].stride, t = sum->dims[1].stride, y_reach = (sum->dims[1].count - 1) * t;
	/* With y at one of its ends: x * s in the range, or in what y's greatest leaves of it. */
	int64_t x_most = sum->dims[0].count - 1, low = sum->low, high = sum->high;
	int64_t x = (low + s - 1) / s;
	if (x <= x_most && x * s <= high)
		return true;
	x = low - y_reach <= 0 ? 0 : (low - y_reach + s - 1) / s;
	if (x <= x_most && high - y_reach >= x * s)
		return true;
	/* In between: x * s + y_reach > high and x * s < low, and some multiple of t in [low - x * s, high - x *
	 * s], which is shorter than t: (high - x * s) mod t <= high - low. */
	int64_t first = high - y_reach < 0 ? 0 : (high - y_reach) / s + 1, last = (low - 1) / s;
	if (last > x_most)
		last = x_most;
	if (first > last)
		return false;
	/* Counted down from the last one, so that both grow: (c + i * s) mod t <= high - low. */
	int64_t c = (high - last * s) % t;
	if (c <= high - low)
		return true;
	int64_t i = first_in_range(s % t, t, t - c, t - c + (high - low));
	return i >= 0 && i <= last - first;
}

/* ---- any number ---- */

static enum comb_answer solve(struct sum *sum, int64_t *steps)
{
	enum comb_answer out;
	unsigned least = 0;
	if (--*steps < 0)
		return COMB_UNKNOWN;
	if (simplify(sum, &out))
		return out;
	/* With one stride longer than the range trim would have decided. */
	if (sum->n == 2)
		return answer(pair_meets(sum));
	for (unsigned i = 1; i < sum->n; i++)
		if (sum->dims[i].count < sum->dims[least].count)
			least = i;
	struct comb_dim tried = sum->dims[least];
	drop(sum, least);
	for (int64_t z = 0; z < tried.count; z++) {
		struct sum rest = *sum;
		rest.low -= z * tried.stride;
		rest.high -= z * tried.stride;
		out = solve(&rest, steps);
		if (out != COMB_APART)
			return out;
	}
	return COMB_APART;
}

static void sum_add(struct sum *sum, const struct comb *comb)
{
	for (unsigned i = 0; i < comb->n; i++) {
		const struct comb_dim *dim = &comb->dims[i];
		unsigned same = 0;
		while (same < sum->n && sum->dims[same].stride != dim->stride)
			same++;
		if (same == sum->n)
			sum->dims[sum->n++] = *dim;
		else
			sum->dims[same].count += dim->count - 1;
	}
}

static int64_t comb_reach(const struct comb *comb)
{
	int64_t reach = 0;
	for (unsigned i = 0; i < comb->n; i++)
		reach += (comb->dims[i].count - 1) * comb->dims[i].stride;
	return reach;
}

enum comb_answer comb_meet(const struct comb *a, const struct comb *b, int64_t *steps)
{
	int64_t apart = a->low + comb_reach(a) - b->low;
	struct sum sum = {.low = apart + 1 - b->bytes, .high = apart + a->bytes - 1};
	sum_add(&sum, a);
	sum_add(&sum, b);
	return solve(&sum, steps);
}

bool comb_first(const struct comb *comb, const struct comb *other, int64_t *steps, int64_t *low)
{
	struct comb part = *comb;
	for (unsigned i = 0; i < comb->n; i++) {
		/* The dimension searched is the first of `part`: `at` its least index, and as many as may hold it.
		 */
		int64_t n = comb->dims[i].count;
		while (n > 1) {
			part.dims[0].count = n / 2;
			enum comb_answer out = comb_meet(&part, other, steps);
			if (out == COMB_UNKNOWN)
				return false;
			if (out == COMB_MEET) {
				n /= 2;
			} else {
				part.low += n / 2 * comb->dims[i].stride;
				n -= n / 2;
			}
		}
		part.n--;
		for (unsigned k = 0; k < part.n; k++)
			part.dims[k] = part.dims[k + 1];
	}
	*low = part.low;
	return true;
}

void comb_repeat(struct comb *comb, int64_t stride, int64_t count)
{
	unsigned at = comb->n;
	if (count == 1)
		return;
	for (; at > 0 && comb->dims[at - 1].stride < stride; at--)
		comb->dims[at] = comb->dims[at - 1];
	comb->dims[at] = (struct comb_dim){stride, count};
	comb->n++;
	while (comb->n && comb->dims[comb->n - 1].stride == comb->bytes) {
		comb->bytes *= comb->dims[--comb->n].count;
	}
}
