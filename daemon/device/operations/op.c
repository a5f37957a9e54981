/* The table of operations, and what all of them share. */
#include "daemon/device/operations/op.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "daemon/device/geometry/meet.h"
#include "daemon/device/operations/op_rule.h"
#include "daemon/device/tensors/written.h"

static const struct op_rule *const rules[] = {
	[OP_WRITE] = &op_rule_write, [OP_READ] = &op_rule_read, [OP_FILL] = &op_rule_fill,
	[OP_COPY] = &op_rule_copy,   [OP_RUN] = &op_rule_run,
};

int op_check(struct device *device, struct op *op, const struct error_context *context)
{
	op->n_destroyed = 0;
	op->warning[0] = '\0';
	op->counts = (struct kernel_counts){.macs = 0};
	int status = rules[op->kind]->check(device, op, context);
	if (status)
		return status;
	/* From here on there may be something to forget. Set before the operation runs, as that may be elsewhere.
	 */
	struct op_access accesses[OP_ACCESSES_MAX];
	for (unsigned i = 0, n = op_accesses(op, accesses); i < n; i++)
		if (accesses[i].writes)
			tensor_root(accesses[i].tensor)->touched = true;
	return 0;
}

int op_run(struct device *device, struct op *op, const struct error_context *context)
{
	const struct op_rule *rule = rules[op->kind];
	if (op->progress) {
		op->progress->give_way = device->give_way;
		op->progress->give_way_ctx = device->give_way_ctx;
	}
	int status = kernel_wanted(op->progress) ? 0 : NPUMEM_CANCELLED;
	if (!status && rule->look)
		status = rule->look(device, op, context);
	if (status == NPUMEM_CANCELLED)
		return npumem_error_set(context->error, NPUMEM_CANCELLED,
					"the %s was cancelled before it began; nothing was written", rule->name);
	return status ? status : rule->run(device, op, context);
}

/* What was known to be written may no longer be, of what shares bytes with it. */
static void forget_written(struct tensor *root)
{
	atomic_store_explicit(&root->all_written, false, memory_order_relaxed);
	for (struct tensor *view = root->views; view; view = view->next_view)
		atomic_store_explicit(&view->all_written, false, memory_order_relaxed);
}

void op_deinit(struct device *device, struct op *op)
{
	if (op->torn)
		forget_written(tensor_root(op->tensor));
	op->torn = false;
	if (rules[op->kind]->deinit)
		rules[op->kind]->deinit(device, op);
}

const char *op_name(const struct op *op)
{
	return rules[op->kind]->name;
}

enum op_queue op_queue(const struct op *op)
{
	return rules[op->kind]->queue;
}

int64_t op_reach_cost(const struct npumem_place *place, int64_t n)
{
	/* Each stretch as much as finding it takes, as measured: some 50 ns, against half a nanosecond. */
	enum { STRETCH_STEPS = 100, STRIDED_STEPS = 16, PACKED_STEPS = 64 };
	int64_t stretch = place->stride.h == place->shape.w ? place->shape.h * place->shape.w : place->shape.w;
	int64_t each = place->lanes > 1 ? PACKED_STEPS : place->stride.w > 1 ? STRIDED_STEPS : 1;
	return n * each + n / stretch * STRETCH_STEPS;
}

/* What is read is first looked at: whether it was written, unless that is known, and whether it is damaged, where
 * anything is. */
static int64_t read_cost(const struct device *device, const struct tensor *tensor, int64_t n)
{
	const struct npumem_place *place = &tensor->place;
	int64_t looks = !tensor_all_written(tensor) + (device->local.n_damaged > 0);
	double share = (double)n / (double)npumem_place_elements(place);
	return op_reach_cost(place, n) + looks * (int64_t)(share * (double)written_scan_cost(place));
}

/* Neither is read or written more than there is: those that say so are refused later. */
static int64_t dma_cost(const struct device *device, const struct op *op)
{
	int64_t n = npumem_place_elements(&op->tensor->place);
	if ((op->kind == OP_WRITE || op->kind == OP_READ) && op->count >= 0 && op->count < n)
		n = op->count;
	if (op->kind == OP_READ)
		return read_cost(device, op->tensor, n);
	int64_t cost = op_reach_cost(&op->tensor->place, n);
	if (op->kind == OP_COPY)
		cost += read_cost(device, op->source, npumem_place_elements(&op->source->place));
	return cost;
}

int64_t op_cost(const struct device *device, const struct op *op)
{
	int64_t elements = 0, weights = 0, out = 0, out_channels = 1;
	if (op->kind != OP_RUN)
		return dma_cost(device, op);
	for (unsigned i = 0; i < op->n_operands; i++) {
		const struct tensor *tensor = op->operands[i].tensor;
		const struct npumem_place *place = &tensor->place;
		int64_t n = npumem_place_elements(place);
		if (!strncmp(op->operands[i].role, "out", 3)) {
			out = n;
			out_channels = place->layout == NPUMEM_MATRIX ? place->cols : place->shape.c;
			elements += op_reach_cost(place, n);
			continue;
		}
		if (!strncmp(op->operands[i].role, "weights", 7) || !strncmp(op->operands[i].role, "right", 5))
			weights += n;
		elements += read_cost(device, tensor, n);
	}
	int64_t taps = weights / out_channels, steps;
	if (__builtin_mul_overflow(out, taps, &steps) || __builtin_add_overflow(steps, elements, &steps))
		return INT64_MAX;
	return steps;
}

unsigned op_accesses(const struct op *op, struct op_access *accesses)
{
	return rules[op->kind]->accesses(op, accesses);
}

const char *op_describe(const struct op *op, const struct error_context *context, char *buffer, size_t bytes)
{
	char name[ERROR_CONTEXT_NAME_BYTES];
	const struct npumem_kernel_row *row = npumem_kernel_by_number(op->kernel);
	if (op->kind != OP_RUN) {
		snprintf(buffer, bytes, "%s %s", rules[op->kind]->name,
			 error_context_name(context, op->tensor, name));
		return buffer;
	}
	int used = snprintf(buffer, bytes, "run %s", row ? row->name : "?");
	for (unsigned i = 0; i < op->n_operands && used > 0 && (size_t)used < bytes; i++)
		if (!strncmp(op->operands[i].role, "out", 3))
			used += snprintf(buffer + used, bytes - (size_t)used, " %s=%s", op->operands[i].role,
					 error_context_name(context, op->operands[i].tensor, name));
	return buffer;
}

void op_warn(struct op *op, const char *format, ...)
{
	va_list arguments;
	if (op->warning[0])
		return;
	va_start(arguments, format);
	vsnprintf(op->warning, sizeof(op->warning), format, arguments);
	va_end(arguments);
}

int op_check_writable(const struct tensor *tensor, const struct error_context *context)
{
	char name[ERROR_CONTEXT_NAME_BYTES];
	if (!tensor_root(tensor)->sealed)
		return 0;
	error_context_name(context, tensor, name);
	npumem_error_set(context->error, NPUMEM_FAILED_PRECONDITION, "%s is sealed: it is read-only for good",
			 name);
	npumem_error_text(context->error, "tensor", name);
	return NPUMEM_FAILED_PRECONDITION;
}

static bool wanted(void *ctx)
{
	return kernel_wanted(ctx);
}

struct written_watch op_watch(const struct op *op)
{
	return (struct written_watch){wanted, op->progress};
}

int op_look_readable(const struct device *device, struct op *op, struct tensor *tensor, int64_t first,
		     int64_t count, const struct error_context *context)
{
	char name[ERROR_CONTEXT_NAME_BYTES];
	const struct written_watch watch = op_watch(op);
	int64_t damaged = written_damaged(device, tensor, first, count, &watch);
	if (damaged)
		op_warn(op, "%s is damaged: %" PRId64 " bytes were destroyed by a kernel and not written since",
			error_context_name(context, tensor, name), damaged);
	if (device->options.uninitialized == NPUMEM_ALLOW)
		return 0;
	if (device->options.uninitialized == NPUMEM_REFUSE)
		return written_check(device, tensor, first, count, &watch, context);
	struct npumem_error ignored = {.status = 0};
	struct error_context quiet = {&ignored, context->name, context->ctx};
	int status = written_check(device, tensor, first, count, &watch, &quiet);
	if (status == NPUMEM_CANCELLED)
		return status;
	if (status)
		op_warn(op, "%.*s", (int)sizeof(op->warning) - 1, ignored.message);
	return 0;
}

/* ---- conflicts ---- */

static bool accesses_meet(struct device *device, const struct op_access *a, const struct op_access *b,
			  struct op_where *where)
{
	struct meet_range range;
	if (!a->writes && !b->writes)
		return false;
	if (!meet_first(&device->options.geometry, &a->tensor->place, a->kinds, &b->tensor->place, b->kinds,
			&range))
		return false;
	*where = (struct op_where){a->tensor, b->tensor, range.npu, range.offset, range.bytes};
	return true;
}

bool op_conflict(struct device *device, const struct op *a, const struct op *b, struct op_where *where)
{
	struct op_access a_accesses[OP_ACCESSES_MAX], b_accesses[OP_ACCESSES_MAX];
	unsigned a_n = op_accesses(a, a_accesses), b_n = op_accesses(b, b_accesses);
	for (unsigned i = 0; i < a_n; i++)
		for (unsigned j = 0; j < b_n; j++)
			if (accesses_meet(device, &a_accesses[i], &b_accesses[j], where))
				return true;
	return false;
}

static int refuse_group(const struct op *a, const struct op *b, unsigned a_index, unsigned b_index,
			const struct op_where *where, const struct error_context *context)
{
	char first[OP_DESCRIPTION_BYTES], second[OP_DESCRIPTION_BYTES], name[ERROR_CONTEXT_NAME_BYTES];
	op_describe(a, context, first, sizeof(first));
	op_describe(b, context, second, sizeof(second));
	npumem_error_set(context->error, NPUMEM_ABORTED,
			 "operations %u (%s) and %u (%s) of one group conflict on NPU %" PRId64 ", bytes %" PRId64
			 " to %" PRId64 "; nothing of the group ran",
			 a_index, first, b_index, second, where->npu, where->offset,
			 where->offset + where->bytes - 1);
	npumem_error_number(context->error, "first", a_index);
	npumem_error_number(context->error, "second", b_index);
	npumem_error_text(context->error, "first_tensor", error_context_name(context, where->a, name));
	npumem_error_text(context->error, "second_tensor", error_context_name(context, where->b, name));
	npumem_error_number(context->error, "npu", where->npu);
	npumem_error_number(context->error, "offset", where->offset);
	npumem_error_number(context->error, "bytes", where->bytes);
	return NPUMEM_ABORTED;
}

/* False where no access of the one can meet one of the other. */
static bool maybe_conflict(struct device *device, const struct op *a, const struct op *b, int64_t *left)
{
	enum { PAIR_STEPS = 512 };
	struct op_access a_accesses[OP_ACCESSES_MAX], b_accesses[OP_ACCESSES_MAX];
	unsigned a_n = op_accesses(a, a_accesses), b_n = op_accesses(b, b_accesses);
	for (unsigned i = 0; i < a_n; i++)
		for (unsigned j = 0; j < b_n; j++) {
			const struct op_access *x = &a_accesses[i], *y = &b_accesses[j];
			int64_t given = *left < PAIR_STEPS ? *left : PAIR_STEPS, steps = given;
			bool maybe = (x->writes || y->writes) &&
				     meet_maybe(&device->options.geometry, &x->tensor->place, x->kinds,
						&y->tensor->place, y->kinds, &steps);
			*left -= given - (steps < 0 ? 0 : steps);
			if (maybe)
				return true;
		}
	return false;
}

static int refuse_irregular(const struct op *a, const struct op *b, unsigned a_index, unsigned b_index,
			    const struct error_context *context)
{
	char first[OP_DESCRIPTION_BYTES], second[OP_DESCRIPTION_BYTES];
	op_describe(a, context, first, sizeof(first));
	op_describe(b, context, second, sizeof(second));
	npumem_error_set(
		context->error, NPUMEM_ABORTED,
		"operations %u (%s) and %u (%s) of one group may conflict: too many strides of its tensors "
		"are irregular to tell; nothing of the group ran",
		a_index, first, b_index, second);
	npumem_error_number(context->error, "first", a_index);
	npumem_error_number(context->error, "second", b_index);
	return NPUMEM_ABORTED;
}

int op_group_check(struct device *device, struct op *const *ops, unsigned n, unsigned base,
		   const struct error_context *context)
{
	/* As much as any group of regular tensors takes; and looks at every byte where it cannot be told. */
	enum { STEPS = 1 << 20, LOOKS_MAX = 4 };
	int64_t left = STEPS;
	unsigned n_looks = 0;
	struct op_where where;
	for (unsigned j = 1; j < n; j++)
		for (unsigned i = 0; i < j; i++) {
			if (op_queue(ops[i]) == op_queue(ops[j]) || !maybe_conflict(device, ops[i], ops[j], &left))
				continue;
			if (n_looks == LOOKS_MAX)
				return refuse_irregular(ops[i], ops[j], base + i, base + j, context);
			if (op_conflict(device, ops[i], ops[j], &where))
				return refuse_group(ops[i], ops[j], base + i, base + j, &where, context);
			n_looks++;
		}
	return 0;
}

int64_t op_group_cost(struct op *const *ops, unsigned n)
{
	/* Of a pair of accesses, as measured: 0.2 us where offsets meet. */
	enum { PAIR_COST = 400 };
	int64_t accesses[2] = {0, 0};
	struct op_access all[OP_ACCESSES_MAX];
	for (unsigned i = 0; i < n; i++)
		accesses[op_queue(ops[i])] += op_accesses(ops[i], all);
	return accesses[0] * accesses[1] * PAIR_COST;
}
