#include "daemon/device/kernel_support/gathered_pack.h"

#include <string.h>

#include "daemon/device/kernel_support/operands.h"

size_t gathered_pack_bytes(const struct kernel_call *call, unsigned role)
{
	const struct kernel_operand *operand = operands_get(call, role);
	return (size_t)operands_elements(operand) * npumem_dtype_bytes(operand->dtype);
}

bool gathered_pack(const struct kernel_call *call, unsigned role, void *to)
{
	const uint8_t *from = operands_get(call, role)->data;
	int64_t bytes = (int64_t)gathered_pack_bytes(call, role), piece = kernel_piece(call), pending = 0;
	for (int64_t i = 0, count; i < bytes; i += count) {
		count = bytes - i < piece ? bytes - i : piece;
		memcpy((uint8_t *)to + i, from + i, (size_t)count);
		if (!kernel_look(call, count, &pending))
			return false;
	}
	return true;
}

const void *gathered_pack_data(const struct kernel_call *call, unsigned role)
{
	return call->pack ? call->pack : operands_get(call, role)->data;
}
