/* The table of operations, and what all of them share. */
#include "daemon/device/operations/op_rule.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "daemon/device/geometry/runs.h"
#include "daemon/device/operations/roles.h"
#include "daemon/device/tensors/changes.h"
#include "daemon/device/tensors/meetings.h"
#include "daemon/device/tensors/page_cost.h"

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
	for (unsigned i = 0, n = op->is_dry ? 0 : op_accesses(op, accesses); i < n; i++)
		if (accesses[i].writes)
			tensor_root(accesses[i].tensor)->touched = true;
	return 0;
}

/* A pack of the elements before this operation is not valid after it. No operation that reads what this one writes
 * runs beside it. */
static void raise_versions(const struct op *op)
{
	struct op_access accesses[OP_ACCESSES_MAX];
	for (unsigned i = 0, n = op_accesses(op, accesses); i < n; i++)
		if (accesses[i].writes)
			atomic_fetch_add_explicit(&tensor_root(accesses[i].tensor)->version, 1,
						  memory_order_relaxed);
}

/* A kernel reaches all of a footprint, and what others have there. */
static void tell_changes(const struct device *device, const struct op *op)
{
	struct op_access accesses[OP_ACCESSES_MAX];
	bool is_part = op->kind == OP_WRITE;
	if (!changes_are_told(device))
		return;
	for (unsigned i = 0, n = op_accesses(op, accesses); i < n; i++) {
		if (!accesses[i].writes)
			continue;
		if (op->kind == OP_RUN)
			changes_tell_place(device, TENSOR_PLACE(tensor_root(accesses[i].tensor)), true);
		else
			changes_tell_elements(device, accesses[i].tensor, is_part ? op->first : 0,
					      is_part ? op->count : -1);
	}
}

/* Also where it was stopped, or failed on its way. A kernel that was refused has written nothing. */
static void tell_changes_made(const struct device *device, const struct op *op, int status)
{
	struct op_access accesses[OP_ACCESSES_MAX];
	bool is_part = op->kind == OP_WRITE;
	if (!changes_are_told_after(device) || (op->kind == OP_RUN && status && !op->torn))
		return;
	for (unsigned i = 0, n = op_accesses(op, accesses); i < n; i++) {
		if (accesses[i].writes)
			changes_made_elements(device, accesses[i].tensor, is_part ? op->first : 0,
					      is_part ? op->count : -1);
	}
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
	if (status || op->is_dry)
		return status;
	if (op->kind != OP_RUN)
		status = op_begins(op, context);
	if (status)
		return status;
	raise_versions(op);
	tell_changes(device, op);
	status = rule->run(device, op, context);
	tell_changes_made(device, op, status);
	return status;
}

int op_begins(const struct op *op, const struct error_context *context)
{
	return op->begins ? op->begins(op->begins_ctx, context->error) : 0;
}

static bool unmark(void *ctx, const struct runs_series *series)
{
	local_unmark_series(ctx, series->npu, series->offset, series->bytes, series->n, series->pitch);
	return true;
}

void op_take_back(struct device *device, struct op *op)
{
	if (op->kind != OP_WRITE)
		return;
	op->torn = true;
	runs_each_of(&device->options.geometry, TENSOR_PLACE(op->tensor), op->first, op->count, unmark,
		     &device->local);
	changes_made_elements(device, op->tensor, op->first, op->count);
}

void op_deinit(struct device *device, struct op *op)
{
	struct op_access accesses[OP_ACCESSES_MAX];
	for (unsigned i = 0, n = op->torn ? op_accesses(op, accesses) : 0; i < n; i++)
		if (accesses[i].writes)
			written_doubt(tensor_root(accesses[i].tensor));
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

/* In half nanoseconds, as measured: 8 GB/s where elements lie together, which is what memory gives that is touched
 * for the first time; 4 ns for each stretch of them, which mostly is a cache line of its own; and for each element
 * that stands alone 1 ns in a line with others, else as much as a stretch. */
enum { REACH_BYTES_PER_STEP = 4, STRETCH_STEPS = 8, APART_STEPS = 2, LINE_BYTES = 64 };

int64_t op_reach_cost(const struct tensor *tensor, int64_t n)
{
	const struct tensor_packed *packed = &tensor->packed;
	int64_t h = packed->shape.h, w = packed->shape.w, lanes = packed->lanes, word = packed->word_bytes;
	int64_t element = word / lanes, pitch = packed->stride.w * word;
	int64_t stretch = packed->stride.h == w ? h * w : w;
	if (packed->stride.w > 1 && w > 1)
		return n * (pitch < LINE_BYTES ? APART_STEPS : STRETCH_STEPS) + n / w * STRETCH_STEPS;
	int64_t cost = n * element / REACH_BYTES_PER_STEP + n / stretch * STRETCH_STEPS;
	/* Packed elements are put together, or taken apart: word by word where the words are not whole. */
	if (lanes > 1 && (packed->shape.n % lanes || n < tensor_elements(tensor)))
		return cost + n * APART_STEPS;
	return lanes > 1 ? 2 * cost : cost;
}

/* Elements that lie together, at most a plane of H x W. */
static int64_t stretches(const struct tensor *tensor)
{
	const struct tensor_packed *packed = &tensor->packed;
	int64_t w = packed->shape.w, h = packed->shape.h, n = tensor_elements(tensor);
	if (packed->stride.w > 1 && w > 1)
		return n;
	return n / (packed->stride.h == w ? h * w : w);
}

int64_t op_alias_cost(const struct tensor *a, const struct tensor *b)
{
	enum { WALK_STEPS = 120 };
	if (a == b || tensor_root(a) != tensor_root(b) || tensor_offset(a) >= tensor_end(b) ||
	    tensor_offset(b) >= tensor_end(a))
		return 0;
	return WALK_STEPS * (stretches(a) + stretches(b));
}

/* Whether it was written, unless that is known, and whether it is damaged, where anything is. */
static int64_t look_cost(const struct device *device, const struct tensor *tensor, int64_t n)
{
	int64_t looks = !tensor_all_written(tensor) + (device->local.n_damaged > 0);
	double share = (double)n / (double)tensor_elements(tensor);
	if (!looks)
		return 0;
	return looks * (int64_t)(share * (double)written_scan_cost(TENSOR_PLACE(tensor)));
}

/* What is read is first looked at. */
static int64_t read_cost(const struct device *device, const struct tensor *tensor, int64_t n)
{
	return op_reach_cost(tensor, n) + look_cost(device, tensor, n) + page_cost_read(device, tensor, 0, n);
}

/* A message's payload has just come by the cache, or is about to go there, and is copied at 16 GB/s where it lies
 * together. */
static int64_t copy_cost(const struct op *op, int64_t n)
{
	enum { MESSAGE_BYTES_PER_STEP = 8 };
	const struct tensor_packed *packed = &op->tensor->packed;
	bool is_dense = packed->lanes == 1 && packed->stride.w == 1;
	int64_t bytes = n * packed->word_bytes, cost = op_reach_cost(op->tensor, n);
	if (!is_dense || op->system.segment)
		return cost;
	return cost - bytes / REACH_BYTES_PER_STEP + bytes / MESSAGE_BYTES_PER_STEP;
}

/* Neither is read or written more than there is: those that say so are refused later. */
static int64_t dma_cost(const struct device *device, const struct op *op)
{
	int64_t n = tensor_elements(op->tensor), first = 0;
	if ((op->kind == OP_WRITE || op->kind == OP_READ) && op->count >= 0 && op->count < n) {
		n = op->count;
		first = op->first;
	}
	if (op->kind == OP_READ)
		return copy_cost(op, n) + look_cost(device, op->tensor, n) +
		       page_cost_read(device, op->tensor, first, n);
	int64_t changes = changes_cost(device, op->tensor, n) + page_cost_write(device, op->tensor, first, n);
	if (op->kind == OP_WRITE)
		return copy_cost(op, n) + changes;
	int64_t cost = op_reach_cost(op->tensor, n) + changes;
	if (op->kind == OP_COPY)
		cost += read_cost(device, op->source, tensor_elements(op->source)) +
			op_alias_cost(op->tensor, op->source);
	return cost;
}

static bool is_output(const struct op *op, unsigned i)
{
	const struct roles *roles = roles_of(op->kernel);
	unsigned number;
	int role = roles_find(roles, op->operands[i].role, &number);
	return role >= 0 && roles->all[role].output;
}

static int64_t aliases_cost(const struct op *op)
{
	int64_t cost = 0;
	for (unsigned i = 0; i < op->n_operands; i++) {
		bool out = is_output(op, i);
		for (unsigned j = 0; out && j < op->n_operands; j++)
			cost += op_alias_cost(op->operands[i].tensor, op->operands[j].tensor);
	}
	return cost;
}

/* An output of few elements may destroy tensors of any number of stretches; only an unchecked one lies over
 * others. */
static int64_t destroy_cost(const struct tensor *out)
{
	enum { DESTROY_STEPS = INT32_MAX };
	return meetings_first(out) ? DESTROY_STEPS : 0;
}

static int64_t run_cost(struct device *device, const struct op *op)
{
	int64_t elements = aliases_cost(op);
	const struct tensor *packed;
	int64_t steps = op_kernel_steps(device, op, &packed);
	for (unsigned i = 0; i < op->n_operands; i++) {
		const struct tensor *tensor = op->operands[i].tensor;
		int64_t n = tensor_elements(tensor);
		if (is_output(op, i)) {
			elements += op_reach_cost(tensor, n) + changes_cost(device, tensor, n) +
				    page_cost_write(device, tensor, 0, n) + destroy_cost(tensor);
			continue;
		}
		elements += tensor == packed ? look_cost(device, tensor, n) : read_cost(device, tensor, n);
	}
	return __builtin_add_overflow(steps, elements, &steps) ? INT64_MAX : steps;
}

int64_t op_cost(struct device *device, const struct op *op)
{
	return op->kind == OP_RUN ? run_cost(device, op) : dma_cost(device, op);
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
	npumem_error_set(context->error, NPUMEM_FAILED_PRECONDITION,
			 "%s is sealed: it is read-only until it is freed", name);
	npumem_error_text(context->error, "tensor", name);
	return NPUMEM_FAILED_PRECONDITION;
}

int op_look_shared(const struct device *device, const struct op *op, const struct tensor *a,
		   const struct tensor *b, bool *shares, struct intersect_range *first)
{
	enum { LOOK_STEPS = 100 };
	enum intersect_answer answer;
	struct intersect walk;
	int64_t steps = LOOK_STEPS;
	intersect_begin(&walk, &device->options.geometry, TENSOR_PLACE(a), KINDS_DATA, TENSOR_PLACE(b),
			KINDS_DATA);
	for (; (answer = intersect_step(&walk, &steps, first)) == INTERSECT_PAUSE; steps = LOOK_STEPS)
		if (!kernel_wanted(op->progress))
			return NPUMEM_CANCELLED;
	*shares = answer == INTERSECT_RANGE;
	return 0;
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
	if (op->is_dry)
		return 0;
	int64_t lost, damaged = written_damaged(device, tensor, first, count, &watch, &lost);
	if (lost)
		return written_refuse_lost(tensor, lost, context);
	if (damaged)
		op_warn(op, "%s is damaged: %" PRId64 " bytes were destroyed by a kernel and not written since",
			error_context_name(context, tensor, name), damaged);
	if (device->options.uninitialized == NPUMEM_ALLOW)
		return 0;
	if (device->options.uninitialized == NPUMEM_REFUSE)
		return written_check(device, tensor, first, count, &watch, context);
	struct npumem_error ignored = {.status = 0};
	struct error_context quiet = {.error = &ignored, .name = context->name, .ctx = context->ctx};
	int status = written_check(device, tensor, first, count, &watch, &quiet);
	if (status == NPUMEM_CANCELLED)
		return status;
	if (status)
		op_warn(op, "%.*s", (int)sizeof(op->warning) - 1, ignored.message);
	return 0;
}
