/* The pages of an image: where each is, and how it is kept from threads that change it. */
#ifndef STORE_IMAGE_PAGES_H
#define STORE_IMAGE_PAGES_H

#include "daemon/store/internal.h"

/* Begins to keep a file of that many bytes, which are all where they are. 0 or -ENOMEM. */
int image_keep(struct store *store, enum format_file file, uint64_t bytes);
/* Pages of the file that have changed already are as in `from`, a whole number of them; or zero for NULL. */
void image_replace(struct store *store, enum format_file file, uint64_t off, const void *from, uint64_t bytes);
/* [off, off + bytes) of the file is about to change. */
void image_before(struct store *store, enum format_file file, uint64_t off, uint64_t bytes);
/* A cell is about to change; where there is an image. */
void image_before_cell(struct store *store, enum store_table table, uint32_t index);
/* Copies a page as it was, which is asked for once. False: it is zero, and nothing is copied. */
bool image_take(struct store *store, enum format_file file, uint64_t off, uint8_t *to);
/* What was told before `off` of local memory needs no room any more. */
void image_told(struct store *store, enum format_file file, uint64_t off, uint64_t bytes);
/* None of what is kept of the file is needed any more. */
void image_give_back(struct store *store, enum format_file file);
/* There is no image. */
void image_deinit(struct store *store);

static inline bool image_is_on(const struct image *image)
{
	return atomic_load_explicit(&image->is_on, memory_order_acquire);
}

#endif
