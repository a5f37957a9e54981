/* A user's table read in rows, for AVX2. */
#include "daemon/device/fixed/rows/vector__avx2.h"

VECTOR vector lookup_pairs(const int16_t *entries, vector at)
{
	return _mm256_i32gather_epi32((const int *)(const void *)entries, at, sizeof(*entries));
}

#define LOOKUP_ROW lookup_row__avx2
#include "daemon/device/fixed/rows/lookup_body.h"
