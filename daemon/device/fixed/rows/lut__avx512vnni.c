/* Tables read in rows, for AVX-512. */
#include "daemon/device/fixed/rows/vector__avx512vnni.h"

#define LUT_ROW lut_row__avx512vnni
#include "daemon/device/fixed/rows/lut_body.h"
