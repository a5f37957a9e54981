/* Which NPU holds which feature, as text. */
#ifndef CTL_CORE_PICTURE_FEATURES_H
#define CTL_CORE_PICTURE_FEATURES_H

#include <stdio.h>

#include <npumem/layout.h>

/* A cell "n,c" for each feature, "." for an empty block; a terminal of `width` columns, 0: any width. What has no
 * room is said. */
void picture_features(FILE *out, const struct npumem_geometry *geometry, const struct npumem_place *place,
		      unsigned width);

#endif
