/* The pages of an image: where each one is, and how a thread saves it before a change. */
#ifndef STORE_IMAGE_PAGES_H
#define STORE_IMAGE_PAGES_H

#include "daemon/store/internal.h"

/* Begins to keep a file of so many bytes, all in place. 0 or -ENOMEM. */
int image_keep(struct store *store, enum format_file file, uint64_t bytes);
/* Saves whole pages with the contents of `from` instead of those in place; NULL: zeros. */
void image_replace(struct store *store, enum format_file file, uint64_t off, const void *from, uint64_t bytes);
/* [off, off + bytes) of the file is about to change. */
void image_before(struct store *store, enum format_file file, uint64_t off, uint64_t bytes);
/* A cell is about to change; no effect without an image. */
void image_before_cell(struct store *store, enum store_table table, uint32_t index);
/* Copies a page as it was; once for each page. False: it is zero, and nothing is copied. */
bool image_take(struct store *store, enum format_file file, uint64_t off, uint8_t *to);
/* [off, off + bytes) of the file was read: its saved pages are freed. */
void image_told(struct store *store, enum format_file file, uint64_t off, uint64_t bytes);
/* Frees all saved pages of the file. */
void image_give_back(struct store *store, enum format_file file);
/* Frees the mappings; there must be no image. */
void image_deinit(struct store *store);

static inline bool image_is_on(const struct image *image)
{
	return atomic_load_explicit(&image->is_on, memory_order_acquire);
}

#endif
