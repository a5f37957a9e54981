/* A small device on a bench: tensors are placed and operations run with one call each, and what a refusal said is
 * at hand. Tensors are named by their `owner`, a string; without one they are "#<handle>". */
#ifndef TESTS_DEVICE_RIG_H
#define TESTS_DEVICE_RIG_H

#include <inttypes.h>
#include <stdio.h>

#include "daemon/device/operations/op.h"
#include "tests/support/test.h"
#include "tests/unit/daemon/device/scarce.h"

struct rig {
	struct scarce scarce;
	struct device_options options;
	struct device *device;
	void *memory;
	struct npumem_error error;
	struct error_context context;
	struct op op; /* the last one, with its results */
	struct op_operand operands[5];
};

static inline void rig_name(void *ctx, const struct tensor *tensor, char *buffer, size_t bytes)
{
	(void)ctx;
	if (tensor->owner)
		snprintf(buffer, bytes, "%s", (const char *)tensor->owner);
	else
		snprintf(buffer, bytes, "#%" PRIu64, tensor->handle);
}

static inline void *rig_memory(const struct npumem_geometry *geometry)
{
	size_t bytes = (size_t)device_memory_bytes(geometry);
	void *memory = aligned_alloc(64, (bytes + 63) / 64 * 64);
	ck_assert_ptr_nonnull(memory);
	memset(memory, 0, bytes);
	return memory;
}

/* `options` but for the geometry, whose banks and EU bytes are the default's. */
static inline void rig_open_with(struct rig *rig, int64_t n_npus, int64_t npu_bytes, struct device_options options)
{
	memset(rig, 0, sizeof(*rig));
	options.geometry = (struct npumem_geometry){n_npus, npu_bytes, 8, 128};
	ck_assert_int_eq(npumem_geometry_check(&options.geometry, NULL), 0);
	scarce_init(&rig->scarce);
	rig->options = options;
	rig->memory = rig_memory(&options.geometry);
	rig->context = (struct error_context){.error = &rig->error, .name = rig_name};
	ck_assert_int_eq(device_new(&options, &rig->scarce.heap, rig->memory, &rig->device), 0);
}

static inline void rig_open(struct rig *rig, int64_t n_npus, int64_t npu_bytes)
{
	rig_open_with(rig, n_npus, npu_bytes, (struct device_options){.allow_unchecked = true});
}

static inline void rig_sound(struct rig *rig)
{
	const char *wrong = device_check(rig->device);
	ck_assert_msg(!wrong, "%s", wrong);
}

static inline void rig_close(struct rig *rig)
{
	rig_sound(rig);
	device_free(rig->device);
	ck_assert_int_eq(rig->scarce.n_live, 0);
	free(rig->memory);
}

/* Another device in its place. */
static inline void rig_reopen_with(struct rig *rig, int64_t n_npus, int64_t npu_bytes,
				   struct device_options options)
{
	rig_close(rig);
	rig_open_with(rig, n_npus, npu_bytes, options);
}

static inline void rig_reopen(struct rig *rig, int64_t n_npus, int64_t npu_bytes)
{
	rig_close(rig);
	rig_open(rig, n_npus, npu_bytes);
}

/* ---- refusals ---- */

/* The last call was refused like this: each part is in the message. */
static inline void rig_said(const struct rig *rig, int status, const char *part)
{
	ck_assert_msg(rig->error.status == status, "status %d, not %d: %s", rig->error.status, status,
		      rig->error.message);
	ck_assert_msg(strstr(rig->error.message, part), "\"%s\" does not say \"%s\"", rig->error.message, part);
}

/* The same of a call that has just returned `result`. */
static inline void rig_fails(const struct rig *rig, int result, int status, const char *part)
{
	ck_assert_int_eq(result, status);
	rig_said(rig, status, part);
}

static inline int64_t rig_field(const struct rig *rig, const char *key)
{
	return npumem_error_find(&rig->error, key, -1);
}

static inline const char *rig_text(const struct rig *rig, const char *key)
{
	for (unsigned i = 0; i < rig->error.n_fields; i++)
		if (rig->error.fields[i].is_text && !strcmp(rig->error.fields[i].key, key))
			return rig->error.fields[i].text;
	return "(no such field)";
}

/* The refusal names this tensor and these bytes. */
static inline void rig_blames(const struct rig *rig, const struct tensor *tensor, int64_t npu, int64_t offset,
			      int64_t bytes)
{
	char name[ERROR_CONTEXT_NAME_BYTES];
	ck_assert_str_eq(rig_text(rig, "tensor"), error_context_name(&rig->context, tensor, name));
	ck_assert_int_eq(rig_field(rig, "npu"), npu);
	ck_assert_int_eq(rig_field(rig, "offset"), offset);
	ck_assert_int_eq(rig_field(rig, "bytes"), bytes);
}

/* ---- tensors ---- */

static inline struct device_request rig_request(int dtype, int64_t n, int64_t c, int64_t h, int64_t w)
{
	struct device_request request = {.reuse = 0};
	npumem_spec_init(&request.spec);
	request.spec.dtype = dtype;
	request.spec.shape = (struct npumem_dims){n, c, h, w};
	if (npumem_dtype_is_fixed(dtype))
		request.spec.frac_bits = 7;
	return request;
}

static inline struct device_request rig_matrix(int dtype, int64_t rows, int64_t cols, int64_t w)
{
	struct device_request request = rig_request(dtype, 0, 0, 0, 0);
	request.spec.layout = NPUMEM_MATRIX;
	request.spec.rows = rows;
	request.spec.cols = cols;
	request.spec.w = w;
	return request;
}

static inline int rig_try(struct rig *rig, const struct device_request *request, struct tensor **tensor)
{
	npumem_error_clear(&rig->error);
	return device_alloc(rig->device, request, 1, tensor, &rig->context);
}

static inline struct tensor *rig_place(struct rig *rig, const struct device_request *request)
{
	struct tensor *tensor = NULL;
	int status = rig_try(rig, request, &tensor);
	ck_assert_msg(status == 0, "not placed: %s", rig->error.message);
	return tensor;
}

static inline void rig_refuses(struct rig *rig, const struct device_request *request, int status, const char *part)
{
	struct tensor *tensor = NULL;
	ck_assert_int_eq(rig_try(rig, request, &tensor), status);
	rig_said(rig, status, part);
	rig_sound(rig);
}

/* `bytes` of every NPU at `offset`, all of it data. */
static inline struct tensor *rig_block(struct rig *rig, int64_t offset, int64_t bytes)
{
	int64_t n_npus = rig->options.geometry.n_npus;
	struct device_request request = rig_request(NPUMEM_INT8, 1, n_npus, 1, bytes);
	request.spec.layout = NPUMEM_COMPACT;
	request.spec.address = offset;
	return rig_place(rig, &request);
}

static inline void rig_release(struct rig *rig, struct tensor *tensor)
{
	device_release(rig->device, tensor, NULL, NULL);
}

/* ---- operations ---- */

/* Runs rig->op from its check to its end. */
/* No more host memory than was said before. */
static inline int rig_run_checked(struct rig *rig, uint64_t before_bytes)
{
	struct scarce *scarce = &rig->scarce;
	uint64_t bytes = op_scratch_bytes(&rig->op);
	ck_assert_uint_le(scarce_measure(scarce) - before_bytes, bytes);
	int status = op_run(rig->device, &rig->op, &rig->context);
	ck_assert_uint_le(scarce->most_bytes - before_bytes, bytes);
	if (!status)
		ck_assert_uint_eq(scarce->most_bytes - before_bytes, bytes);
	return status;
}

static inline int rig_op(struct rig *rig)
{
	uint64_t before_bytes = rig->scarce.live_bytes;
	npumem_error_clear(&rig->error);
	int status = op_check(rig->device, &rig->op, &rig->context);
	if (!status)
		status = rig_run_checked(rig, before_bytes);
	op_deinit(rig->device, &rig->op);
	ck_assert_uint_eq(rig->scarce.live_bytes, before_bytes);
	return status;
}

static inline int64_t rig_bytes(const struct tensor *tensor)
{
	return tensor_elements(tensor) * npumem_dtype_bytes(tensor_place(tensor).dtype);
}

static inline int rig_write_some(struct rig *rig, struct tensor *tensor, int64_t first, int64_t count,
				 const void *from)
{
	rig->op = (struct op){.kind = OP_WRITE, .tensor = tensor, .first = first, .count = count};
	rig->op.system =
		(struct op_system){.base = (uint8_t *)(uintptr_t)from, .bytes = (uint64_t)rig_bytes(tensor)};
	return rig_op(rig);
}

static inline int rig_read_some(struct rig *rig, struct tensor *tensor, int64_t first, int64_t count, void *to)
{
	rig->op = (struct op){.kind = OP_READ, .tensor = tensor, .first = first, .count = count};
	rig->op.system = (struct op_system){.base = to, .bytes = (uint64_t)rig_bytes(tensor)};
	return rig_op(rig);
}

static inline int rig_write(struct rig *rig, struct tensor *tensor, const void *from)
{
	return rig_write_some(rig, tensor, 0, -1, from);
}

static inline int rig_read(struct rig *rig, struct tensor *tensor, void *to)
{
	return rig_read_some(rig, tensor, 0, -1, to);
}

static inline int rig_fill(struct rig *rig, struct tensor *tensor, int64_t value)
{
	rig->op = (struct op){.kind = OP_FILL, .tensor = tensor, .value = value};
	return rig_op(rig);
}

static inline int rig_seal(struct rig *rig, struct tensor *tensor)
{
	int status = device_seal_check(rig->device, tensor, &rig->context);
	if (!status)
		device_seal(tensor);
	return status;
}

static inline int rig_copy(struct rig *rig, struct tensor *to, struct tensor *from)
{
	rig->op = (struct op){.kind = OP_COPY, .tensor = to, .source = from};
	return rig_op(rig);
}

static inline void rig_operand(struct rig *rig, const char *role, struct tensor *tensor)
{
	struct op_operand *operand = &rig->operands[rig->op.n_operands++];
	*operand = (struct op_operand){.tensor = tensor};
	memcpy(operand->role, role, strlen(role));
}

/* relu=none, which gives back its input. */
static inline struct op *rig_relu_op(struct rig *rig, struct tensor *in, struct tensor *out)
{
	rig->op = (struct op){.kind = OP_RUN, .kernel = NPUMEM_KERNEL_RELU, .operands = rig->operands};
	rig_operand(rig, "in", in);
	rig_operand(rig, "out", out);
	return &rig->op;
}

static inline int rig_relu(struct rig *rig, struct tensor *in, struct tensor *out)
{
	rig_relu_op(rig, in, out);
	return rig_op(rig);
}

/* 0, 1, 2, … as the elements of an array of bytes. */
static inline uint8_t *rig_ramp(int64_t bytes, uint8_t from)
{
	uint8_t *ramp = malloc((size_t)bytes);
	ck_assert_ptr_nonnull(ramp);
	for (int64_t i = 0; i < bytes; i++)
		ramp[i] = (uint8_t)(from + i);
	return ramp;
}

#endif
