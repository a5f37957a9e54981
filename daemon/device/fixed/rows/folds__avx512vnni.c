/* Folds of elements for AVX-512. */
#include "daemon/device/fixed/rows/vector__avx512vnni.h"

#include "daemon/device/fixed/rows/folds.h"

#define FOLDS folds__avx512vnni
extern const struct folds FOLDS[FOLD_N];
#include "daemon/device/fixed/rows/folds_body.h"
