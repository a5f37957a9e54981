/* The operands of a call spread over the lanes of NPUs, as planar tensors lie, with others' bytes around them. */
#ifndef TESTS_DEVICE_KERNELS_LANES_H
#define TESTS_DEVICE_KERNELS_LANES_H

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/device/operations/kernel.h"

enum { LANES_NPUS = 3, LANES_START = 2, LANES_GAP = 68, LANES_OTHERS = 0x5a };

static inline int64_t lanes_feature_bytes(const struct kernel_operand *operand)
{
	return operand->shape.h * operand->shape.w * npumem_dtype_bytes(operand->dtype);
}

static inline size_t lanes_bytes(const struct kernel_operand *operand)
{
	int64_t rows = (LANES_START + operand->shape.c - 1) / LANES_NPUS + 1;
	int64_t pitch = LANES_GAP + operand->shape.n * rows * lanes_feature_bytes(operand);
	return (size_t)(pitch * LANES_NPUS);
}

/* A dense operand's elements on lanes; `dense` NULL: elements of others. What is returned is the caller's. */
static inline uint8_t *lanes_spread(struct kernel_operand *operand, const uint8_t *dense)
{
	int64_t bytes = lanes_feature_bytes(operand), rows = (LANES_START + operand->shape.c - 1) / LANES_NPUS + 1;
	uint8_t *memory = malloc(lanes_bytes(operand));
	ck_assert_ptr_nonnull(memory);
	memset(memory, LANES_OTHERS, lanes_bytes(operand));
	operand->data = NULL;
	operand->features = (struct kernel_features){.base = memory + LANES_GAP,
						     .n_bytes = rows * bytes,
						     .row_bytes = bytes,
						     .lane_bytes = LANES_GAP + operand->shape.n * rows * bytes,
						     .start_npu = LANES_START,
						     .n_npus = LANES_NPUS};
	for (int64_t n = 0; dense && n < operand->shape.n; n++)
		for (int64_t c = 0; c < operand->shape.c; c++)
			memcpy(kernel_feature(operand, n, c), dense + (n * operand->shape.c + c) * bytes,
			       (size_t)bytes);
	return memory;
}

#endif
