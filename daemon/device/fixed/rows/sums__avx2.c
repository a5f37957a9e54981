/* Joins of sums for AVX2. */
#define SUMS_MULTI sums_multi__avx2
#define SUMS_RESCALED sums_rescaled__avx2
#include "daemon/device/fixed/rows/sums_body.h"
