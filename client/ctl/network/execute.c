/* Executes a network. Invariant: operations take effect in the order of the network, so an error names the first
 * that is wrong, and those before it have run. What goes in one message is enqueue.c's. */
#include "client/ctl/network/networks.h"

#include <inttypes.h>
#include <string.h>

#include "client/ctl/core/memory.h"

int execute_failed(struct execute *execute, size_t i, const struct npumem_error *why)
{
	const struct network *network = execute->network;
	if (execute->failed == EXECUTE_NONE)
		execute->failed = i;
	network_about(network, &network->operations[i], why, &execute->ctl->error);
	return CTL_FAILED;
}

int execute_init(struct execute *execute, struct ctl *ctl, const struct network *network)
{
	*execute = (struct execute){.ctl = ctl, .network = network, .failed = EXECUTE_NONE};
	if (npumem_info(ctl->npumem, &execute->info, &ctl->error))
		return CTL_FAILED;
	execute->tensors = memory_new(network->n_tensors, sizeof(*execute->tensors));
	execute->results = memory_new(network->n_operations, sizeof(*execute->results));
	execute->batch = memory_new(1, sizeof(*execute->batch));
	execute->batch->npumem = ctl->npumem;
	return CTL_OK;
}

void execute_deinit(struct execute *execute)
{
	/* A connection runs many networks, and shares only so many segments. */
	if (execute->batch->segment)
		npumem_segment_close(execute->batch->npumem, execute->batch->segment, NULL);
	npumem_release(execute->info);
	if (execute->list)
		npumem_drop_list(execute->batch->npumem, execute->list, NULL);
}

/* ---- tensors that come and go ---- */

/* How a tensor is placed: as the network says, or in another way. One with views, and a matrix, keep their layout:
 * what is a slice of it depends on that. */
static void spec_of(const struct execute *execute, const struct network_tensor *tensor, struct npumem_spec *spec)
{
	*spec = tensor->spec;
	if (!execute->variant)
		return;
	spec->address = NPUMEM_ANY;
	spec->start_npu = execute->variant->start_npu;
	if (tensor->has_views || spec->layout == NPUMEM_MATRIX || spec->rows)
		return;
	variant_place(execute->variant, &execute->info->geometry, &tensor->spec, spec);
}

bool execute_is_label(const char *name)
{
	size_t n = 0;
	while (name[n] >= ' ' && name[n] <= '~')
		n++;
	return !name[n] && n <= NPUMEM_NAME_BYTES_MAX;
}

/* What of a network's name a label may have. */
static const char *label_of(const char *name, char label[NPUMEM_NAME_BYTES_MAX + 1])
{
	size_t n = 0;
	for (; name[n] && n < NPUMEM_NAME_BYTES_MAX; n++)
		label[n] = (char)(name[n] >= ' ' && name[n] <= '~' ? name[n] : '_');
	label[n] = 0;
	return label;
}

/* The device has no tensor of the name for a moment: it is not kept yet. */
static int check_name(struct execute *execute, size_t i, const char *name)
{
	const struct npumem_tensor *other;
	struct npumem_error why = {.status = 0};
	if (!execute_is_label(name))
		npumem_error_set(&why, NPUMEM_INVALID,
				 "its name is kept on the device: at most %d bytes of printable ASCII",
				 NPUMEM_NAME_BYTES_MAX);
	else if (!npumem_open_tensor(execute->ctl->npumem, name, &other, NULL))
		npumem_error_set(&why, NPUMEM_ALREADY_EXISTS, "the device has a tensor of this name");
	return why.status ? execute_failed(execute, i, &why) : CTL_OK;
}

static int alloc(struct execute *execute, size_t i)
{
	const struct network_operation *operation = &execute->network->operations[i];
	const struct network_tensor *tensor = &execute->network->tensors[operation->tensor];
	struct npumem_allocation allocation = NPUMEM_ALLOCATION_INIT;
	char label[NPUMEM_NAME_BYTES_MAX + 1];
	struct npumem_error why;
	int code = execute->n_frees ? enqueue_flush(execute) : CTL_OK;
	if (code)
		return code;
	spec_of(execute, tensor, &allocation.spec);
	/* A comparison leaves nothing behind. */
	allocation.name = tensor->keep && !execute->expect && !execute->dry_costs ? tensor->name : NULL;
	if (tensor->keep && execute->dry_costs && check_name(execute, i, tensor->name))
		return CTL_FAILED;
	if (!allocation.name)
		allocation.label = label_of(tensor->name, label);
	allocation.reuse = tensor->reuse;
	allocation.dma_only = tensor->dma_only;
	allocation.pinned = tensor->pinned;
	if (npumem_alloc(execute->ctl->npumem, &allocation, 1, &execute->tensors[operation->tensor], &why))
		return execute_failed(execute, i, &why);
	return CTL_OK;
}

static int open_or_view(struct execute *execute, size_t i)
{
	const struct network_operation *operation = &execute->network->operations[i];
	const struct network_tensor *tensor = &execute->network->tensors[operation->tensor];
	const struct npumem_tensor **out = &execute->tensors[operation->tensor];
	struct npumem *npumem = execute->ctl->npumem;
	struct npumem_error why;
	int status;
	if (operation->kind == NETWORK_OPEN) {
		status = npumem_open_tensor(npumem, tensor->daemon_name, out, &why);
	} else {
		uint64_t base = execute->tensors[tensor->base]->handle;
		status = tensor->is_format ? npumem_view_format(npumem, base, NULL, tensor->frac_bits, out, &why)
			 : tensor->is_slice
				 ? npumem_view(npumem, base, NULL, &tensor->from, &tensor->to, out, &why)
				 : npumem_reshape(npumem, base, NULL, &tensor->shape, out, &why);
	}
	return status ? execute_failed(execute, i, &why) : CTL_OK;
}

/* Frees go together; nothing uses the tensor any more. Views go with their base. */
static int free_later(struct execute *execute, size_t i)
{
	const struct network *network = execute->network;
	int tensor = network->operations[i].tensor;
	if (execute->dry_costs && network->tensors[tensor].is_opened)
		return CTL_OK;
	if (execute->n_frees == EXECUTE_FREES) {
		int code = enqueue_flush(execute);
		if (code)
			return code;
	}
	execute->frees[execute->n_frees++] = tensor;
	return CTL_OK;
}

static int seal(struct execute *execute, size_t i)
{
	const struct network_operation *operation = &execute->network->operations[i];
	struct npumem_error why;
	int code = enqueue_flush(execute);
	/* Others' tensors are sealed by the run alone. */
	if (execute->dry_costs && execute->network->tensors[operation->tensor].is_opened)
		return code;
	uint64_t handle = execute->tensors[operation->tensor]->handle;
	/* Nothing has written it, and only what was written is sealed. */
	if (!code && execute->dry_costs && npumem_fill(execute->ctl->npumem, handle, 0, &why))
		return execute_failed(execute, i, &why);
	if (!code && npumem_seal(execute->ctl->npumem, handle, &why))
		return execute_failed(execute, i, &why);
	return code;
}

static int expect(struct execute *execute, size_t i)
{
	if (!execute->expect)
		return CTL_OK;
	int code = enqueue_flush(execute);
	execute->is_split = true;
	return code ? code : execute->expect(execute->context, i);
}

/* ---- all of it ---- */

static int step(struct execute *execute, size_t i)
{
	enum network_kind kind = execute->network->operations[i].kind;
	if (execute->once && execute->once[i] && (execute->samples->at || kind == NETWORK_FREE))
		return CTL_OK;
	switch (kind) {
	case NETWORK_ALLOC:
		return alloc(execute, i);
	case NETWORK_OPEN:
	case NETWORK_VIEW:
		return open_or_view(execute, i);
	case NETWORK_FREE:
		return free_later(execute, i);
	case NETWORK_SEAL:
		return seal(execute, i);
	case NETWORK_EXPECT:
		return expect(execute, i);
	default:
		return enqueue(execute, i);
	}
}

int execute_run(struct execute *execute)
{
	const struct network *network = execute->network;
	int code = CTL_OK;
	bar_follow(execute->ctl, &execute->bar);
	execute->bar.total = network->n_operations;
	execute->group_end = 0;
	execute->is_split = execute->is_whole = false;
	if (execute->list)
		code = enqueue_again(execute);
	for (size_t i = 0; i < network->n_operations && !code && !execute->list; i++)
		code = step(execute, i);
	/* Also where an operation failed: those before it are to take effect. */
	execute->is_whole = !code && !execute->is_split;
	int end = execute->list ? CTL_OK : enqueue_flush(execute);
	bar_end(&execute->bar);
	return code ? code : end;
}

int execute_let_go(struct execute *execute)
{
	const struct network *network = execute->network;
	int code = CTL_OK;
	for (size_t i = 0; i < network->n_operations && !code; i++)
		if (network->operations[i].kind == NETWORK_FREE && execute->once[i])
			code = free_later(execute, i);
	/* A batch that is kept has run. */
	batch_empty(execute->batch);
	return code ? code : enqueue_flush(execute);
}

int execute_reset(struct execute *execute)
{
	const struct network *network = execute->network;
	struct npumem_error why;
	int code = CTL_OK;
	batch_empty(execute->batch);
	execute->n_frees = 0;
	execute->failed = EXECUTE_NONE;
	for (size_t i = 0; i < network->n_tensors; i++) {
		const struct npumem_tensor *tensor = execute->tensors[i];
		if (!tensor)
			continue;
		bool ours = network->tensors[i].base == NETWORK_NONE && !network->tensors[i].is_opened;
		/* Its views are gone with it, wherever they are in the list. */
		if (ours && npumem_free(execute->ctl->npumem, &tensor->handle, 1, &why))
			code = ctl_fail(execute->ctl, "free: %.400s", why.message);
		npumem_release(tensor);
		execute->tensors[i] = NULL;
	}
	memset(execute->results, 0, network->n_operations * sizeof(*execute->results));
	return code;
}

void dry_run(struct ctl *ctl, const struct network *network, struct dry *dry)
{
	struct npumem_error before = ctl->error;
	struct execute execute;
	*dry = (struct dry){.costs = memory_new(network->n_operations, sizeof(*dry->costs))};
	int code = execute_init(&execute, ctl, network);
	if (!code) {
		execute.dry_costs = dry->costs;
		dry->is_checked = true;
		code = execute_run(&execute);
	}
	if (code)
		dry->why = ctl->error;
	if (dry->is_checked) {
		/* What it cannot free goes with the connection. */
		execute_reset(&execute);
		execute_deinit(&execute);
	}
	ctl->error = before;
}

static bool opens_any(const struct network *network)
{
	for (size_t i = 0; i < network->n_operations; i++)
		if (network->operations[i].kind == NETWORK_OPEN)
			return true;
	return false;
}

void dry_run_alone(const struct ctl *ctl, const struct network *network, const struct npumem_geometry *geometry,
		   struct dry *dry)
{
	struct ctl own = {.json = ctl->json};
	char address[128];
	*dry = (struct dry){.why = {.status = 0}};
	if (opens_any(network)) {
		npumem_error_set(&dry->why, NPUMEM_NOT_FOUND,
				 "it opens tensors of a device: npumemctl submit --dry-run checks it there");
		return;
	}
	snprintf(address, sizeof(address), "spawn:--npus %" PRId64 " --npu-bytes %" PRId64 " --banks %" PRId64,
		 geometry->n_npus, geometry->npu_bytes, geometry->n_banks);
	if (!npumem_open(address, NULL, &own.npumem, &dry->why))
		dry_run(&own, network, dry);
	npumem_close(own.npumem);
}

/* What fits one message (npumem_submit). Invariant: n, n_fields and n_operands are within the daemon's caps, so
 * that it never refuses a batch for its size; arrays do not overlap in the segment. */

enum {
	BATCH_OPERATION_FIELDS = 12, /* itself, its group, tensor, segment, offset, … */
	BATCH_OPERAND_FIELDS = 4,    /* itself, role, tensor, handle */
	BATCH_PARAM_FIELDS = 3,	     /* itself, key, values; of these each byte counts: */
	BATCH_VALUE_FIELDS = 10,
	BATCH_ALIGN_BYTES = 64,
};

unsigned batch_run_fields(unsigned n_operands, const struct npumem_param *params, unsigned n_params)
{
	unsigned n = BATCH_OPERATION_FIELDS + n_operands * BATCH_OPERAND_FIELDS;
	for (unsigned i = 0; i < n_params; i++)
		n += BATCH_PARAM_FIELDS + params[i].n_values * BATCH_VALUE_FIELDS;
	return n;
}

size_t batch_array_bytes(size_t bytes)
{
	return (bytes + BATCH_ALIGN_BYTES - 1) / BATCH_ALIGN_BYTES * BATCH_ALIGN_BYTES;
}

bool batch_fits(const struct batch *batch, unsigned n, unsigned n_fields, size_t n_operands, size_t bytes)
{
	size_t room = batch->segment ? batch->segment->bytes : 0;
	return batch->n + n <= BATCH_OPERATIONS && batch->n_fields + n_fields <= BATCH_FIELDS &&
	       batch->n_operands + n_operands <= sizeof(batch->operands) / sizeof(batch->operands[0]) &&
	       bytes <= room - batch->used;
}

int batch_reserve(struct batch *batch, size_t bytes, struct npumem_error *error)
{
	size_t wanted = bytes > BATCH_SEGMENT_BYTES ? bytes : BATCH_SEGMENT_BYTES;
	int status = 0;
	if (batch->segment && bytes <= batch->segment->bytes)
		return 0;
	if (batch->segment)
		status = npumem_segment_close(batch->npumem, batch->segment, error);
	batch->segment = NULL;
	return status ? status : npumem_segment_create(batch->npumem, wanted, &batch->segment, error);
}

size_t batch_take(struct batch *batch, size_t bytes)
{
	size_t offset = batch->used;
	batch->used += batch_array_bytes(bytes);
	return offset;
}

struct npumem_operation *batch_add(struct batch *batch, size_t source, unsigned n_fields)
{
	struct npumem_operation *operation = &batch->operations[batch->n];
	*operation = (struct npumem_operation){.size = sizeof(*operation)};
	batch->sources[batch->n++] = source;
	batch->n_fields += n_fields;
	return operation;
}

void batch_empty(struct batch *batch)
{
	batch->n = batch->n_fields = 0;
	batch->n_operands = batch->used = 0;
}
