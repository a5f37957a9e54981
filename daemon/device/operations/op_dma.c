/* The DMA operations: write, read, fill, copy. They touch the data of their tensors and nothing else. */
#include <float.h>
#include <inttypes.h>
#include <math.h>

#include "daemon/device/operations/move.h"
#include "daemon/device/operations/op_rule.h"
#include "daemon/device/tensors/written.h"

static unsigned access_one(const struct op *op, struct op_access *accesses, bool writes)
{
	accesses[0] = (struct op_access){op->tensor, writes, KINDS_DATA};
	return 1;
}

static unsigned accesses_write(const struct op *op, struct op_access *accesses)
{
	return access_one(op, accesses, true);
}

static unsigned accesses_read(const struct op *op, struct op_access *accesses)
{
	return access_one(op, accesses, false);
}

static unsigned accesses_copy(const struct op *op, struct op_access *accesses)
{
	accesses[0] = (struct op_access){op->tensor, true, KINDS_DATA};
	accesses[1] = (struct op_access){op->source, false, KINDS_DATA};
	return 2;
}

/* ---- between system and local memory ---- */

static int refuse_range(const struct op *op, int64_t elements, const struct error_context *context)
{
	char name[ERROR_CONTEXT_NAME_BYTES];
	return npumem_error_set(context->error, NPUMEM_INVALID,
				"elements from %" PRId64 ", %" PRId64 " of them, are not within the %" PRId64
				" elements of %s",
				op->first, op->count, elements, error_context_name(context, op->tensor, name));
}

static struct npumem_dims extents_of(const struct npumem_place *place)
{
	struct npumem_dims extents = place->shape;
	if (place->layout == NPUMEM_MATRIX)
		extents = (struct npumem_dims){place->rows, place->cols, 1, 1};
	return extents;
}

/* The stride of an extent of 1 makes no sense, and may be anything. */
static void ignore_unit_strides(const struct npumem_dims *extents, struct npumem_dims *stride)
{
	stride->n = extents->n > 1 ? stride->n : 1;
	stride->c = extents->c > 1 ? stride->c : 1;
	stride->h = extents->h > 1 ? stride->h : 1;
	stride->w = extents->w > 1 ? stride->w : 1;
}

/* Bytes that an array with these strides spans, or -1 on overflow and negative strides. */
static int64_t span_bytes(const struct npumem_place *place, const struct npumem_dims *stride)
{
	const struct npumem_dims dims = extents_of(place);
	int64_t extents[] = {dims.n, dims.c, dims.h, dims.w};
	int64_t strides[] = {stride->n, stride->c, stride->h, stride->w}, span = 1, step;
	for (unsigned i = 0; i < 4; i++)
		if (strides[i] < 0 || __builtin_mul_overflow(extents[i] - 1, strides[i], &step) ||
		    __builtin_add_overflow(span, step, &span))
			return -1;
	return __builtin_mul_overflow(span, move_element_bytes(place), &span) ? -1 : span;
}

static int check_system(const struct op *op, int64_t bytes, const struct error_context *context)
{
	const struct op_system *system = &op->system;
	if (bytes < 0)
		return npumem_error_set(context->error, NPUMEM_INVALID,
					"a system memory stride is negative or too large");
	if (system->off > system->bytes || (uint64_t)bytes > system->bytes - system->off)
		return npumem_error_set(context->error, NPUMEM_INVALID,
					"%" PRId64 " bytes from %" PRIu64
					" on are needed of system memory, which has %" PRIu64,
					bytes, system->off, system->bytes);
	return 0;
}

/* Resolves op->count, and checks that elements and system memory are there. */
static int check_transfer(struct op *op, const struct error_context *context)
{
	int64_t elements = tensor_elements(op->tensor);
	if (op->first < 0 || op->first >= elements || op->count == 0 || op->count > elements - op->first)
		return refuse_range(op, elements, context);
	if (op->count < 0)
		op->count = elements - op->first;
	if (!op->system.strided)
		return check_system(op, op->count * npumem_dtype_bytes(tensor_dtype(op->tensor)), context);
	const struct npumem_place *place = TENSOR_PLACE(op->tensor);
	if (op->count != elements) {
		char name[ERROR_CONTEXT_NAME_BYTES];
		return npumem_error_set(
			context->error, NPUMEM_INVALID,
			"a strided transfer moves all %" PRId64 " elements of %s, not %" PRId64 " from %" PRId64,
			elements, error_context_name(context, op->tensor, name), op->count, op->first);
	}
	if (place->layout == NPUMEM_MATRIX && ((op->system.stride.h | op->system.stride.w) & ~INT64_C(1)))
		return npumem_error_set(
			context->error, NPUMEM_INVALID,
			"a matrix's rows are n and its columns c: its strides of h and w are 0 or 1");
	struct npumem_dims extents = extents_of(place);
	ignore_unit_strides(&extents, &op->system.stride);
	return check_system(op, span_bytes(place, &op->system.stride), context);
}

static struct move_host host_of(const struct op *op, const struct npumem_place *place)
{
	uint8_t *base = op->system.base + op->system.off;
	if (!op->system.strided)
		return move_dense(place, base, op->first);
	struct move_host host = {base, op->system.stride};
	/* A matrix's channel is its next W columns. */
	if (place->layout == NPUMEM_MATRIX) {
		host.stride.w = op->system.stride.c;
		host.stride.c = place->w * host.stride.w;
	}
	return host;
}

/* `whole`: it was not stopped. */
static int end(struct op *op, bool whole, const struct error_context *context)
{
	char name[ERROR_CONTEXT_NAME_BYTES];
	if (whole)
		return 0;
	if (op->kind == OP_READ)
		return npumem_error_set(context->error, NPUMEM_CANCELLED, "the read was cancelled");
	op->torn = true;
	return npumem_error_set(context->error, NPUMEM_CANCELLED,
				"the %s was cancelled; what it had written of %s by then counts as never written",
				op_name(op), error_context_name(context, op->tensor, name));
}

static struct move_watch begin(const struct op *op, int64_t elements)
{
	if (op->progress)
		kernel_begin(op->progress, elements);
	return (struct move_watch){.progress = op->progress, .tells = true};
}

static int check_write(struct device *device, struct op *op, const struct error_context *context)
{
	(void)device;
	int status = check_transfer(op, context);
	return status ? status : op_check_writable(op->tensor, context);
}

static int run_write(struct device *device, struct op *op, const struct error_context *context)
{
	const struct npumem_place *place = TENSOR_PLACE(op->tensor);
	struct move_host host = host_of(op, place);
	struct move_watch watch = begin(op, op->count);
	bool known = written_is_known(device, op->tensor);
	bool whole = move_in(&device->local, place, op->first, op->count, &host, known, &watch);
	if (whole && op->count == tensor_elements(op->tensor))
		written_note(op->tensor);
	return end(op, whole, context);
}

/* A read must not write two elements to one place. */
static int check_distinct(const struct op *op, const struct error_context *context)
{
	const struct npumem_dims *stride = &op->system.stride;
	if (op->system.strided && (!stride->n || !stride->c || !stride->h || !stride->w))
		return npumem_error_set(context->error, NPUMEM_INVALID,
					"a system memory stride of 0 would put several elements in one place");
	return 0;
}

static int check_read(struct device *device, struct op *op, const struct error_context *context)
{
	(void)device;
	int status = check_transfer(op, context);
	return status ? status : check_distinct(op, context);
}

static int look_read(const struct device *device, struct op *op, const struct error_context *context)
{
	return op_look_readable(device, op, op->tensor, op->first, op->count, context);
}

static int run_read(struct device *device, struct op *op, const struct error_context *context)
{
	const struct npumem_place *place = TENSOR_PLACE(op->tensor);
	struct move_host host = host_of(op, place);
	struct move_watch watch = begin(op, op->count);
	return end(op, move_out(&device->local, place, op->first, op->count, &host, &watch), context);
}

/* ---- within local memory ---- */

/* Whether fp32 has this integer: its bits between the first and the last one that is set fit the mantissa. */
static bool is_fp32(int64_t value)
{
	uint64_t magnitude = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
	return magnitude == 0 || magnitude >> __builtin_ctzll(magnitude) < UINT64_C(1) << FLT_MANT_DIG;
}

static int check_fill_fp32(const struct op *op, const struct error_context *context)
{
	if (!op->value_is_float && !is_fp32(op->value))
		return npumem_error_set(context->error, NPUMEM_INVALID, "fill value %" PRId64 " is not an fp32",
					op->value);
	if (op->value_is_float && isfinite(op->float_value) && !isfinite((float)op->float_value))
		return npumem_error_set(context->error, NPUMEM_INVALID, "fill value %g is beyond fp32's %g",
					op->float_value, FLT_MAX);
	return 0;
}

static int check_fill_integer(const struct op *op, int64_t low, int64_t high, const struct error_context *context)
{
	const char *dtype = npumem_dtype_name(tensor_dtype(op->tensor));
	if (op->value_is_float)
		return npumem_error_set(context->error, NPUMEM_INVALID,
					"fill value %g: %s takes its container's integers, from %" PRId64
					" to %" PRId64,
					op->float_value, dtype, low, high);
	if (op->value < low || op->value > high)
		return npumem_error_set(context->error, NPUMEM_INVALID,
					"fill value %" PRId64 " is not within %s's %" PRId64 " to %" PRId64,
					op->value, dtype, low, high);
	return 0;
}

static int check_fill(struct device *device, struct op *op, const struct error_context *context)
{
	int64_t low, high;
	(void)device;
	int status = npumem_dtype_range(tensor_dtype(op->tensor), &low, &high)
			     ? check_fill_integer(op, low, high, context)
			     : check_fill_fp32(op, context);
	return status ? status : op_check_writable(op->tensor, context);
}

static int run_fill(struct device *device, struct op *op, const struct error_context *context)
{
	struct move_watch watch = begin(op, tensor_elements(op->tensor));
	float real = op->value_is_float ? (float)op->float_value : (float)op->value;
	/* Containers are little-endian two's complement, so the low bytes of the value are the element. */
	uint32_t bits = (uint32_t)op->value;
	if (tensor_dtype(op->tensor) == NPUMEM_FP32)
		memcpy(&bits, &real, sizeof(bits));
	bool known = written_is_known(device, op->tensor);
	bool whole = move_fill(&device->local, TENSOR_PLACE(op->tensor), &bits, known, &watch);
	if (whole)
		written_note(op->tensor);
	return end(op, whole, context);
}

static int check_same_kind(const struct op *op, const struct error_context *context)
{
	const struct tensor *to = op->tensor, *from = op->source;
	struct npumem_dims a = tensor_shape(to), b = tensor_shape(from);
	if (tensor_dtype(to) != tensor_dtype(from))
		return npumem_error_set(
			context->error, NPUMEM_INVALID, "the destination is %s, the source %s: use convert_tensor",
			npumem_dtype_name(tensor_dtype(to)), npumem_dtype_name(tensor_dtype(from)));
	if (tensor_frac_bits(to) != tensor_frac_bits(from))
		return npumem_error_set(context->error, NPUMEM_INVALID,
					"the destination has %" PRId64 " frac_bits, the source %" PRId64
					": use convert_tensor",
					tensor_frac_bits(to), tensor_frac_bits(from));
	if (memcmp(&a, &b, sizeof(a)))
		return npumem_error_set(context->error, NPUMEM_INVALID,
					"the destination is %" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRId64
					", the source %" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRId64,
					a.n, a.c, a.h, a.w, b.n, b.c, b.h, b.w);
	return 0;
}

static int check_copy(struct device *device, struct op *op, const struct error_context *context)
{
	(void)device;
	int status = check_same_kind(op, context);
	return status ? status : op_check_writable(op->tensor, context);
}

static int look_copy(const struct device *device, struct op *op, const struct error_context *context)
{
	struct intersect_range range;
	int64_t elements = tensor_elements(op->source);
	bool shares = false;
	int status = op_look_readable(device, op, op->source, 0, elements, context);
	if (!status && tensor_root(op->tensor) == tensor_root(op->source))
		status = op_look_shared(device, op, op->tensor, op->source, &shares, &range);
	if (shares)
		return npumem_error_set(context->error, NPUMEM_INVALID,
					"source and destination of a copy share bytes: NPU %" PRId64
					", bytes %" PRId64 " to %" PRId64,
					range.npu, range.offset, range.offset + range.bytes - 1);
	return status;
}

static int run_copy(struct device *device, struct op *op, const struct error_context *context)
{
	struct move_watch watch = begin(op, tensor_elements(op->tensor));
	bool known = written_is_known(device, op->tensor);
	bool whole =
		move_within(&device->local, TENSOR_PLACE(op->source), TENSOR_PLACE(op->tensor), known, &watch);
	if (whole)
		written_note(op->tensor);
	return end(op, whole, context);
}

const struct op_rule op_rule_write = {"write", OP_DMA, check_write, NULL, run_write, accesses_write, NULL};
const struct op_rule op_rule_read = {"read", OP_DMA, check_read, look_read, run_read, accesses_read, NULL};
const struct op_rule op_rule_fill = {"fill", OP_DMA, check_fill, NULL, run_fill, accesses_write, NULL};
const struct op_rule op_rule_copy = {"copy", OP_DMA, check_copy, look_copy, run_copy, accesses_copy, NULL};
