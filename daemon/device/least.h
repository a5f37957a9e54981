#ifndef DEVICE_LEAST_H
#define DEVICE_LEAST_H

#include <stdint.h>

static inline int64_t least(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

#endif
