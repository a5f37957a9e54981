/* Tables read in rows, for AVX2. */
#include "daemon/device/fixed/vector__avx2.h"

#define LUT_ROW lut_row__avx2
#include "daemon/device/fixed/lut_body.h"
