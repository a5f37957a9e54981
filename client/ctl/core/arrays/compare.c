/* Differences of two arrays. Compares numbers, exactly: a NaN equals a NaN. */
#include "client/ctl/core/arrays/values.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "client/ctl/core/arrays/stream.h"
#include "client/ctl/core/vectors/vectors.h"

static double value(int dtype, const void *data, size_t i)
{
	float real;
	if (dtype != NPUMEM_FP32)
		return (double)mapping_value(dtype, data, i);
	memcpy(&real, (const char *)data + i * sizeof(real), sizeof(real));
	return (double)real;
}

static void differ(struct compare *compare, double is, double expected)
{
	double by = fabs(is - expected);
	if (!compare->n_differ++) {
		compare->first = compare->n;
		compare->is = is;
		compare->expected = expected;
	}
	/* A NaN or an infinity is as far off as can be. */
	by = isfinite(by) ? by : INFINITY;
	compare->largest = by > compare->largest ? by : compare->largest;
	compare->noise += by * by;
}

void compare_add_numbers(struct compare *compare, const double *is, const double *expected, size_t n)
{
	for (size_t i = 0; i < n; i++, compare->n++) {
		double a = is[i], b = expected[i];
		if (isfinite(b))
			compare->signal += b * b;
		if (isfinite(a))
			compare->power += a * a;
		if (isfinite(a) && isfinite(b))
			compare->product += a * b;
		if (a != b && !(isnan(a) && isnan(b)))
			differ(compare, a, b);
	}
}

double compare_cosine(const struct compare *compare)
{
	double lengths = sqrt(compare->signal) * sqrt(compare->power);
	if (lengths > 0)
		return fmax(-1, fmin(1, compare->product / lengths));
	return compare->signal > 0 || compare->power > 0 ? 0 : 1;
}

void compare_add(struct compare *compare, int dtype, const void *is, const void *expected, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		double a = value(dtype, is, i), b = value(dtype, expected, i);
		compare_add_numbers(compare, &a, &b, 1);
	}
}

void compare_add_reals(struct compare *compare, int dtype, int64_t frac_bits, const void *is, const void *expected,
		       const float *reals, size_t n)
{
	double signal = compare->signal, noise = compare->noise;
	compare_add(compare, dtype, is, expected, n);
	for (size_t i = 0; i < n; i++) {
		double real = ldexp((double)reals[i], (int)frac_bits), by = value(dtype, is, i) - real;
		signal += real * real;
		noise += by * by;
	}
	compare->signal = signal;
	compare->noise = noise;
}

void compare_merge(struct compare *compare, const struct compare *other)
{
	if (!compare->n_differ) {
		compare->first = other->first;
		compare->is = other->is;
		compare->expected = other->expected;
	}
	compare->n += other->n;
	compare->n_differ += other->n_differ;
	compare->largest = fmax(compare->largest, other->largest);
	compare->signal += other->signal;
	compare->noise += other->noise;
	compare->power += other->power;
	compare->product += other->product;
}

double compare_snr(const struct compare *compare)
{
	return compare->noise > 0 ? 10 * log10(compare->signal / compare->noise) : INFINITY;
}

/* The first that differs as n,c,h,w, or row, column. */
static unsigned first_index(const struct compare *compare, const struct npumem_place *place, int64_t index[4])
{
	int64_t shape[4], rest = (int64_t)compare->first;
	unsigned n_dims = stream_shape(place, shape);
	for (unsigned i = n_dims; i-- > 0; rest /= shape[i])
		index[i] = rest % shape[i];
	return n_dims;
}

void compare_locate(const struct compare *compare, const struct npumem_geometry *geometry,
		    const struct npumem_place *place, int64_t *npu, int64_t *offset)
{
	int64_t index[4];
	first_index(compare, place, index);
	if (place->layout == NPUMEM_MATRIX)
		npumem_place_locate(geometry, place, index[0], index[1] / place->w, 0, index[1] % place->w, npu,
				    offset);
	else
		npumem_place_locate(geometry, place, index[0], index[1], index[2], index[3], npu, offset);
}

const char *compare_text(const struct compare *compare, const struct npumem_geometry *geometry,
			 const struct npumem_place *place, char *text, size_t bytes)
{
	int64_t index[4], npu, offset;
	unsigned n_dims = first_index(compare, place, index);
	size_t at = 0;
	compare_locate(compare, geometry, place, &npu, &offset);
	for (unsigned i = 0; i < n_dims && at < bytes; i++)
		at += (size_t)snprintf(text + at, bytes - at, "%s%" PRId64, i ? "," : "[", index[i]);
	if (at < bytes)
		snprintf(text + at, bytes - at,
			 "] is %.9g, %.9g is expected (NPU %" PRId64 ", offset %" PRId64
			 "); %zu of %zu differ, by up to %.9g; SNR %.1f dB",
			 compare->is, compare->expected, npu, place->offset + offset, compare->n_differ,
			 compare->n, compare->largest, compare_snr(compare));
	return text;
}
