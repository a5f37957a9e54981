/* One tensor as SVG, in the manner of the figures of the vendor's layout chapter. */
#ifndef CTL_CORE_SVG_TENSOR_H
#define CTL_CORE_SVG_TENSOR_H

#include <stdio.h>

#include <npumem/client.h>

/* A byte of a tensor that is framed: its NPU, and the offset from the start of the tensor. */
struct svg_mark {
	int64_t npu, offset;
	const char *what; /* for the subtitle */
};

/* A small one word by word, with the element that each word holds; a large one by runs of bytes. `mark`
 * NULL: none. 0 or RESOURCE_EXHAUSTED. */
int svg_tensor_draw(FILE *out, const struct npumem_geometry *geometry, const struct npumem_tensor *tensor,
		    uint32_t uid, const struct svg_mark *mark, struct npumem_error *error);

#endif
