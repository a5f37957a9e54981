/* Widening loads, one plain loop per container. */
#include "daemon/device/kernel_support/elementwise/elements.h"

#include <assert.h>
#include <string.h>

#include "daemon/device/kernel_support/operands.h"

#define LOAD(from_type)                                                                                           \
	for (int64_t i = 0; i < n; i++)                                                                           \
	to[i] = ((const from_type *)data)[first + i]

#define LOADS(name, to_type)                                                                                      \
	void name(int dtype, const void *data, int64_t first, int64_t n, to_type *to)                             \
	{                                                                                                         \
		if (dtype == NPUMEM_INT8 || dtype == NPUMEM_FX8)                                                  \
			LOAD(int8_t);                                                                             \
		else if (dtype == NPUMEM_UINT8)                                                                   \
			LOAD(uint8_t);                                                                            \
		else if (dtype == NPUMEM_INT16 || dtype == NPUMEM_FX16)                                           \
			LOAD(int16_t);                                                                            \
		else if (dtype == NPUMEM_UINT16)                                                                  \
			LOAD(uint16_t);                                                                           \
		else if (dtype == NPUMEM_INT32)                                                                   \
			LOAD(int32_t);                                                                            \
		else if (dtype == NPUMEM_UINT32 && sizeof(*to) > sizeof(uint32_t))                                \
			LOAD(uint32_t);                                                                           \
		else                                                                                              \
			assert(!"an integer type that fits");                                                     \
	}
LOADS(elements_load64, int64_t)
LOADS(elements_load32, int32_t)

bool elements_copy(const struct kernel_call *call, void *to, const void *from, int64_t n, unsigned bytes,
		   int64_t *pending)
{
	int64_t piece = kernel_piece(call);
	for (int64_t i = 0; i < n; i += piece) {
		int64_t count = n - i < piece ? n - i : piece;
		memcpy((uint8_t *)to + i * bytes, (const uint8_t *)from + i * bytes, (size_t)(count * bytes));
		if (!kernel_step_rarely(call, count, pending))
			return false;
	}
	return true;
}

int elements_check_move(const struct kernel_call *call, unsigned role, unsigned as, struct npumem_error *error)
{
	if (npumem_dtype_is_fixed(operands_get(call, as)->dtype))
		return operands_check_fixed(call, role, error);
	return operands_check_same_dtype(call, role, as, error);
}

void elements_move_init(struct elements_move *move, struct kernel_call *call, const struct kernel_operand *in,
			const struct kernel_operand *out)
{
	*move = (struct elements_move){
		.call = call,
		.saturated = &call->counts.saturated,
		.in_bytes = npumem_dtype_bytes(in->dtype),
		.out_bytes = npumem_dtype_bytes(out->dtype),
		.converts = elements_are_converted(in, out),
	};
	if (!move->converts)
		return;
	move->row.in1 = row_source(in->dtype);
	requantize_init(&move->row.to, out->dtype, in->frac_bits - out->frac_bits, call->rounding);
	row_init(&move->row, call->isa, row_magnitude(in->dtype));
}

void elements_move_some(struct elements_move *move, void *to, const void *from, int64_t n)
{
	if (!move->converts) {
		memcpy(to, from, (size_t)n * move->in_bytes);
		return;
	}
	move->row.in1.data = from;
	move->row.out = to;
	row_requantize(&move->row, n, move->saturated);
}

bool elements_move(struct elements_move *move, void *to, const void *from, int64_t n, int64_t *pending)
{
	int64_t piece = kernel_piece(move->call);
	for (int64_t i = 0; i < n; i += piece) {
		int64_t count = n - i < piece ? n - i : piece;
		elements_move_some(move, (uint8_t *)to + i * move->out_bytes,
				   (const uint8_t *)from + i * move->in_bytes, count);
		if (!kernel_step_rarely(move->call, count, pending))
			return false;
	}
	return true;
}
