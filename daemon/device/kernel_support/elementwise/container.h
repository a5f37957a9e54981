/* Single elements of dense arrays of fx8 or fx16, by the bytes of their container. */
#ifndef DEVICE_CONTAINER_H
#define DEVICE_CONTAINER_H

#include <stdint.h>

static inline int64_t container_get(const void *elements, unsigned bytes, int64_t i)
{
	return bytes == 1 ? ((const int8_t *)elements)[i] : ((const int16_t *)elements)[i];
}

/* The container holds `value`. */
static inline void container_put(void *elements, unsigned bytes, int64_t i, int64_t value)
{
	if (bytes == 1)
		((int8_t *)elements)[i] = (int8_t)value;
	else
		((int16_t *)elements)[i] = (int16_t)value;
}

#endif
