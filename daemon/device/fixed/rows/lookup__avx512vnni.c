/* A user's table read in rows, for AVX-512. */
#include "daemon/device/fixed/rows/vector__avx512vnni.h"

VECTOR vector lookup_pairs(const int16_t *entries, vector at)
{
	return _mm512_i32gather_epi32(at, entries, sizeof(*entries));
}

#define LOOKUP_ROW lookup_row__avx512vnni
#include "daemon/device/fixed/rows/lookup_body.h"
