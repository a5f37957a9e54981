/* Owns the local memory, on huge pages where there are any. */
#include "tests/bench/support/inside.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "tests/bench/support/peer.h"

static void expect(const struct inside *inside, int status)
{
	if (!status)
		return;
	errno = 0;
	peer_die(inside->error.message);
}

void inside_open(struct inside *inside, const char *isa)
{
	struct device_options options = {.rounding = NPUMEM_CONVERGENT,
					 .pack_bytes = 64 << 20}; /* as npumemd has */
	*inside = (struct inside){.device = NULL};
	inside->context.error = &inside->error;
	npumem_geometry_default(&options.geometry);
	options.isa = isa ? isa_parse(isa) : ISA_ANY;
	inside->memory_bytes = device_memory_bytes(&options.geometry);
	inside->memory = mmap(NULL, inside->memory_bytes, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (inside->memory == MAP_FAILED)
		peer_die("no memory");
	madvise(inside->memory, inside->memory_bytes, MADV_HUGEPAGE);
	if (device_new(&options, &heap_libc, inside->memory, &inside->device))
		peer_die("no device");
}

void inside_close(struct inside *inside)
{
	device_free(inside->device);
	munmap(inside->memory, inside->memory_bytes);
}

void inside_run(void *inside_op)
{
	struct inside_op *op = inside_op;
	struct inside *inside = op->inside;
	int status = op_check(inside->device, &op->op, &inside->context);
	if (!status)
		status = op_run(inside->device, &op->op, &inside->context);
	op_deinit(inside->device, &op->op);
	expect(inside, status);
}

void inside_transfer(struct inside *inside, struct tensor *tensor, enum op_kind kind, void *data, size_t bytes,
		     struct inside_op *op)
{
	*op = (struct inside_op){
		.inside = inside,
		.op = {.kind = kind,
		       .tensor = tensor,
		       .count = -1,
		       .system = {.base = data, .bytes = bytes, .segment = (struct segment *)data}}};
}

static struct tensor *place(struct inside *inside, const struct call *call, unsigned i)
{
	struct device_request request = {.spec = call->tensors[i].spec};
	struct tensor *tensor;
	struct inside_op write;
	void *data = call_data(call, i);
	expect(inside, device_alloc(inside->device, &request, 1, &tensor, &inside->context));
	inside_transfer(inside, tensor, OP_WRITE, data, call->tensors[i].bytes, &write);
	inside_run(&write);
	free(data);
	return tensor;
}

void inside_place(struct inside *inside, const struct call *call, struct tensor *first, struct inside_op *op)
{
	*op = (struct inside_op){.inside = inside};
	for (unsigned i = 0; i < call->n_tensors; i++) {
		memcpy(op->operands[i].role, call->tensors[i].role, sizeof(op->operands[i].role));
		op->operands[i].tensor = i == 0 && first ? first : place(inside, call, i);
		if (i > 0 || !first)
			op->tensors[op->n_own++] = op->operands[i].tensor;
	}
	memcpy(op->params, call->params, sizeof(op->params));
	op->op = (struct op){.kind = OP_RUN,
			     .kernel = npumem_kernel_by_name(call->kernel)->number,
			     .operands = op->operands,
			     .n_operands = call->n_tensors,
			     .params = op->params,
			     .n_params = call->n_params};
}

struct tensor *inside_out(const struct inside_op *op, const struct call *call)
{
	return op->operands[call->n_tensors - 1].tensor;
}

void inside_drop(struct inside_op *op)
{
	while (op->n_own)
		device_release(op->inside->device, op->tensors[--op->n_own], NULL, NULL);
}
