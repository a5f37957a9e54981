/* Rows of taps for AVX-512. */
#include "daemon/device/fixed/rows/vector__avx512vnni.h"

#define TAPS_ROW taps_row__avx512vnni
#include "daemon/device/fixed/rows/taps_body.h"
