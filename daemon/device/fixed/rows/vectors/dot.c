/* A sum of two products of 16 bits is -2^31 + 2^16 to 2^31. The instruction makes it in 32 bits, where 2^31 does not
 * fit. So each sum starts at -1, is added to one of 64 bits, and the ones are added at the end. */
#include "daemon/device/fixed/rows/dot.h"

#include "daemon/device/fixed/rows/vectors/vector.h"

int64_t VECTOR_NAME(dot)(const int16_t *a, const int16_t *b, int64_t n)
{
	vector_longs low = {0}, high = {0};
	int64_t i = 0, sum = 0;
	for (; VECTOR_TAILS ? i < n : i + VECTOR_WORDS <= n; i += VECTOR_WORDS) {
		vector pairs = vector_add_pairs(vector_set(-1), vector_load_words16(a + i, n - i),
						vector_load_words16(b + i, n - i));
		low += vector_half_longs(vector_low_half(pairs));
		high += vector_half_longs(vector_high_half(pairs));
	}
	low += high;
	for (int k = 0; k < VECTOR_N / 2; k++)
		sum += low[k];
	sum += i / 2; /* one for each pair */
	for (; i < n; i++)
		sum += (int32_t)a[i] * b[i];
	return sum;
}
