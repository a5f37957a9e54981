/* Tables read in rows, for AVX2. */
#include "daemon/device/fixed/rows/vector__avx2.h"

#define LUT_ROW lut_row__avx2
#include "daemon/device/fixed/rows/lut_body.h"
