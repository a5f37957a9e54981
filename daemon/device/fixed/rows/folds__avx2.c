/* Folds of elements for AVX2. */
#include "daemon/device/fixed/rows/vector__avx2.h"

#include "daemon/device/fixed/rows/folds.h"

#define FOLDS folds__avx2
extern const struct folds FOLDS[FOLD_N];
#include "daemon/device/fixed/rows/folds_body.h"
