/* Folds of elements for AVX2. */
#include "daemon/device/fixed/vector__avx2.h"

#include "daemon/device/fixed/folds.h"

#define FOLDS folds__avx2
extern const struct folds FOLDS[FOLD_N];
#include "daemon/device/fixed/folds_body.h"
