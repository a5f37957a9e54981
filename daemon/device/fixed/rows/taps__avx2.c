/* Rows of taps for AVX2. */
#include "daemon/device/fixed/rows/vector__avx2.h"

#define TAPS_ROW taps_row__avx2
#include "daemon/device/fixed/rows/taps_body.h"
