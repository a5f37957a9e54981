/* One tensor as SVG, in the manner of the figures of the vendor's layout chapter. */
#ifndef CTL_CORE_SVG_TENSOR_H
#define CTL_CORE_SVG_TENSOR_H

#include "client/ctl/core/pictures/svg.h"

/* A byte of a tensor that is framed: its NPU, and the offset from the start of the tensor. */
struct svg_mark {
	int64_t npu, offset;
	const char *what; /* for the subtitle */
};

/* A small one word by word, with the elements that each word holds; a large one by runs of bytes. A tensor without
 * a state is a plan. `mark` NULL: none. */
void svg_tensor_draw(FILE *out, const struct npumem_geometry *geometry, const struct npumem_tensor *tensor,
		     uint32_t uid, const struct svg_mark *mark);

/* A cell for each feature (n, c), as the chapter's "Scatter Features to Different NPUs" has it: the first n, as
 * many as a picture can show. */
void svg_tensor_features(FILE *out, const struct npumem_geometry *geometry, const struct npumem_tensor *tensor,
			 uint32_t uid);

/* The title and the lines below it: what and how large it is, where it lies; `note` says how to read the picture.
 */
void svg_tensor_begin(struct svg *svg, FILE *out, const struct npumem_geometry *geometry,
		      const struct npumem_tensor *tensor, uint32_t uid, const char *note);

#endif
