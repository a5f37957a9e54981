#include "daemon/device/kernel_support/walk.h"

#include "daemon/device/kernel_support/operands.h"

/* An operand whose pack is all that is needed of it has neither. */
static bool is_dense(const struct kernel_call *call)
{
	for (unsigned r = 0; r < call->n_roles; r++)
		if (call->roles[r].n > 0 && !call->roles[r].operands[0].data &&
		    call->roles[r].operands[0].features.base)
			return false;
	return true;
}

void walk_begin_features(struct walk *walk, const struct kernel_call *call, unsigned role)
{
	const struct npumem_dims *shape = &operands_get(call, role)->shape;
	*walk = (struct walk){
		.call = call, .batches = shape->n, .channels = shape->c, .length = shape->h * shape->w};
}

void walk_begin(struct walk *walk, const struct kernel_call *call, unsigned role)
{
	walk_begin_features(walk, call, role);
	if (!is_dense(call))
		return;
	walk->dense = true;
	walk->batches = walk->channels = 1;
	walk->length = operands_elements(operands_get(call, role));
}

static bool next_row(struct walk *walk)
{
	walk->i = 0;
	if (++walk->channel < walk->channels)
		return true;
	walk->channel = 0;
	return ++walk->batch < walk->batches;
}

bool walk_next(struct walk *walk)
{
	if (walk->n > 0 && !kernel_step_rarely(walk->call, walk->n, &walk->pending))
		return false;
	walk->i += walk->n;
	if (walk->i == walk->length && !next_row(walk)) {
		kernel_step(walk->call, walk->pending);
		return false;
	}
	int64_t piece = kernel_piece(walk->call);
	walk->n = walk->length - walk->i < piece ? walk->length - walk->i : piece;
	return true;
}
