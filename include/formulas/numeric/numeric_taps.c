/* Counting the taps of windows: exact, so that a bound on sums is. Padded taps add nothing. */
#include "include/formulas/numeric/numeric_taps.h"

#include "include/formulas/sizes.h"

enum { OUTPUTS_MAX = 65536 }; /* looked at one by one */

int64_t numeric_taps_span(const struct numeric_taps *axis)
{
	return (axis->kernel - 1) * axis->dilation + 1;
}

int64_t numeric_taps_scattered(const struct numeric_taps *axis)
{
	return (axis->in - 1) * axis->stride + axis->kernel - axis->before - axis->after;
}

/* Taps below `past`, which counts from the window's first tap. */
static int64_t taps_below(const struct numeric_taps *axis, int64_t past)
{
	if (past <= 0)
		return 0;
	int64_t taps = sizes_ceil_div(past, axis->dilation);
	return taps < axis->kernel ? taps : axis->kernel;
}

int64_t numeric_taps_slide(const struct numeric_taps *axis)
{
	int64_t padded = axis->in + axis->before + axis->after, most = 0;
	int64_t n_outputs = (padded - numeric_taps_span(axis)) / axis->stride + 1;
	int64_t fits = sizes_ceil_div(axis->in, axis->dilation);
	int64_t limit = fits < axis->kernel ? fits : axis->kernel;
	/* From `first` on, windows start on the input, and later ones have no more taps. Among those before it
	 * whose taps stick out on one side, later ones have no fewer; where they stick out on both, the count
	 * repeats within `dilation` outputs. */
	int64_t first = sizes_ceil_div(axis->before, axis->stride);
	int64_t from = first > OUTPUTS_MAX ? first - OUTPUTS_MAX : 0;
	if (from > 0 && axis->dilation > OUTPUTS_MAX)
		return limit;
	for (int64_t i = from; i <= first && i < n_outputs && most < limit; i++) {
		int64_t start = i * axis->stride - axis->before;
		int64_t taps = taps_below(axis, axis->in - start) - taps_below(axis, -start);
		most = taps > most ? taps : most;
	}
	return most;
}

/* Input i reaches the outputs i * stride .. i * stride + kernel - 1, counted before the cut. */
static int64_t inputs_at(const struct numeric_taps *axis, int64_t at)
{
	int64_t last = at / axis->stride, past = at - axis->kernel + 1;
	int64_t first = past > 0 ? sizes_ceil_div(past, axis->stride) : 0;
	last = last < axis->in ? last : axis->in - 1;
	return last < first ? 0 : last - first + 1;
}

int64_t numeric_taps_scatter(const struct numeric_taps *axis)
{
	/* The count grows only where a new input begins, and there it never falls: the last such output, or the
	 * very first one, has the most. */
	int64_t end = axis->before + numeric_taps_scattered(axis);
	int64_t last = (end - 1) / axis->stride;
	last = last < axis->in ? last : axis->in - 1;
	int64_t most = inputs_at(axis, axis->before);
	if (last * axis->stride >= axis->before && inputs_at(axis, last * axis->stride) > most)
		most = inputs_at(axis, last * axis->stride);
	return most;
}
