/* Rows of elements for AVX2. */
#include "daemon/device/fixed/rows/vector__avx2.h"

#define ROWS rows__avx2
extern const struct rows ROWS;
#include "daemon/device/fixed/rows/rows_body.h"
