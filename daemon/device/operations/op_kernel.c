/* Running a kernel: the rules between its tensors are applied, and it runs on what op_operands.c makes of them. */
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>

#include "daemon/device/kernel_support/walk.h"
#include "daemon/device/operations/lockstep.h"
#include "daemon/device/operations/op_call.h"
#include "daemon/device/operations/op_operands.h"
#include "daemon/device/operations/roles.h"
#include "daemon/device/tensors/written.h"

static int look_input(const struct device *device, struct op *op, struct tensor *tensor, const char *role,
		      const struct error_context *context)
{
	char name[ERROR_CONTEXT_NAME_BYTES];
	int64_t elements = tensor_elements(tensor);
	const struct written_watch watch = op_watch(op);
	int64_t lost, damaged = written_damaged(device, tensor, 0, elements, &watch, &lost);
	if (!damaged || lost)
		return op_look_readable(device, op, tensor, 0, elements, context);
	error_context_name(context, tensor, name);
	npumem_error_set(context->error, NPUMEM_DATA_LOST,
			 "%s (role %s) is damaged: %" PRId64
			 " bytes were destroyed by a kernel; write it again first",
			 name, role, damaged);
	npumem_error_text(context->error, "tensor", name);
	npumem_error_number(context->error, "damaged_bytes", damaged);
	return NPUMEM_DATA_LOST;
}

static int check_output(struct tensor *tensor, const char *role, const struct error_context *context)
{
	char name[ERROR_CONTEXT_NAME_BYTES];
	int status = op_check_writable(tensor, context);
	if (status || !tensor_root(tensor)->dma_only)
		return status;
	error_context_name(context, tensor, name);
	npumem_error_set(context->error, NPUMEM_FAILED_PRECONDITION,
			 "%s (role %s) is dma_only: no kernel may write it", name, role);
	npumem_error_text(context->error, "tensor", name);
	return NPUMEM_FAILED_PRECONDITION;
}

/* An output may be the very tensor of an input where elements map one to one; sharing bytes otherwise is refused.
 */
static int look_aliases(const struct device *device, const struct op *op, unsigned out,
			const struct error_context *context)
{
	const struct op_work *work = op->work;
	struct intersect_range range;
	bool shares;
	const struct tensor *a = work->tensors[out];
	for (unsigned i = 0; i < work->n; i++) {
		const struct tensor *b = work->tensors[i];
		if (i == out || (work->output[i] && i > out) || tensor_root(a) != tensor_root(b))
			continue;
		bool is_same = !work->output[i] && op_operands_are_same(a, b);
		if (is_same && work->kernel->in_place && tensor_dtype(a) == tensor_dtype(b))
			continue;
		int status = op_look_shared(device, op, a, b, &shares, &range);
		if (status)
			return status;
		if (!shares)
			continue;
		if (is_same)
			return npumem_error_set(context->error, NPUMEM_INVALID,
						"kernel %s cannot work in place: %s and %s are one tensor",
						work->call.row->name, work->names[out], work->names[i]);
		return npumem_error_set(context->error, NPUMEM_INVALID,
					"kernel %s: %s and %s share bytes without being one tensor (NPU %" PRId64
					", bytes %" PRId64 " to %" PRId64 ")",
					work->call.row->name, work->names[out], work->names[i], range.npu,
					range.offset, range.offset + range.bytes - 1);
	}
	return 0;
}

uint64_t op_scratch_bytes(const struct op *op)
{
	if (op->kind != OP_RUN || !op->work)
		return 0;
	return sizeof(*op->work) + lockstep_bytes(&op->work->victims) + op->work->memory_bytes +
	       (op->work->pack_bytes ? packs_bytes(op->work->pack_bytes) : 0);
}

static int check_outputs(struct device *device, struct op_work *work, const struct error_context *context)
{
	int status = 0;
	for (unsigned i = 0; i < work->n && !status; i++) {
		if (!work->output[i])
			continue;
		status = check_output(work->tensors[i], work->names[i], context);
		if (!status)
			status = lockstep_check(device, work->tensors[i], &work->victims, context);
	}
	return status;
}

static int look_run(const struct device *device, struct op *op, const struct error_context *context)
{
	const struct op_work *work = op->work;
	int status = 0;
	for (unsigned i = 0; i < work->n && !status; i++)
		if (work->output[i])
			status = look_aliases(device, op, i, context);
		else if (work->gathered_as[i] == i && !op->is_dry)
			status = look_input(device, op, work->tensors[i], work->names[i], context);
	return status;
}

/* Of the roles that the kernel packs: PACKS_TENSORS at most; how many. */
static unsigned packed_tensors(const struct op_work *work, struct tensor **tensors)
{
	unsigned packed[PACKS_TENSORS], n = op_operands_packed(work, packed);
	for (unsigned i = 0; i < n; i++)
		tensors[i] = work->tensors[packed[i]];
	return n;
}

static void key_of(const struct op_work *work, struct pack_key *key)
{
	struct tensor *tensors[PACKS_TENSORS];
	unsigned n = packed_tensors(work, tensors);
	packs_key(key, &work->call, tensors, n);
}

static bool pack_is_current(const struct op_work *work)
{
	struct tensor *tensors[PACKS_TENSORS];
	unsigned n = packed_tensors(work, tensors);
	return packs_is_current(work->pack, tensors, n);
}

/* That of the elements that the tensors have now. */
static void find_pack(struct device *device, struct op_work *work)
{
	struct pack_key key;
	if (!work->pack_bytes)
		return;
	key_of(work, &key);
	work->pack = packs_find(&device->packs, &key);
}

static void give_back_pack(struct device *device, struct op_work *work)
{
	packs_done(&device->packs, work->pack);
	work->pack = NULL;
}

static int plan_work(const struct device *device, const struct op *op, struct op_work *work,
		     const struct error_context *context)
{
	int status = op_call_take(device, op, work, context);
	if (!status)
		status = work->kernel->check(&work->call, context->error);
	if (!status && work->kernel->plan)
		work->kernel->plan(&work->call);
	return status;
}

static int plan_run(struct device *device, struct op *op, const struct error_context *context)
{
	struct op_work *work = heap_alloc(device->heap, sizeof(*work));
	if (!work)
		return heap_exhausted(context->error);
	int status = plan_work(device, op, work, context);
	if (!status)
		status = op_operands_plan(work, context);
	if (status)
		heap_free(device->heap, work);
	else
		op->work = work;
	return status;
}

size_t op_plan(struct device *device, struct op *op)
{
	struct npumem_error ignored;
	const struct error_context quiet = {.error = &ignored};
	npumem_error_clear(&ignored);
	return op->kind == OP_RUN && !plan_run(device, op, &quiet) ? sizeof(*op->work) : 0;
}

static int check_run(struct device *device, struct op *op, const struct error_context *context)
{
	int status = op->work ? 0 : plan_run(device, op, context);
	if (!status)
		status = check_outputs(device, op->work, context);
	if (status)
		return status;
	lockstep_touch(&op->work->victims);
	find_pack(device, op->work);
	return 0;
}

static void begin_progress(const struct op_work *work)
{
	int64_t elements = 0;
	for (unsigned i = 0; i < work->n; i++)
		elements += work->output[i] ? tensor_elements(work->tensors[i]) : 0;
	if (work->call.progress)
		kernel_begin(work->call.progress, elements);
}

static int cancelled(const struct error_context *context, const char *left)
{
	return npumem_error_set(context->error, NPUMEM_CANCELLED, "the run was cancelled; %s", left);
}

/* A packed tensor may be in the place of an output, too: it has other elements soon, and the version that it
 * then has is its version already. */
static bool writes_packed(const struct op_work *work, struct tensor *const *packed, unsigned n)
{
	for (unsigned i = 0; i < work->n; i++)
		for (unsigned k = 0; work->output[i] && k < n; k++)
			if (tensor_root(work->tensors[i]) == tensor_root(packed[k]))
				return true;
	return false;
}

/* After the inputs were gathered. False where it was stopped. */
static bool make_pack(struct device *device, struct op_work *work)
{
	if (!work->pack || work->call.pack)
		return true;
	if (!work->kernel->pack(&work->call, pack_data(work->pack)))
		return false;
	work->call.pack = pack_data(work->pack);
	struct tensor *packed[PACKS_TENSORS];
	unsigned n = packed_tensors(work, packed);
	if (!writes_packed(work, packed, n))
		packs_keep(&device->packs, work->pack, packed, n);
	return true;
}

static int run_gathered(struct device *device, struct op *op, const struct error_context *context)
{
	struct op_work *work = op->work;
	/* Where it is stopped the kernel stops at once. */
	if (!op_operands_gather(device, work) || !make_pack(device, work))
		return cancelled(context, "nothing was written");
	bool is_direct = op_operands_are_direct(work);
	int status = work->kernel->check_data ? work->kernel->check_data(&work->call, context->error) : 0;
	if (!status && is_direct)
		status = op_begins(op, context);
	if (status)
		return status;
	walk_run(work->kernel, &work->call);
	if (!is_direct)
		status = op_begins(op, context);
	if (status)
		return status;
	/* The last look: from here on all is written, however long that takes. */
	if (!kernel_wanted(op->progress)) {
		op_operands_tear(device, work);
		op->torn = true;
		return cancelled(context, "its outputs count as never written");
	}
	op->counts = work->call.counts;
	op_operands_scatter(device, work);
	lockstep_damage(device, op, &work->victims);
	return 0;
}

static int no_memory(const struct error_context *context, size_t bytes)
{
	return npumem_error_set(context->error, NPUMEM_RESOURCE_EXHAUSTED,
				"the daemon has no %zu bytes of host memory for this kernel", bytes);
}

/* What it takes to make the pack, if that has to be made. */
static int64_t pack_steps_of(const struct op_work *work)
{
	enum { PACK_STEPS = 2 };
	struct tensor *tensors[PACKS_TENSORS];
	int64_t elements = 0, steps = work->kernel->pack_steps ? work->kernel->pack_steps : PACK_STEPS;
	unsigned n = work->pack_bytes && !work->pack ? packed_tensors(work, tensors) : 0;
	for (unsigned i = 0; i < n; i++)
		elements += tensor_elements(tensors[i]);
	return elements * steps;
}

static int64_t steps_of(const struct device *device, struct op_work *work)
{
	/* Where an operand lies is known only when it runs, but on how many NPUs. */
	for (unsigned i = 0; i < work->n; i++) {
		work->operands[i].features.start_npu = tensor_start_npu(work->tensors[i]);
		work->operands[i].features.n_npus = device->options.geometry.n_npus;
	}
	int64_t steps = work->kernel->steps(&work->call), pack = pack_steps_of(work);
	return __builtin_add_overflow(steps, pack, &steps) ? INT64_MAX : steps;
}

/* Of an operation that was not checked: parameters decide about windows and groups, so they are read first.
 * Without operands or parameters that the kernel takes the operation will be refused, which is short. */
static int64_t steps_before_check(const struct device *device, const struct op *op)
{
	struct npumem_error ignored;
	const struct error_context quiet = {.error = &ignored};
	struct op_work work;
	npumem_error_clear(&ignored);
	if (plan_work(device, op, &work, &quiet))
		return 0;
	work.pack = NULL;
	work.pack_bytes = work.kernel->pack_bytes ? work.kernel->pack_bytes(&work.call) : 0;
	return steps_of(device, &work);
}

int64_t op_kernel_steps(struct device *device, const struct op *op, const struct tensor **packed)
{
	struct op_work *work = op->work;
	*packed = NULL;
	if (!work)
		return steps_before_check(device, op);
	if (work->pack) {
		struct tensor *tensors[PACKS_TENSORS] = {NULL};
		packed_tensors(work, tensors);
		*packed = tensors[0];
	}
	return steps_of(device, work);
}

/* The pack that was kept, which the call then has, or a new one. An earlier operation of a chain may have written
 * the tensor, or made the pack, since the check. 0 or RESOURCE_EXHAUSTED. */
static int take_pack(struct device *device, struct op_work *work, const struct error_context *context)
{
	if (!work->pack_bytes)
		return 0;
	if (work->pack && !pack_is_current(work))
		give_back_pack(device, work);
	if (!work->pack)
		find_pack(device, work);
	if (work->pack) {
		work->call.pack = pack_data(work->pack);
		return 0;
	}
	struct pack_key key;
	key_of(work, &key);
	work->pack = packs_new(&device->packs, &key, work->pack_bytes);
	return work->pack ? 0 : no_memory(context, work->pack_bytes);
}

static int run_kernel(struct device *device, struct op *op, const struct error_context *context)
{
	struct op_work *work = op->work;
	int status = take_pack(device, work, context);
	if (status)
		return status;
	size_t bytes = op_operands_bytes(work);
	void *memory = heap_alloc(device->heap, bytes);
	if (memory) {
		op_operands_spread(device, work, memory);
		work->call.progress = op->progress;
		begin_progress(work);
		status = run_gathered(device, op, context);
	} else {
		status = no_memory(context, bytes);
	}
	give_back_pack(device, work);
	heap_free(device->heap, memory);
	return status;
}

static struct op_access kernel_access(struct tensor *tensor, bool output)
{
	return (struct op_access){tensor, output, output ? KINDS_FOOTPRINT : KINDS_DATA};
}

/* Of a run that was checked they are known, in the order of roles. An operand of a role that the kernel has not is
 * refused when the run is checked: until then it is accessed as well, so that its tensor stays. */
static unsigned kernel_accesses(const struct op *op, struct op_access *accesses)
{
	const struct op_work *work = op->work;
	const struct roles *roles = roles_of(op->kernel);
	unsigned n = 0, number;
	for (; work && n < work->n; n++)
		accesses[n] = kernel_access(work->tensors[n], work->output[n]);
	for (unsigned i = 0; !work && i < op->n_operands && i < NPUMEM_OPERANDS_MAX; i++) {
		int role = roles_find(roles, op->operands[i].role, &number);
		accesses[n++] = kernel_access(op->operands[i].tensor, role >= 0 && roles->all[role].output);
	}
	return n;
}

static void deinit_run(struct device *device, struct op *op)
{
	if (op->work) {
		lockstep_deinit(device, &op->work->victims);
		give_back_pack(device, op->work);
	}
	heap_free(device->heap, op->work);
	op->work = NULL;
}

const struct op_rule op_rule_run = {"run",	OP_COMPUTE,	 check_run, look_run,
				    run_kernel, kernel_accesses, deinit_run};
