/* Joins of sums for AVX-512. */
#define SUMS_MULTI sums_multi__avx512vnni
#define SUMS_RESCALED sums_rescaled__avx512vnni
#include "daemon/device/fixed/rows/sums_body.h"
