/* Features into steps. A step's terms are either the same tap of several channels, or, where there are few
 * channels, any: taps are lines at other distances, and no term is left empty but the last. */
#include <string.h>

#include "daemon/device/engine/conv_plan.h"
#include "daemon/device/kernel_support/operands.h"

static int64_t n_taps_w(const struct conv_plan *plan)
{
	return plan->phase->w.window.kernel;
}

void conv_pack_offsets(const struct conv_plan *plan)
{
	const struct window_axis *h = &plan->phase->h.window;
	int64_t n_planes = flat_n_planes(&plan->flat), k = 0;
	if (plan->shape.merged) {
		for (; k < plan->shape.n_steps; k++)
			plan->offsets[k] = (uint32_t)(k * plan->packed_bytes);
		return;
	}
	for (int64_t first = 0; k < plan->shape.n_steps; first += n_planes)
		for (int64_t y = 0; y < h->kernel; y++)
			for (int64_t x = 0; x < n_taps_w(plan); x++)
				plan->offsets[k++] =
					(uint32_t)((first + flat_plane(&plan->flat, y, x)) * plan->packed_bytes +
						   flat_offset(&plan->flat, y, x) * UKERNEL_STEP_BYTES);
}

static unsigned bytes(const struct conv_plan *plan)
{
	return plan->convolution->weighted.data_bytes;
}

static uint8_t *line(const struct conv_plan *plan, int64_t i)
{
	return plan->lines + i * plan->flat.length * bytes(plan);
}

static const void *feature(const struct conv_plan *plan, int64_t batch, int64_t group, int64_t i)
{
	const struct convolution *c = plan->convolution;
	return kernel_feature(operands_get(c->call, CONVOLUTION_IN), batch, group * c->n_inputs + i);
}

/* One step's channels [first, first + n_terms), plane by plane. */
static void pack_channels(const struct conv_plan *plan, int64_t batch, int64_t group, int64_t first)
{
	const struct flat *flat = &plan->flat;
	const struct ukernel *u = plan->ukernel;
	int64_t n_planes = flat_n_planes(flat), left = plan->convolution->n_inputs - first;
	unsigned n = left < u->n_terms ? (unsigned)left : u->n_terms;
	const void *features[UKERNEL_TERMS_MAX];
	for (unsigned j = 0; j < n; j++) {
		features[j] = feature(plan, batch, group, first + j);
		if (!flat->as_it_lies)
			flat_spread(flat, u, bytes(plan), features[j], line(plan, j * n_planes));
	}
	for (int64_t i = 0; i < n_planes; i++) {
		const void *lines[UKERNEL_TERMS_MAX];
		for (unsigned j = 0; j < u->n_terms; j++)
			lines[j] = j >= n	      ? line(plan, plan->n_lines - 1)
				   : flat->as_it_lies ? features[j]
						      : line(plan, j * n_planes + i);
		u->pack(bytes(plan), lines, flat->as_it_lies ? flat->n_pixels : flat->length,
			plan->data + (first / u->n_terms * n_planes + i) * plan->packed_bytes);
	}
}

static bool pack_all_channels(const struct conv_plan *plan, struct conv_worker *worker, int64_t batch,
			      int64_t group)
{
	int64_t step = plan->ukernel->n_terms;
	for (int64_t i = 0; i < plan->convolution->n_inputs; i += step) {
		pack_channels(plan, batch, group, i);
		if (!conv_look(plan, worker, 0, flat_n_planes(&plan->flat) * plan->flat.length * step * 8))
			return false;
	}
	return true;
}

/* Term t of a group: a tap of one of its channels. */
static const void *term(const struct conv_plan *plan, int64_t t)
{
	const struct flat *flat = &plan->flat;
	int64_t w = n_taps_w(plan), n_taps = w * plan->phase->h.window.kernel;
	if (t >= plan->convolution->n_inputs * n_taps)
		return line(plan, plan->n_lines - 1);
	int64_t y = t % n_taps / w, x = t % w;
	return line(plan, t / n_taps * flat_n_planes(flat) + flat_plane(flat, y, x)) +
	       flat_offset(flat, y, x) * bytes(plan);
}

static bool pack_terms(const struct conv_plan *plan, struct conv_worker *worker, int64_t batch, int64_t group)
{
	const struct flat *flat = &plan->flat;
	int64_t n_planes = flat_n_planes(flat), step = plan->ukernel->n_terms;
	for (int64_t i = 0; i < plan->convolution->n_inputs; i++) {
		flat_spread(flat, plan->ukernel, bytes(plan), feature(plan, batch, group, i),
			    line(plan, i * n_planes));
		if (!conv_look(plan, worker, 0, n_planes * flat->length * 8))
			return false;
	}
	for (int64_t k = 0; k < plan->shape.n_steps; k++) {
		const void *lines[UKERNEL_TERMS_MAX];
		for (int64_t j = 0; j < step; j++)
			lines[j] = term(plan, k * step + j);
		plan->ukernel->pack(bytes(plan), lines, flat->n_pixels, plan->data + k * plan->packed_bytes);
		if (!conv_look(plan, worker, 0, flat->n_pixels * step * 8))
			return false;
	}
	return true;
}

bool conv_pack(const struct conv_plan *plan, struct conv_worker *worker, int64_t batch, int64_t group)
{
	return plan->shape.merged ? pack_terms(plan, worker, batch, group)
				  : pack_all_channels(plan, worker, batch, group);
}
