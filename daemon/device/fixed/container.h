/* Single elements of arrays of signed containers of 1, 2 or 4 bytes. */
#ifndef DEVICE_CONTAINER_H
#define DEVICE_CONTAINER_H

#include <stdint.h>

static inline int64_t container_get(const void *elements, unsigned bytes, int64_t i)
{
	return bytes == 1   ? ((const int8_t *)elements)[i]
	       : bytes == 2 ? ((const int16_t *)elements)[i]
			    : ((const int32_t *)elements)[i];
}

/* The low bits of `value`. */
static inline void container_put(void *elements, unsigned bytes, int64_t i, int64_t value)
{
	if (bytes == 1)
		((int8_t *)elements)[i] = (int8_t)value;
	else if (bytes == 2)
		((int16_t *)elements)[i] = (int16_t)value;
	else
		((int32_t *)elements)[i] = (int32_t)value;
}

#endif
