/* The scalar sum, which defines what the others compute. */
#include "daemon/device/fixed/rows/dot.h"

#include "daemon/device/implementations.h"

int64_t dot__scalar(const int16_t *a, const int16_t *b, int64_t n)
{
	int64_t sum = 0;
	for (int64_t i = 0; i < n; i++)
		sum += (int32_t)a[i] * b[i];
	return sum;
}

int64_t dot(enum isa isa, const int16_t *a, const int16_t *b, int64_t n)
{
	return implementations[isa].dot(a, b, n);
}
