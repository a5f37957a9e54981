/* The expression of `view`: NAME = BASE[n0:n1,c0:c1,h0:h1,w0:w1]. */
#ifndef CTL_CORE_SLICE_H
#define CTL_CORE_SLICE_H

#include <npumem/layout.h>

enum { SLICE_NAME_BYTES = NPUMEM_NAME_BYTES_MAX + 16 }; /* "UID:NAME" */

struct slice {
	char name[SLICE_NAME_BYTES], base[SLICE_NAME_BYTES];
	bool ranges; /* brackets were given */
	struct {
		int64_t from, to; /* `to` NPUMEM_ANY: to the end */
	} range[4];
};

/* 0 or INVALID, naming the range that is wrong. */
int slice_parse(const char *text, struct slice *slice, struct npumem_error *error);
/* Fills in what was left open by the base's shape. */
void slice_resolve(const struct slice *slice, const struct npumem_dims *shape, struct npumem_dims *from,
		   struct npumem_dims *to);

#endif
