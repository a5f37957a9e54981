/* Pictures as SVG: columns are NPUs, offsets go down, blocks are coloured by kind. */
#ifndef CTL_CORE_SVG_H
#define CTL_CORE_SVG_H

#include <stdio.h>

#include <npumem/client.h>

/* The device with its tensors; heights are not to scale, so that a small tensor can be seen. 0 or
 * RESOURCE_EXHAUSTED. */
int svg_device(FILE *out, const struct npumem_geometry *geometry, const struct npumem_tensor *tensors, unsigned n,
	       uint32_t uid, struct npumem_error *error);
/* One tensor: a small one word by word, with the element that each word holds; a large one by runs of bytes. */
int svg_tensor(FILE *out, const struct npumem_geometry *geometry, const struct npumem_tensor *tensor, uint32_t uid,
	       struct npumem_error *error);

#endif
