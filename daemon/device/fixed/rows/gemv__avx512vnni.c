/* Products of a vector with a matrix for AVX-512. */
#include "daemon/device/fixed/rows/vector__avx512vnni.h"

#include "daemon/device/fixed/rows/gemv.h"

#define GEMV gemv__avx512vnni
extern const struct gemv_functions GEMV;
#include "daemon/device/fixed/rows/gemv_body.h"
