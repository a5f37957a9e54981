/* A tensor word by word, or feature by feature. */
#ifndef CTL_CORE_SVG_WORDS_H
#define CTL_CORE_SVG_WORDS_H

#include "client/ctl/core/pictures/svg_tensor.h"

/* Whether a place has few enough words for a box each. */
bool svg_words_few(const struct npumem_geometry *geometry, const struct npumem_place *place);
/* Such a tensor; `mark` may be NULL. 0 or RESOURCE_EXHAUSTED. */
int svg_words_draw(struct svg *svg, const struct npumem_geometry *geometry, const struct npumem_tensor *tensor,
		   const struct svg_mark *mark, struct npumem_error *error);

#endif
