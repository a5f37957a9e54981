/* Which elements belong together. Where they do not follow each other, groups that lie abreast are copied, a cache
 * line of each row at a time. */
#include "daemon/device/kernel_support/elementwise/lut_groups.h"

#include <inttypes.h>

#include "daemon/device/fixed/rows/transpose.h"
#include "daemon/device/kernel_support/elementwise/lut_choice.h"
#include "daemon/device/kernel_support/operands.h"
#include "daemon/device/kernel_support/steps.h"

/* In the order of axis='s choices. */
enum { LUT_GROUPS_NONE = 1, LUT_GROUPS_N, LUT_GROUPS_C, LUT_GROUPS_H, LUT_GROUPS_W };
enum { ABREAST = 64 };

int lut_groups_check(const struct kernel_call *call, struct npumem_error *error)
{
	if (kernel_param(call, NPUMEM_PARAM_AXIS, 0, LUT_GROUPS_NONE) == LUT_GROUPS_N) {
		npumem_error_set(error, NPUMEM_INVALID, "%s: axis is n, but must be none, c, h or w",
				 call->row->name);
		npumem_error_text(error, "parameter", "axis");
		return NPUMEM_INVALID;
	}
	int status = operands_check_fixed(call, LUT_GROUPS_IN, error);
	if (!status)
		status = operands_check_same_dtype(call, LUT_GROUPS_OUT, LUT_GROUPS_IN, error);
	if (!status)
		status = lut_choice_check(call, LUT_GROUPS_OUT, error);
	const struct npumem_dims *shape = &operands_get(call, LUT_GROUPS_IN)->shape;
	/* Over everything is what the reference does, and of a batch hardly what is meant. */
	if (!status && shape->n > 1 && !call->params.given[NPUMEM_PARAM_AXIS].n_values) {
		npumem_error_set(error, NPUMEM_INVALID,
				 "%s: parameter axis is missing: of n=%" PRId64
				 ", none is over the whole batch; or c, h, w",
				 call->row->name, shape->n);
		npumem_error_text(error, "parameter", "axis");
		return NPUMEM_INVALID;
	}
	return status ? status : operands_check_shape(call, LUT_GROUPS_OUT, shape, "in has", error);
}

static void init(struct lut_groups *groups, const struct kernel_call *call, unsigned passes)
{
	const struct kernel_operand *in = operands_get(call, LUT_GROUPS_IN);
	const struct npumem_dims *s = &in->shape;
	*groups = (struct lut_groups){.bytes = npumem_dtype_bytes(in->dtype), .at = -1, .passes = passes};
	switch (kernel_param(call, NPUMEM_PARAM_AXIS, 0, LUT_GROUPS_NONE)) {
	case LUT_GROUPS_C:
		groups->size = s->c;
		groups->step = s->h * s->w;
		break;
	case LUT_GROUPS_H:
		groups->size = s->h;
		groups->step = s->w;
		break;
	case LUT_GROUPS_W:
		groups->size = s->w;
		groups->step = 1;
		break;
	default:
		groups->size = operands_elements(in);
		groups->step = 1;
	}
	groups->n = operands_elements(in) / groups->size;
}

size_t lut_groups_scratch_bytes(const struct kernel_call *call)
{
	struct lut_groups groups;
	init(&groups, call, 1);
	int64_t width = groups.step < ABREAST ? groups.step : ABREAST;
	return groups.step == 1 ? 0 : (size_t)(width * groups.size) * groups.bytes;
}

int64_t lut_groups_steps(const struct kernel_call *call, unsigned passes)
{
	enum { GROUP = 400 }; /* what each group is scaled by */
	struct lut_groups groups;
	init(&groups, call, passes);
	double elements = (double)groups.n * (double)groups.size * steps_per_element(call);
	return steps_whole(elements * passes + (double)groups.n * (GROUP + passes * STEPS_ROW));
}

void lut_groups_begin(struct lut_groups *groups, const struct kernel_call *call, unsigned passes)
{
	init(groups, call, passes);
}

/* Groups that lie abreast, from `at` on, become copies, or the other way round. False where they are no longer
 * wanted. */
static bool move_block(struct lut_groups *g, const struct kernel_call *call, int64_t at, bool back)
{
	int64_t inner = at % g->step, width = g->step - inner < ABREAST ? g->step - inner : ABREAST;
	int64_t first = at / g->step * g->size * g->step + inner, piece = kernel_piece(call) / width + 1;
	uint8_t *copies = call->scratch;
	const uint8_t *in = (const uint8_t *)operands_get(call, LUT_GROUPS_IN)->data + first * g->bytes;
	uint8_t *out = (uint8_t *)operands_get(call, LUT_GROUPS_OUT)->data + first * g->bytes;
	for (int64_t i = 0; i < g->size; i += piece) {
		int64_t count = g->size - i < piece ? g->size - i : piece, row = i * g->step * g->bytes;
		if (back)
			transpose(call->isa, g->bytes, copies + i * g->bytes, g->size, width, count, out + row,
				  g->step);
		else
			transpose(call->isa, g->bytes, in + row, g->step, count, width, copies + i * g->bytes,
				  g->size);
		if (!kernel_look(call, count * width, &g->moved))
			return false;
	}
	return true;
}

/* Sets in and out of group `at`. */
static bool find_group(struct lut_groups *g, const struct kernel_call *call)
{
	int64_t place = g->at % g->step % ABREAST * g->size * g->bytes;
	if (g->step > 1) {
		g->in = g->out = (uint8_t *)call->scratch + place;
		return place > 0 || move_block(g, call, g->at, false);
	}
	g->in = (const uint8_t *)operands_get(call, LUT_GROUPS_IN)->data + g->at * g->size * g->bytes;
	g->out = (uint8_t *)operands_get(call, LUT_GROUPS_OUT)->data + g->at * g->size * g->bytes;
	return true;
}

/* The last of those abreast is done. */
static bool finish_group(struct lut_groups *g, const struct kernel_call *call)
{
	int64_t inner = g->at % g->step;
	if (g->step == 1 || (inner + 1 < g->step && (inner + 1) % ABREAST != 0))
		return true;
	return move_block(g, call, g->at - inner % ABREAST, true);
}

bool lut_groups_next(struct lut_groups *groups, const struct kernel_call *call)
{
	if (groups->stopped)
		return false;
	if (groups->at >= 0 && (!finish_group(groups, call) || !kernel_step(call, groups->size)))
		return false;
	groups->run = groups->looked = 0;
	return ++groups->at < groups->n && find_group(groups, call);
}

bool lut_groups_piece(struct lut_groups *groups, const struct kernel_call *call, int64_t *end)
{
	int64_t left = groups->size - *end, piece = kernel_piece(call);
	if (groups->run - groups->looked >= piece) {
		groups->looked = groups->run;
		groups->stopped |= !kernel_part(call, groups->size, groups->run, groups->passes * groups->size);
	}
	if (groups->stopped)
		return false;
	left = left < piece ? left : piece;
	*end += left;
	groups->run += left;
	return left > 0;
}
