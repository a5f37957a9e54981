/* Collisions of strided boxes, exactly, also for extents near 2^30 where no map of the bytes could be afforded.
 *
 * Two points collide where their difference d has sum d[i] * stride[i] = 0. The two smallest extents a <= b are
 * enumerated, the other two c <= d solved as a linear Diophantine equation. With M = 2^30 offsets that is bounded:
 * once the differences tried so far span a box of more than M points, two of those share an offset and have been
 * found. Either b * c * d > M, and at most M / (c * d) + 1 <= M^(1/3) + 1 steps are made; or b <= M^(1/3), and
 * there are at most 2 * b * min(a, M / (b * c * d) + 1) <= 2 * M^(1/2) + 2 * b of them. */
#include "include/formulas/boxes/lattice.h"

/* x * a + y * b = t for fixed a, b > 0: all solutions are x = x0 + k * step. */
struct pair {
	int64_t a, b;
	int64_t gcd, step, inverse; /* step = b / gcd; inverse of a / gcd modulo step */
	int64_t x_extent, y_extent;
};

static int64_t floor_div(int64_t a, int64_t b)
{
	return a / b - (a % b < 0);
}

static int64_t modulo(int64_t a, int64_t m)
{
	int64_t rest = a % m;
	return rest < 0 ? rest + m : rest;
}

static struct pair pair_of(int64_t a, int64_t x_extent, int64_t b, int64_t y_extent)
{
	/* Euclid, keeping r = a * s modulo b. */
	int64_t r0 = a, r1 = b, s0 = 1, s1 = 0;
	while (r1 != 0) {
		int64_t quotient = r0 / r1;
		int64_t rest = r0 - quotient * r1;
		int64_t factor = s0 - quotient * s1;
		r0 = r1, r1 = rest;
		s0 = s1, s1 = factor;
	}
	return (struct pair){
		.a = a,
		.b = b,
		.gcd = r0,
		.step = b / r0,
		.inverse = modulo(s0, b / r0),
		.x_extent = x_extent,
		.y_extent = y_extent,
	};
}

/* The solutions with x >= x_least, |x| < x_extent and |y| < y_extent: x from *first by pair->step to *last. */
static bool pair_solve(const struct pair *pair, int64_t t, int64_t x_least, int64_t *first, int64_t *last)
{
	if (t % pair->gcd != 0)
		return false;
	int64_t reach = (pair->y_extent - 1) * pair->b;
	int64_t from = -floor_div(reach - t, pair->a); /* ceil((t - reach) / a) */
	int64_t to = floor_div(t + reach, pair->a);
	if (from < x_least)
		from = x_least;
	if (from < 1 - pair->x_extent)
		from = 1 - pair->x_extent;
	if (to > pair->x_extent - 1)
		to = pair->x_extent - 1;
	int64_t x0 = modulo(t / pair->gcd, pair->step) * pair->inverse % pair->step;
	*first = from + modulo(x0 - from, pair->step);
	*last = to;
	return *first <= to;
}

/* The dimensions by extent, smallest first. */
static void order_by(const int64_t keys[LATTICE_DIMS], unsigned order[LATTICE_DIMS])
{
	for (unsigned i = 0; i < LATTICE_DIMS; i++) {
		unsigned at = i;
		for (; at > 0 && keys[order[at - 1]] > keys[i]; at--)
			order[at] = order[at - 1];
		order[at] = i;
	}
}

static int64_t last_offset(const struct lattice *box)
{
	int64_t sum = 0;
	for (unsigned i = 0; i < LATTICE_DIMS; i++)
		sum += (box->extent[i] - 1) * box->stride[i];
	return sum;
}

/* Each stride steps over all that the smaller ones reach, as in every layout that people write down. */
static bool strides_nest(const struct lattice *box)
{
	unsigned order[LATTICE_DIMS];
	order_by(box->stride, order);
	int64_t reach = 0;
	for (unsigned i = 0; i < LATTICE_DIMS; i++) {
		int64_t extent = box->extent[order[i]];
		int64_t stride = box->stride[order[i]];
		if (extent > 1 && stride <= reach)
			return false;
		reach += (extent - 1) * stride;
	}
	return true;
}

bool lattice_collides(const struct lattice *box, int64_t difference[LATTICE_DIMS])
{
	if (strides_nest(box))
		return false;
	unsigned order[LATTICE_DIMS];
	order_by(box->extent, order);
	const unsigned a = order[0], b = order[1], c = order[2], d = order[3];
	const struct pair pair = pair_of(box->stride[c], box->extent[c], box->stride[d], box->extent[d]);
	for (int64_t i = 0; i < box->extent[a]; i++) {
		/* d and -d say the same: the first that is not 0 may be taken as positive. */
		for (int64_t j = i ? 1 - box->extent[b] : 0; j < box->extent[b]; j++) {
			int64_t t = -(i * box->stride[a] + j * box->stride[b]);
			int64_t x, last;
			if (!pair_solve(&pair, t, i || j ? -box->extent[c] : 1, &x, &last))
				continue;
			difference[a] = i;
			difference[b] = j;
			difference[c] = x;
			difference[d] = (t - x * pair.a) / pair.b;
			return true;
		}
	}
	return false;
}

static int64_t magnitude(int64_t value)
{
	return value < 0 ? -value : value;
}

/* A difference d with sum d[i] * stride[i] = shift joins as many pairs of points as there are places for it in the
 * box. In a box without collisions each line of the innermost pair has at most two solutions, and b <= M^(1/3). */
int64_t lattice_shared(const struct lattice *box, int64_t shift)
{
	if (shift > last_offset(box))
		return 0;
	unsigned order[LATTICE_DIMS];
	order_by(box->extent, order);
	const unsigned a = order[0], b = order[1], c = order[2], d = order[3];
	const struct pair pair = pair_of(box->stride[c], box->extent[c], box->stride[d], box->extent[d]);
	int64_t shared = 0;
	for (int64_t i = 1 - box->extent[a]; i < box->extent[a]; i++) {
		for (int64_t j = 1 - box->extent[b]; j < box->extent[b]; j++) {
			int64_t t = shift - i * box->stride[a] - j * box->stride[b];
			int64_t x, last;
			if (!pair_solve(&pair, t, -box->extent[c], &x, &last))
				continue;
			int64_t places = (box->extent[a] - magnitude(i)) * (box->extent[b] - magnitude(j));
			for (; x <= last; x += pair.step) {
				int64_t y = (t - x * pair.a) / pair.b;
				shared +=
					places * (box->extent[c] - magnitude(x)) * (box->extent[d] - magnitude(y));
			}
		}
	}
	return shared;
}
