/* Products of a vector with a matrix for AVX2. */
#include "daemon/device/fixed/rows/vector__avx2.h"

#include "daemon/device/fixed/rows/gemv.h"

#define GEMV gemv__avx2
extern const struct gemv_functions GEMV;
#include "daemon/device/fixed/rows/gemv_body.h"
