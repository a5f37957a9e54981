/* Which of three ways sums take is decided once, by what the weights and the bias can come to: the micro-kernel's
 * stores, rows of fixed/ that know nothing wraps, or exact totals. */
#include <string.h>

#include "daemon/device/engine/conv_plan.h"

static int32_t bias_of(const struct weighted *weighted, int64_t o)
{
	return weighted->bias ? weighted_element(weighted->bias, weighted->weight_bytes, o) : 0;
}

/* What packed data has too much. */
static int64_t excess(const struct conv_plan *plan, int64_t o)
{
	return plan->ukernel->unsigned_data ? 128 * plan->weights.sums[o] : 0;
}

/* Whether sums that come in parts, of which `most` is the largest, meet in 32 bits. */
static bool has_parts(const struct conv_plan *plan, int64_t most)
{
	const struct conv_weights_head *head = plan->weights.head;
	int64_t shift = plan->result.requantize.shift - UKERNEL_DROP;
	return plan->ukernel->store_parts && head->n_parts * head->n_segments <= UKERNEL_PARTS_MAX &&
	       plan->result.accumulator.cannot_wrap && shift >= 1 &&
	       requantize_fits32((most >> UKERNEL_DROP) + 2, shift + 1);
}

bool conv_store_init(struct conv_plan *plan)
{
	const struct convolution *c = plan->convolution;
	const struct weighted *weighted = &c->weighted;
	struct conv_result *result = &plan->result;
	*result = (struct conv_result){.accumulator = weighted->accumulator,
				       .requantize = weighted->accumulator.result};
	int64_t shift = result->requantize.shift, n = c->groups * c->n_outputs;
	int64_t bias = weighted_most_bias(weighted, c->call->isa, n);
	int64_t most = plan->weights.head->most * (weighted->data_bytes == 1 ? 128 : 32768) + bias;
	result->has_bias = bias != 0;
	result->is_small = ukernel_is_small(&result->requantize, most);
	result->accumulator.cannot_wrap = most < (INT64_C(1) << (weighted->accumulator.bits - 1));
	result->narrow = plan->ukernel->block && most <= INT32_MAX && plan->shape.n_steps <= UKERNEL_STEPS_MAX &&
			 plan->weights.head->n_parts == 1;
	result->accumulator.sum_bytes = result->narrow ? 4 : 8;
	result->parts = !result->narrow && !plan->pixels && has_parts(plan, most);
	if (result->parts) {
		result->direct = true;
		result->requantize.shift -= UKERNEL_DROP;
	} else if (result->narrow)
		result->direct = plan->ukernel->store32 && shift >= 0 && shift <= 30 &&
				 most + (INT64_C(1) << shift) <= INT32_MAX;
	else
		result->direct = plan->ukernel->store64 && weighted->data_bytes == 2 && shift >= 0 &&
				 shift <= 60 && result->accumulator.cannot_wrap;
	/* A micro-kernel stores its data's type. */
	result->direct &= result->requantize.bytes == weighted->data_bytes;
	for (int64_t o = 0, end; result->direct && o < n; o = end) {
		end = o + kernel_stretch(c->call, n - o);
		for (int64_t i = o; i < end; i++)
			plan->totals[i] =
				(bias ? bias_of(weighted, i) * (INT64_C(1) << weighted->accumulator.bias_shift)
				      : 0) -
				excess(plan, i);
		if (!conv_look(plan, end - o))
			return false;
	}
	return true;
}

/* The real columns of a row, less what is too much, side by side. */
#define SQUEEZE(name, type)                                                                                       \
	static void name(const struct ukernel_strip *strip, type *sums, type less)                                \
	{                                                                                                         \
		type *to = sums;                                                                                  \
		for (unsigned i = 0; i < strip->n_columns; i++) {                                                 \
			*to = sums[i] - less;                                                                     \
			to += strip->real >> i & 1;                                                               \
		}                                                                                                 \
	}
SQUEEZE(squeeze32, uint32_t)
SQUEEZE(squeeze64, int64_t)

static void store_exact(struct conv_worker *worker, const struct ukernel_strip *strip, int64_t o, unsigned rows,
			int32_t *narrow, const struct ukernel_result *result)
{
	const struct conv_plan *plan = worker->plan;
	const struct weighted *weighted = &plan->convolution->weighted;
	for (unsigned row = 0; row < rows; row++) {
		int32_t bias = bias_of(weighted, o + row);
		void *sums;
		if (plan->result.narrow) {
			sums = narrow + row * UKERNEL_COLUMNS;
			squeeze32(strip, sums, (uint32_t)excess(plan, o + row));
		} else {
			sums = worker->wide + row * UKERNEL_COLUMNS;
			squeeze64(strip, sums, excess(plan, o + row));
		}
		accumulator_finish(&plan->result.accumulator, sums, strip->n_real,
				   plan->result.has_bias ? &bias : NULL, 0, result->to[row] + result->at,
				   &worker->counts.saturated, &worker->counts.wrapped);
	}
}

/* Results of a strip of a phase that has not all outputs of a feature: from worker->staging to their places. */
static void scatter(const struct conv_worker *worker, const struct conv_strip *strip, int64_t o, unsigned n)
{
	const struct conv_plan *plan = worker->plan;
	const struct phase_axis *h = &plan->phase->h, *w = &plan->phase->w;
	unsigned bytes = plan->result.requantize.bytes;
	int64_t y = strip->first / w->window.out;
	int64_t at = (h->first_out + y * h->out_step) * w->out + w->first_out;
	const struct ukernel_rows rows = {
		.width = w->window.out,
		.first = strip->first % w->window.out,
		.step = w->out_step,
		.way = h->out_step * w->out,
	};
	for (unsigned i = 0; i < n; i++)
		plan->ukernel->scatter(bytes, worker->staging + i * UKERNEL_COLUMNS, strip->columns.n_real, &rows,
				       plan->outs[o + i] + at * bytes);
}

void conv_store(struct conv_worker *worker, const struct conv_strip *strip, int64_t o, unsigned rows,
		int32_t *sums)
{
	const struct conv_plan *plan = worker->plan;
	const struct conv_weights_head *head = plan->weights.head;
	struct ukernel_result result = {&plan->result.requantize, plan->totals + o, plan->outs + o,
					strip->first * plan->result.requantize.bytes, plan->result.is_small};
	uint8_t *staging[UKERNEL_OUTPUTS];
	bool all = phase_is_dense(plan->phase);
	for (unsigned i = 0; i < rows && !all; i++)
		staging[i] = (uint8_t *)(worker->staging + i * UKERNEL_COLUMNS);
	if (!all) {
		result.to = staging;
		result.at = 0;
	}
	if (!plan->result.direct)
		store_exact(worker, &strip->columns, o, rows, sums, &result);
	else if (plan->result.parts)
		worker->counts.saturated +=
			plan->ukernel->store_parts(&result, &strip->columns, rows, worker->others,
						   head->n_parts == 2 ? head->n_segments : 0, head->n_segments);
	else if (plan->result.narrow)
		worker->counts.saturated += plan->ukernel->store32(&result, &strip->columns, rows, sums);
	else
		worker->counts.saturated += plan->ukernel->store64(&result, &strip->columns, rows, worker->wide);
	if (!all)
		scatter(worker, strip, o, rows);
}
