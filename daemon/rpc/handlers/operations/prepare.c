/* Messages to ops. Counts are checked against the arrays of struct prepare_op before anything is put there. */
#include "daemon/rpc/handlers/operations/prepare.h"

#include <inttypes.h>
#include <stddef.h>

#include "daemon/device/operations/roles.h"
#include "proto/wire.h"
#include "daemon/service/segments.h"
#include "proto/convert.h"

/* What the counts of a message are checked against. */
_Static_assert(sizeof(((struct prepare_op *)0)->operands) / sizeof(struct op_operand) == NPUMEM_OPERANDS_MAX,
	       "an operand of a message has its place");
_Static_assert(sizeof(((struct prepare_op *)0)->params) / sizeof(struct npumem_param) == NPUMEM_PARAMS_MAX,
	       "a parameter of a message has its place");

static void begin(struct prepare_op *to, enum op_kind kind)
{
	struct op *op = &to->op;

	/* What its check sets is kilobytes. */
	memset(op, 0, offsetof(struct op, counts));
	op->kind = kind;
	op->operands = to->operands;
	op->params = to->params;
	op->torn = false;
	op->work = NULL;
}

/* The client's own memory instead of the message's bytes. Bounds are the device's to check. */
static int prepare_segment(struct binding *binding, uint64_t id, uint64_t offset, const Npumem__V1__Dims *stride,
			   int64_t count, struct op *op, struct npumem_error *error)
{
	struct segment *segment;
	int status = segments_find(binding->session, id, &segment, error);

	if (status)
		return status;
	if (op->kind == OP_READ && !segment->memory.writable)
		return npumem_error_set(error, NPUMEM_INVALID,
					"segment %" PRIu64 " is sealed against writing: it can only be a source",
					id);
	op->count = count ? count : -1;
	op->system = (struct op_system){.base = segment->memory.base,
					.bytes = segment->memory.bytes,
					.off = offset,
					.strided = stride != NULL,
					.segment = segment};
	convert_dims_from(stride, &op->system.stride);
	return 0;
}

static int prepare_write(struct binding *binding, const Npumem__V1__WriteRequest *message, struct prepare_op *to,
			 struct npumem_error *error)
{
	struct op *op = &to->op;
	size_t element, bytes = message->data.len;
	int status;

	begin(to, OP_WRITE);
	status = binding_find(binding, message->tensor, "the tensor to write", ACCESS_WRITE, &op->tensor, error);
	if (status)
		return status;
	if (message->count < 0)
		return npumem_error_set(error, NPUMEM_INVALID, "%" PRId64 " elements to write", message->count);
	op->first = message->first;
	if (message->segment && bytes)
		return npumem_error_set(error, NPUMEM_INVALID, "a write has data or a segment, not both");
	if (message->segment)
		return prepare_segment(binding, message->segment, message->segment_offset, message->segment_stride,
				       message->count, op, error);
	element = npumem_dtype_bytes(tensor_dtype(op->tensor));
	if (bytes % element)
		return npumem_error_set(error, NPUMEM_INVALID,
					"%zu bytes of data are not a multiple of an element's %zu", bytes,
					element);
	op->count = (int64_t)(bytes / element);
	op->system = (struct op_system){.base = message->data.data, .bytes = bytes};
	return 0;
}

static int prepare_read(struct binding *binding, const Npumem__V1__ReadRequest *message, struct prepare_op *to,
			struct npumem_error *error)
{
	struct op *op = &to->op;
	int status;

	begin(to, OP_READ);
	status = binding_find(binding, message->tensor, "the tensor to read", ACCESS_READ, &op->tensor, error);
	if (status)
		return status;
	if (message->count < 0)
		return npumem_error_set(error, NPUMEM_INVALID, "%" PRId64 " elements to read", message->count);
	op->first = message->first;
	if (message->segment)
		return prepare_segment(binding, message->segment, message->segment_offset, message->segment_stride,
				       message->count, op, error);
	op->count = message->count ? message->count : -1;
	op->system.bytes = UINT64_MAX; /* as much as it takes: the reply's room is checked in its turn */
	return 0;
}

static int prepare_fill(struct binding *binding, const Npumem__V1__FillRequest *message, struct prepare_op *to,
			struct npumem_error *error)
{
	struct op *op = &to->op;

	begin(to, OP_FILL);
	switch (message->value_case) {
	case NPUMEM__V1__FILL_REQUEST__VALUE_INTEGER:
		op->value = message->integer;
		break;
	case NPUMEM__V1__FILL_REQUEST__VALUE_REAL:
		op->value_is_float = true;
		op->float_value = message->real;
		break;
	default:
		return npumem_error_set(error, NPUMEM_INVALID, "a fill without a value");
	}
	return binding_find(binding, message->tensor, "the tensor to fill", ACCESS_WRITE, &op->tensor, error);
}

static int prepare_copy(struct binding *binding, const Npumem__V1__CopyRequest *message, struct prepare_op *to,
			struct npumem_error *error)
{
	int status;

	begin(to, OP_COPY);
	status = binding_find(binding, message->destination, "the destination", ACCESS_WRITE, &to->op.tensor,
			      error);
	if (status)
		return status;
	return binding_find(binding, message->source, "the source", ACCESS_READ, &to->op.source, error);
}

/* Whether a role of the kernel is written; one that it has not is refused later. */
static enum access_need need_of(const struct op *op, const char *operand)
{
	const struct roles *roles = roles_of(op->kernel);
	unsigned number;
	int role = roles_find(roles, operand, &number);

	return role >= 0 && roles->all[role].output ? ACCESS_WRITE : ACCESS_READ;
}

static int add_operand(struct binding *binding, const Npumem__V1__Operand *message, struct op *op,
		       struct npumem_error *error)
{
	struct op_operand *operand = &op->operands[op->n_operands];
	enum access_need need = binding->is_bound ? ACCESS_READ : need_of(op, message->role);
	int status = binding_find(binding, message->tensor, message->role, need, &operand->tensor, error);

	if (status)
		return status;
	strcpy(operand->role, message->role);
	op->n_operands++;
	return 0;
}

static int add_param(const Npumem__V1__Param *message, struct op *op, struct npumem_error *error)
{
	struct npumem_param *param = &op->params[op->n_params];
	int number = (int)message->key, status;

	status = wire_check_enum(&npumem__v1__param_key__descriptor, "parameter", number, error);
	if (status)
		return status;
	if (message->n_values > NPUMEM_PARAM_VALUES_MAX)
		return npumem_error_set(error, NPUMEM_INVALID,
					"parameter %d has %zu values, and at most %d are possible", number,
					message->n_values, NPUMEM_PARAM_VALUES_MAX);
	*param = (struct npumem_param){.number = number, .n_values = (unsigned)message->n_values};
	for (unsigned i = 0; i < param->n_values; i++)
		param->values[i] = message->values[i];
	op->n_params++;
	return 0;
}

int prepare_check_operands(const Npumem__V1__RunRequest *message, struct npumem_error *error)
{
	if (message->n_operands > NPUMEM_OPERANDS_MAX)
		return npumem_error_set(error, NPUMEM_INVALID, "%zu operands, and at most %d are possible",
					message->n_operands, NPUMEM_OPERANDS_MAX);
	for (size_t i = 0; i < message->n_operands; i++)
		if (strlen(message->operands[i]->role) >= NPUMEM_FIELD_KEY_BYTES)
			return npumem_error_set(error, NPUMEM_INVALID, "role %.16s... is longer than %d bytes",
						message->operands[i]->role, NPUMEM_FIELD_KEY_BYTES - 1);
	return 0;
}

static int prepare_run(struct binding *binding, const Npumem__V1__RunRequest *message, struct prepare_op *to,
		       struct npumem_error *error)
{
	struct op *op = &to->op;
	int status;

	begin(to, OP_RUN);
	op->kernel = (int)message->kernel;
	status = wire_check_enum(&npumem__v1__kernel__descriptor, "kernel", op->kernel, error);
	if (status)
		return status;
	status = prepare_check_operands(message, error);
	if (status)
		return status;
	if (message->n_params > NPUMEM_PARAMS_MAX)
		return npumem_error_set(error, NPUMEM_INVALID, "%zu parameters, and at most %d are possible",
					message->n_params, NPUMEM_PARAMS_MAX);
	for (size_t i = 0; i < message->n_operands && !status; i++)
		status = add_operand(binding, message->operands[i], op, error);
	for (size_t i = 0; i < message->n_params && !status; i++)
		status = add_param(message->params[i], op, error);
	return status;
}

int prepare_operation(struct binding *binding, const Npumem__V1__Operation *message, struct prepare_op *to,
		      struct npumem_error *error)
{
	switch (message->kind_case) {
	case NPUMEM__V1__OPERATION__KIND_WRITE:
		return prepare_write(binding, message->write, to, error);
	case NPUMEM__V1__OPERATION__KIND_READ:
		return prepare_read(binding, message->read, to, error);
	case NPUMEM__V1__OPERATION__KIND_FILL:
		return prepare_fill(binding, message->fill, to, error);
	case NPUMEM__V1__OPERATION__KIND_COPY:
		return prepare_copy(binding, message->copy, to, error);
	case NPUMEM__V1__OPERATION__KIND_RUN:
		return prepare_run(binding, message->run, to, error);
	default:
		return npumem_error_set(error, NPUMEM_INVALID,
					"an operation of a kind that this daemon does not know");
	}
}

uint64_t prepare_payload_bytes(const struct op *op)
{
	int64_t elements, count;

	if (op->kind != OP_READ || op->system.segment)
		return 0;
	elements = tensor_elements(op->tensor);
	if (op->first < 0 || op->first > elements || op->count > elements - op->first)
		return 0;
	count = op->count < 0 ? elements - op->first : op->count;
	return (uint64_t)count * npumem_dtype_bytes(tensor_dtype(op->tensor));
}
