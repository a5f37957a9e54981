/* Features into steps. A step's terms are either the same tap of several channels, or, where there are few
 * channels, any: taps are lines at other distances, and no term is left empty but the last. */
#include "daemon/device/engine/conv_plan.h"
#include "daemon/device/kernel_support/operands.h"

enum {
	STRETCH = 16384, /* pixels that are packed between two looks */
	SPAN_STRIPS = 4, /* of a span, at least */
	PACK_PIXELS = 2, /* of one packed line, in an element step */
};

static int64_t n_taps_w(const struct conv_plan *plan)
{
	return plan->phase->w.window.kernel;
}

/* Where the high bytes of a packed line lie, behind those of all low ones. */
static int64_t high_off(const struct conv_plan *plan)
{
	return plan->n_packed / 2 * plan->packed_bytes;
}

/* Where step i of a tap lies whose lines are `way` bytes apart. Steps that fill up see lines of others. */
static uint32_t offset(const struct conv_plan *plan, int64_t i, int64_t way)
{
	const struct ukernel *u = plan->ukernel;
	return (uint32_t)(ukernel_line(u, i) * way + (ukernel_is_high(u, i) ? high_off(plan) : 0));
}

/* Of tap (y, x) of all channels: their planes follow each other. */
static bool tap_offsets(struct conv_plan *plan, int64_t y, int64_t x)
{
	const struct conv_weights_shape *shape = &plan->shape;
	int64_t w = n_taps_w(plan), n_taps = w * plan->phase->h.window.kernel, channels = shape->n_steps / n_taps;
	int64_t way = flat_n_planes(&plan->flat) * plan->packed_bytes;
	int64_t at = flat_plane(&plan->flat, y, x) * plan->packed_bytes +
		     flat_offset(&plan->flat, y, x) * UKERNEL_STEP_BYTES;
	int64_t depth = shape->by_pixels ? 1 : plan->ukernel->depth;
	uint32_t *to = plan->offsets + (shape->by_pixels ? y * channels * w + x : (y * w + x) * depth);
	for (int64_t i = 0; i < channels; i += depth, to += shape->by_pixels ? w : n_taps * depth) {
		for (int64_t j = 0; j < depth; j++)
			to[j] = (uint32_t)at + offset(plan, i + j, way);
		if (!conv_look(plan, depth))
			return false;
	}
	return true;
}

bool conv_pack_offsets(struct conv_plan *plan)
{
	for (int64_t k = 0; plan->shape.merged && k < plan->shape.n_steps; k++) {
		plan->offsets[k] = offset(plan, k, plan->packed_bytes);
		if (!conv_look(plan, 1))
			return false;
	}
	for (int64_t y = 0; !plan->shape.merged && y < plan->phase->h.window.kernel; y++)
		for (int64_t x = 0; x < n_taps_w(plan); x++)
			if (!tap_offsets(plan, y, x))
				return false;
	return true;
}

static unsigned bytes(const struct conv_plan *plan)
{
	return plan->convolution->weighted.data_bytes;
}

static uint8_t *line(const struct conv_plan *plan, uint8_t *lines, int64_t i)
{
	return lines + i * plan->flat.length * bytes(plan);
}

/* `channel` of all. */
static const void *feature(const struct conv_plan *plan, int64_t channel)
{
	return kernel_feature(operands_get(plan->convolution->call, CONVOLUTION_IN), plan->batch, channel);
}

static uint8_t *group_data(const struct conv_plan *plan, int64_t group)
{
	return plan->data + group * plan->n_packed * plan->packed_bytes;
}

/* Pixels of lines into a packed one. */
static bool pack(struct conv_worker *worker, const void *const *lines, struct flat_span span, uint8_t *to)
{
	const struct conv_plan *plan = worker->plan;
	const uint8_t *at[UKERNEL_TERMS_MAX];
	unsigned n_terms = plan->ukernel->n_terms;
	for (int64_t i = span.first; i < span.end; i += STRETCH) {
		int64_t some = span.end - i < STRETCH ? span.end - i : STRETCH;
		for (unsigned j = 0; j < n_terms; j++)
			at[j] = (const uint8_t *)lines[j] + i * bytes(plan);
		plan->ukernel->pack(bytes(plan), (const void *const *)at, some, high_off(plan),
				    to + i * UKERNEL_STEP_BYTES);
		if (!conv_team_look(worker, some * n_terms))
			return false;
	}
	return true;
}

static bool team_look(void *ctx, int64_t elements)
{
	return conv_team_look(ctx, elements);
}

static bool spread(struct conv_worker *worker, struct flat_span span, const void *from, uint8_t *to)
{
	const struct conv_plan *plan = worker->plan;
	return flat_spread(&plan->flat, span, plan->ukernel, bytes(plan), from, to, team_look, worker);
}

/* Spans of packed lines, one for each thread: the thread that packs one is likely to multiply by it. */
static int64_t n_spans(const struct conv_plan *plan)
{
	const struct kernel_crew *crew = plan->convolution->call->crew;
	int64_t most = plan->flat.length / (SPAN_STRIPS * UKERNEL_COLUMNS), n = crew ? crew->n_threads : 1;
	return most < 1 ? 1 : n < most ? n : most;
}

static struct flat_span span_at(const struct conv_plan *plan, int64_t i)
{
	int64_t length = plan->flat.as_it_lies ? plan->flat.n_pixels : plan->flat.length, n = n_spans(plan);
	int64_t strips = (length + UKERNEL_COLUMNS - 1) / UKERNEL_COLUMNS;
	int64_t end = strips * (i + 1) / n * UKERNEL_COLUMNS;
	return (struct flat_span){strips * i / n * UKERNEL_COLUMNS, end < length ? end : length};
}

static int64_t n_channel_steps(const struct conv_plan *plan)
{
	return (plan->convolution->n_inputs + plan->ukernel->n_terms - 1) / plan->ukernel->n_terms;
}

/* A part: a span of the channels of one step of a group, plane by plane. */
static int64_t pack_channels(struct conv_worker *worker, int64_t part)
{
	const struct conv_plan *plan = worker->plan;
	const struct flat *flat = &plan->flat;
	int64_t step = part % n_channel_steps(plan), group = part / n_channel_steps(plan) / n_spans(plan);
	struct flat_span span = span_at(plan, part / n_channel_steps(plan) % n_spans(plan));
	int64_t n_terms = plan->ukernel->n_terms, n_planes = flat_n_planes(flat);
	int64_t first = step * n_terms, n = plan->convolution->n_inputs - first;
	const void *features[UKERNEL_TERMS_MAX], *lines[UKERNEL_TERMS_MAX];
	if (!worker->has_lines && !kernel_clear(plan->convolution->call, worker->lines,
						plan->n_lines * flat->length * bytes(plan), &worker->pending))
		return -1;
	worker->has_lines = true;
	/* Those of the next step, which are likely to be this thread's next part. */
	int64_t size = flat->phase->h.window.in * flat->phase->w.window.in * bytes(plan);
	int64_t from = size * span.first / flat->length;
	for (int64_t j = 0; j < n_terms && j + n_terms < n; j++)
		kernel_prefetch(
			(const uint8_t *)feature(plan, group * plan->convolution->n_inputs + first + n_terms + j) +
				from,
			size * span.end / flat->length - from);
	for (int64_t j = 0; j < n_terms && j < n; j++) {
		features[j] = feature(plan, group * plan->convolution->n_inputs + first + j);
		if (!flat->as_it_lies &&
		    !spread(worker, span, features[j], line(plan, worker->lines, j * n_planes)))
			return -1;
	}
	uint8_t *to = group_data(plan, group) + step * n_planes * plan->packed_bytes;
	for (int64_t i = 0; i < n_planes; i++, to += plan->packed_bytes) {
		for (int64_t j = 0; j < n_terms; j++)
			lines[j] = j >= n	      ? plan->zeros
				   : flat->as_it_lies ? features[j]
						      : line(plan, worker->lines, j * n_planes + i);
		if (!pack(worker, lines, span, to))
			return -1;
	}
	return 0;
}

/* A part: a channel's planes. */
static int64_t spread_channel(struct conv_worker *worker, int64_t part)
{
	const struct conv_plan *plan = worker->plan;
	uint8_t *to = line(plan, plan->lines, part * flat_n_planes(&plan->flat));
	return spread(worker, (struct flat_span){0, plan->flat.length}, feature(plan, part), to) ? 0 : -1;
}

/* Term t of a group: a tap of one of its channels. */
static const void *term(const struct conv_plan *plan, int64_t group, int64_t t)
{
	const struct flat *flat = &plan->flat;
	int64_t w = n_taps_w(plan), n_taps = w * plan->phase->h.window.kernel;
	if (t >= plan->convolution->n_inputs * n_taps)
		return plan->zeros;
	int64_t y = t % n_taps / w, x = t % w, channel = group * plan->convolution->n_inputs + t / n_taps;
	return line(plan, plan->lines, channel * flat_n_planes(flat) + flat_plane(flat, y, x)) +
	       flat_offset(flat, y, x) * bytes(plan);
}

/* Of a group where steps are merged. */
static int64_t n_term_steps(const struct conv_plan *plan)
{
	return plan->n_packed >> plan->ukernel->by_bytes;
}

/* A part: a span of one step of a group. */
static int64_t pack_terms(struct conv_worker *worker, int64_t part)
{
	const struct conv_plan *plan = worker->plan;
	int64_t k = part % n_term_steps(plan), n = plan->ukernel->n_terms;
	int64_t group = part / n_term_steps(plan) / n_spans(plan);
	struct flat_span span = span_at(plan, part / n_term_steps(plan) % n_spans(plan));
	const void *lines[UKERNEL_TERMS_MAX];
	for (int64_t j = 0; j < n; j++)
		lines[j] = term(plan, group, k * n + j);
	uint8_t *to = group_data(plan, group) + k * plan->packed_bytes;
	span.end = span.end < plan->flat.n_pixels ? span.end : plan->flat.n_pixels;
	return pack(worker, lines, span, to) ? 0 : -1;
}

double conv_pack_steps(const struct conv_plan *plan)
{
	return (double)plan->convolution->groups * (double)plan->n_packed * (double)plan->flat.length /
	       PACK_PIXELS;
}

bool conv_pack(const struct conv_plan *plan)
{
	const struct convolution *c = plan->convolution;
	double steps = conv_pack_steps(plan);
	if (!plan->shape.merged)
		return conv_team_run(plan, pack_channels, c->groups * n_spans(plan) * n_channel_steps(plan),
				     steps);
	return conv_team_run(plan, spread_channel, c->groups * c->n_inputs, steps) &&
	       conv_team_run(plan, pack_terms, c->groups * n_spans(plan) * n_term_steps(plan), steps);
}
