/* Rows of elements for AVX-512. */
#include "daemon/device/fixed/rows/vector__avx512vnni.h"

#define ROWS rows__avx512vnni
extern const struct rows ROWS;
#include "daemon/device/fixed/rows/rows_body.h"
