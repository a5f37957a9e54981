/* Which elements belong together. */
#include "daemon/device/kernel_support/lut_groups.h"

#include "daemon/device/kernel_support/lut_choice.h"
#include "daemon/device/kernel_support/operands.h"

/* In the order of axis='s choices. */
enum { LUT_GROUPS_NONE = 1, LUT_GROUPS_N, LUT_GROUPS_C, LUT_GROUPS_H, LUT_GROUPS_W };

int lut_groups_check(const struct kernel_call *call, struct npumem_error *error)
{
	int status = operands_check_choices(call, error);
	if (!status && kernel_param(call, NPUMEM_PARAM_AXIS, 0, LUT_GROUPS_NONE) == LUT_GROUPS_N) {
		npumem_error_set(error, NPUMEM_INVALID, "%s: axis is n, but must be none, c, h or w",
				 call->row->name);
		npumem_error_text(error, "parameter", "axis");
		return NPUMEM_INVALID;
	}
	if (!status)
		status = operands_check_fixed(call, LUT_GROUPS_IN, error);
	if (!status)
		status = operands_check_same_dtype(call, LUT_GROUPS_OUT, LUT_GROUPS_IN, error);
	if (!status)
		status = lut_choice_check(call, LUT_GROUPS_OUT, error);
	const struct npumem_dims *shape = &operands_get(call, LUT_GROUPS_IN)->shape;
	return status ? status : operands_check_shape(call, LUT_GROUPS_OUT, shape, "in has", error);
}

void lut_groups_begin(struct lut_groups *groups, const struct kernel_call *call, unsigned passes)
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

bool lut_groups_next(struct lut_groups *groups, const struct kernel_call *call)
{
	if (groups->stopped || (groups->at >= 0 && !kernel_step(call, groups->size)))
		return false;
	groups->run = groups->looked = 0;
	if (++groups->at == groups->n)
		return false;
	int64_t outer = groups->at / groups->step, inner = groups->at % groups->step;
	int64_t first = (outer * groups->size * groups->step + inner) * groups->bytes;
	groups->in = (const uint8_t *)operands_get(call, LUT_GROUPS_IN)->data + first;
	groups->out = (uint8_t *)operands_get(call, LUT_GROUPS_OUT)->data + first;
	return true;
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
